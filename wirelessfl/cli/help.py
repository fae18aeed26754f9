"""Help pages of commands that accept the settings of a run."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from wirelessfl.algorithms import algorithm_classes
from wirelessfl.base.terminal import say
from wirelessfl.cli.flags import Flag, all_flags, flags_of, section_flags
from wirelessfl.config.choices import KINDS
from wirelessfl.config.kinds import chosen_classes, owner_names, words
from wirelessfl.config.resolve import unused
from wirelessfl.config.settings import Settings
from wirelessfl.config.tables import named_tables

HEADINGS: Mapping[str, Sequence[str]] = {
    "data": ("data",),
    "model": (),
    "network": ("network",),
    "uplink": (),
    "schedule": (),
    "training": ("training",),
    "sessions": ("sessions",),
    "evaluation": ("evaluation",),
    "run": ("run",),
}
"""Headings, and the sections listed below each; the kinds of choices follow."""
GROUPS: Mapping[str, Sequence[str]] = {
    heading: (*sections, *(name for name, kind in KINDS.items() if kind.heading == heading))
    for heading, sections in HEADINGS.items()
}
"""Headings, and the sections and kinds of choices listed below each."""
COLUMN = 25
MAX_WIDTH = 100
TASK = (
    "--task DATASET,KEY=X,...",
    "adds a task, e.g. mnist,model=mlp,lr=0.1,target=0.93; repeat the flag for each task",
)

Line = tuple[str, str]
"""A flag with its placeholder, and its description."""
COMMON = ("-h", "--config", "--json", "--trust", "--quiet")
"""Arguments of all commands, which the usage line names."""


def help_of_run(tables: Mapping[str, Any]) -> Iterator[tuple[str, list[Line]]]:
    """Yield each heading with the lines of the settings that the run uses.

    Args:
        tables: the named choices; all others are the defaults.
    """
    named = named_tables(tables)
    settings = Settings.read(named)
    dropped, classes = unused(settings), chosen_classes(named)
    flags = [*section_flags(), *flags_of(classes.items())]

    def lines(section: str) -> Iterator[Line]:
        if section in KINDS and section in classes:
            yield _choice_line(section, named[section]["name"])
        choice = settings.choice(section)
        for flag in flags:
            if flag.section == section and (section, flag.key) not in dropped:
                default = choice.all_settings()[flag.key] if choice is not None else flag.default
                yield flag_line(flag, default)

    local = f" with local {named['algorithm']['local']}" if "local" in named["algorithm"] else ""
    yield f"algorithm {named['algorithm']['name']}{local}", [*lines("algorithm")]
    for heading, sections in GROUPS.items():
        entries = [line for section in sections for line in lines(section)]
        if heading == "schedule" and settings.regime.of_tasks:
            entries.append(TASK)
        yield heading, entries


def help_of_all() -> Iterator[tuple[str, list[Line]]]:
    """Yield each heading with the lines of all its settings and the choices they belong to."""
    flags = [*all_flags()]
    for heading, sections in {"algorithm": ("algorithm",), **GROUPS}.items():
        entries: list[Line] = []
        for section in sections:
            if section in KINDS:
                entries.append(_choice_line(section, None))
            for flag in flags:
                if flag.section == section:
                    name, text = flag_line(flag, None if flag.varies else flag.default)
                    names = owner_names(flag.name) or owner_names(flag.key)
                    entries.append((name, f"{text} ({names})" if names else text))
        yield heading, entries
    yield "several tasks", [TASK]


def page(
    usage: str, description: str, groups: Iterable[tuple[str, list[Line]]], closing: str
) -> str:
    """The text of a help page, as wide as the terminal."""
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    description += " Defaults are in square brackets."
    parts = [f"usage: {usage}", _filled(description, width)]
    for heading, lines in groups:
        if lines:
            parts.append(f"{heading}:")
            parts += [_wrapped(name, text, width) for name, text in lines]
    return "\n".join([*parts, *(_filled(line, width) for line in closing.split("\n"))])


def own_lines(parser: argparse.ArgumentParser) -> list[Line]:
    """The arguments of a command that are not settings, apart from those of every command."""
    lines = []
    for action in parser._actions:
        described = action.help not in (None, argparse.SUPPRESS)
        if action.option_strings and described and action.option_strings[0] not in COMMON:
            text, default, value = str(action.help).partition(" (default: ")
            text += f" [{value.removesuffix(')')}]" if default else ""
            lines.append((f"{action.option_strings[0]} {action.metavar or ''}".strip(), text))
    return lines


def algorithm_lines() -> list[Line]:
    """Every algorithm with the first line of its docstring."""
    return [
        (name, (cls.__doc__ or "").strip().splitlines()[0])
        for name, cls in algorithm_classes().items()
    ]


def _choice_line(kind: str, default: str | None) -> Line:
    names = ", ".join(sorted(KINDS[kind].classes()))
    shown = "" if default is None else f" [{default}]"
    return f"--{kind.replace('_', '-')} NAME", f"{KINDS[kind].text or words(kind)}: {names}{shown}"


def flag_line(flag: Flag, default: Any) -> Line:
    """The line of a flag; its description lists the accepted names."""
    metavar, text = flag.metavar, flag.text
    # Defaults that depend on other settings are part of the description.
    text, stated, derived = text.partition(" (default: ")
    if metavar.startswith("{"):
        names = metavar[1:-1].split(",")
        metavar = "NAME"
        if not all(name in text for name in names if name != "auto"):
            text = f"{text}: {', '.join(names)}"
    if stated:
        text += f" [{derived.rpartition(')')[0]}]"
    elif default is not None and not isinstance(default, bool):
        text += f" [{_shown(default)}]"
    return f"{flag.option} {metavar}".strip(), text


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")
    if isinstance(value, tuple):
        return ",".join(_shown(entry) for entry in value)
    return str(value)


def _filled(text: str, width: int) -> str:
    """Wrap a paragraph without breaking flags and names at hyphens."""
    return textwrap.fill(text, width, break_on_hyphens=False)


def _wrapped(name: str, text: str, width: int) -> str:
    """Wrap the line of a flag; after a long flag, the description begins on the next line."""
    room = max(width - COLUMN, 20)
    body = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    head = f"  {name}"
    lines = [head] if len(head) >= COLUMN - 1 else [f"{head:<{COLUMN}}{body.pop(0)}"]
    return "\n".join([*lines, *(" " * COLUMN + line for line in body)]).rstrip()


class Help(argparse.Action):
    """``--help`` prints the settings that the named choices use, ``--help all`` all settings.

    Args:
        tables: the choices that the command line names, see ``chosen_tables``.
        headings: headings of the settings that the command uses; None for all.
        usage: how to call the command; None for that of ``run``.
        options: arguments of ``argparse.Action``.
    """

    def __init__(
        self,
        *,
        tables: Mapping[str, Any],
        headings: Collection[str] | None = None,
        usage: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.tables, self.headings, self.usage = tables, headings, usage

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> NoReturn:
        """Print the page and exit."""
        groups: Iterable[tuple[str, list[Line]]]
        if values == "all":
            groups = help_of_all()
            closing = (
                f"Defaults that differ between choices are not shown: {parser.prog} ALGORITHM "
                "--help lists those of an algorithm."
            )
        elif "algorithm" not in self.tables:
            groups = [("algorithms", algorithm_lines())]
            closing = (
                f"{parser.prog} ALGORITHM --help lists the settings that an algorithm uses, with "
                f"their defaults; {parser.prog} --help all lists every setting; wirelessfl list "
                "lists all choices."
            )
        else:
            groups = help_of_run(self.tables)
            name = self.tables["algorithm"]["name"]
            closing = (
                "Only settings of these choices are listed. To see those of other choices, name "
                f"them, e.g. {parser.prog} {name} --split dirichlet --help. {parser.prog} --help "
                "all lists every setting."
            )
        if self.headings is not None:
            groups = [(heading, lines) for heading, lines in groups if heading in self.headings]
        arguments = own_lines(parser)
        if arguments and self.usage is None:
            groups = [(parser.prog.rpartition(" ")[2], arguments), *groups]
        name = self.tables.get("algorithm", {}).get("name", "ALGORITHM")
        usage = f"{parser.prog} {name} [--config FILE [--trust]] [--json] [--flag value ...]"
        if self.usage is not None:
            usage, closing = f"{parser.prog} {self.usage}", ""
        say(page(usage, parser.description or "", groups, closing))
        parser.exit()
