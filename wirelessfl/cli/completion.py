"""``wirelessfl completion``: scripts that complete commands, flags and names in a shell."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wirelessfl.terminal import say

Build = Callable[[Sequence[str]], argparse.ArgumentParser]
HOW = {
    "bash": 'eval "$(wirelessfl completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(wirelessfl completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "wirelessfl completion fish | source  # in ~/.config/fish/config.fish",
}


@dataclass(frozen=True)
class Words:
    """What completes a command.

    Args:
        help: description of the command.
        first: names that its first argument may have.
        flags: by flag, the names that its value may have; None if it takes no value.
    """

    help: str
    first: Sequence[str]
    flags: Mapping[str, Sequence[str] | None]


def add_completion(subparsers: Any, build: Build) -> None:
    """Add the command to the parser.

    Args:
        subparsers: receives the command.
        build: builds the parser for the words of a command line, of which the first counts.
    """
    parser = subparsers.add_parser(
        "completion",
        help="print a script that completes commands and flags: " + HOW["bash"].partition("  ")[0],
        description="Print a script for a shell that completes commands, flags and names. "
        + "; ".join(HOW.values()),
    )
    parser.set_defaults(command=completion, build=build)
    parser.add_argument("shell", choices=[*HOW], metavar="SHELL", help=", ".join(HOW))


def completion(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell]
    say("\n".join(script(commands(arguments.build))))
    return 0


def commands(build: Build) -> dict[str, Words]:
    """What completes each command."""
    names = _subparsers(build([]))
    helps = {action.dest: action.help or "" for action in names._choices_actions}
    found = {}
    for name in names.choices:
        actions = _subparsers(build([name])).choices[name]._actions
        first = [
            word for action in actions if not action.option_strings for word in _values(action)
        ]
        flags: dict[str, Sequence[str] | None] = {}
        for action in actions:
            values = None if action.nargs == 0 else _values(action)
            long = [option for option in action.option_strings if option.startswith("--")]
            flags.update(dict.fromkeys(long, values))
        found[name] = Words(helps.get(name, "").partition(":")[0], first, flags)
    return found


def _subparsers(parser: argparse.ArgumentParser) -> Any:
    return next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))


def _values(action: argparse.Action) -> list[str]:
    """Names that the value of a flag or argument may have; none if any value may be given."""
    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.config.choices import KINDS
    from wirelessfl.data import dataset_names

    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.dest in ("algorithm", "local"):
        return sorted(algorithm_classes())
    if action.dest == "dataset":
        return dataset_names()
    if action.dest in KINDS:
        return sorted(KINDS[action.dest].classes())
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return metavar[1:-1].split(",") if metavar.startswith("{") else []


def _bash(known: Mapping[str, Words]) -> Iterator[str]:
    yield "# Completion of wirelessfl for bash. Load it by: " + HOW["bash"]
    yield "_wirelessfl() {"
    yield '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '    local command="${COMP_WORDS[1]}" flags= first='
    yield "    COMPREPLY=()"
    yield '    if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'        COMPREPLY=($(compgen -W {_quoted(known)} -- "$word"))'
    yield "        return"
    yield "    fi"
    yield '    case "$command:$before" in'
    by_values: dict[tuple[str, ...], list[str]] = {}
    for name, words in known.items():
        for flag, values in words.flags.items():
            if values:
                by_values.setdefault(tuple(values), []).append(f"{name}:{flag}")
    for values, places in by_values.items():
        yield f"        {'|'.join(places)})"
        yield f'            COMPREPLY=($(compgen -W {_quoted(values)} -- "$word")); return;;'
    yield "    esac"
    yield '    case "$command" in'
    for name, words in known.items():
        yield f"        {name}) flags={_quoted(words.flags)} first={_quoted(words.first)};;"
    yield "    esac"
    yield '    case "$word" in'
    yield '        -*) COMPREPLY=($(compgen -W "$flags" -- "$word"));;'
    yield '        *) [ "$COMP_CWORD" -eq 2 ] && COMPREPLY=($(compgen -W "$first" -- "$word"));;'
    yield "    esac"
    yield "}"
    yield "complete -o default -F _wirelessfl wirelessfl"


def _zsh(known: Mapping[str, Words]) -> Iterator[str]:
    yield "# Completion of wirelessfl for zsh. Load it by: " + HOW["zsh"]
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(known)


def _fish(known: Mapping[str, Words]) -> Iterator[str]:
    yield "# Completion of wirelessfl for fish. Load it by: " + HOW["fish"]
    for name, words in known.items():
        head = "complete -c wirelessfl"
        yield f"{head} -n __fish_use_subcommand -f -a {name} -d {shlex.quote(words.help)}"
        seen = f"{head} -n '__fish_seen_subcommand_from {name}'"
        if words.first:
            yield f"{seen} -f -a {_quoted(words.first)}"
        for flag, values in words.flags.items():
            takes = "" if values is None else f" -x -a {_quoted(values)}" if values else " -r"
            yield f"{seen} -l {flag.removeprefix('--')}{takes}"


def _quoted(words: Any) -> str:
    """Words as one argument of a shell."""
    return shlex.quote(" ".join(words))
