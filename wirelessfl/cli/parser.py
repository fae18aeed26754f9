"""A command-line parser whose errors are one line and suggest the nearest known name."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from wirelessfl.terminal import say

NEGATIVE = re.compile(r"-[\d.][\d.,;eE+-]*")
"""A negative number, or a list that begins with one."""


def _with_numbers(words: Sequence[str]) -> list[str]:
    """Join a flag and a list after it that begins with a negative number, e.g. --gain -20,20.

    argparse would take the list for a flag.
    """
    joined: list[str] = []
    for word in words:
        before = joined[-1] if joined else ""
        if NEGATIVE.fullmatch(word) and before.startswith("--") and "=" not in before:
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


class Parser(argparse.ArgumentParser):
    """An argument parser that does not list all flags before an error.

    Args:
        lenient: whether ``parse_known_args`` returns unknown words instead of raising an error.
        options: arguments of ``argparse.ArgumentParser``.
    """

    def __init__(self, *, lenient: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.lenient = lenient

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments; unknown words are an error unless the parser is lenient."""
        words = sys.argv[1:] if args is None else args
        found, rest = super().parse_known_args(_with_numbers(words), namespace)
        if rest and not self.lenient:
            self._refuse(rest)
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print the message and exit with status 2."""
        end = "" if message.endswith((".", "?")) else "."
        self.exit(2, f"{self.prog}: error: {message}{end} See {self.prog} --help.\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, error=file is not sys.stdout, end="")

    def _refuse(self, words: Sequence[str]) -> NoReturn:
        """Exit with an error that suggests the flag nearest to the first unknown flag."""
        word = next((word for word in words if word.startswith("-")), None)
        if word is None:
            self.error(f"unexpected argument {words[0]!r}")
        from wirelessfl.config.synonyms import synonym
        from wirelessfl.wording import suggestion  # imports packages, which main checks first

        flag = word.partition("=")[0]
        known = [option for action in self._actions for option in action.option_strings]
        settings = [option.removeprefix("--").replace("-", "_") for option in known]
        meant = synonym(flag, settings) if "rounds" in settings else None
        near = suggestion(flag, known) if meant is None else meant.sentence("--")
        self.error(f"unknown flag {flag!r}.{near}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from wirelessfl.wording import suggestion

        names = [str(choice) for choice in action.choices]
        kind = str(action.metavar or action.dest).lower()
        raise argparse.ArgumentError(
            None, f"unknown {kind} {value!r}.{suggestion(value, names)} Choose {', '.join(names)}."
        )
