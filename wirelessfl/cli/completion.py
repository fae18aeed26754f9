"""``wirelessfl completion``: scripts that complete commands, flags and names in a shell."""

from __future__ import annotations

import argparse

import shtab

from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = 'print a script that completes commands and flags: eval "$(wirelessfl completion bash)"'


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = (
        "Print a script for a shell that completes commands, flags and names:\n\n"
        '  eval "$(wirelessfl completion bash)"  # in ~/.bashrc\n'
        '  eval "$(wirelessfl completion zsh)"  # in ~/.zshrc, after compinit\n'
        "  wirelessfl completion fish | source  # in ~/.config/fish/config.fish"
    )
    shells = ["bash", "zsh", "fish"]
    parser.add_argument("shell", choices=shells, metavar="SHELL", help=", ".join(shells))


def act(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.cli.main import parser_of
    from wirelessfl.config.choices import KINDS

    parser = parser_of([], whole=True)
    names = {"algorithm": algorithm_classes()}
    names |= {name: kind.classes() for name, kind in KINDS.items()}
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    for command in commands.choices.values():
        for action in command._actions:
            action.help = None if action.help == argparse.SUPPRESS else action.help
            if str(action.metavar).startswith("{"):
                action.choices = str(action.metavar)[1:-1].split(",")
            elif action.dest in names:  # of a parser, any path of the user's code is allowed, too
                action.choices = sorted(names[action.dest])
    say(shtab.complete(parser, arguments.shell))
    return 0
