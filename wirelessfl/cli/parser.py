"""A command-line parser: errors are one line, and commands share their common arguments."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say

Number = TypeVar("Number", int, float)

NEGATIVE = re.compile(r"-[\d.][\d.,;eE+-]*")
"""A negative number, or a list that begins with one."""


def names(words: str) -> list[str]:
    """The type of a list of names."""
    return [name.strip() for name in words.split(",")]


def setting_names(words: str) -> list[str]:
    """The type of a list of settings, as written on the command line."""
    settings = [name.removeprefix("--").replace("-", "_") for name in names(words)]
    return [name for name in settings if name]


def integers(words: str) -> list[int]:
    """The type of a list of integers."""
    return _listed(words, int, "integers, e.g. 5,10,20")


def numbers(words: str) -> list[float]:
    """The type of a list of numbers."""
    return _listed(words, float, "numbers, e.g. 0,10")


def _listed(words: str, kind: Callable[[str], Number], texts: str) -> list[Number]:
    try:
        return [kind(word) for word in words.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{words!r} is not a list of {texts}") from None


def check_figure(name: str, path: Path) -> None:
    """Refuse the path of a figure that cannot be written."""
    from wirelessfl.base.files import check_writable

    if path.suffix not in (".png", ".pdf"):
        raise ConfigError(f"{name} is {path}: name a .png or .pdf; both are written.")
    check_writable(path.parent, name)


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
        self.words: Sequence[str] | None = None
        """The words after a command, whose choices have flags; None without flags of settings."""
        self.advice = ""
        """What an error on an unknown flag says if no flag is similar."""

    def add_plain_help(self) -> None:
        """Add ``--help``, unless the command has a help page on settings."""
        if "--help" not in self._option_string_actions:
            self.add_argument("-h", "--help", action="help", help="show this help message and exit")

    def add_json(self, text: str = "print the results as JSON") -> None:
        """Add ``--json``."""
        self.add_argument("--json", action="store_true", help=text)

    def add_trust(self, text: str = "the code that the configuration names as module:name") -> None:
        """Add ``--trust``."""
        self.add_argument("--trust", action="store_true", help=f"import {text}")

    def add_quiet(self) -> None:
        """Add ``--quiet``."""
        text = "show only notes and the closing table: no bar, no line per row"
        self.add_argument("--quiet", action="store_true", help=text)

    def add_configuration(self) -> None:
        """Add what names a configuration: ALGORITHM, ``--config`` and ``--trust``."""
        self.add_argument("algorithm", nargs="?", metavar="ALGORITHM", help="`wirelessfl list`")
        self.add_argument("--config", type=expanded, metavar="FILE", help="settings as TOML")
        self.add_json()
        self.add_trust()

    def add_settings(
        self,
        *,
        algorithm: str | None = None,
        lists: bool = False,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        **page: Any,
    ) -> None:
        """Add a flag for every setting of a run, and a help page on those of the named choices.

        Args:
            algorithm: that of the flags if none is named.
            lists: whether flags accept several values.
            types: types of some flags; the values of others are parsed by the configuration.
            page: arguments of ``wirelessfl.cli.help.Help``.
        """
        if self.words is None:
            return
        from wirelessfl.cli.flags import add_flags, chosen_tables, user_flags
        from wirelessfl.cli.help import Help

        scout = Parser(prog=self.prog, add_help=False, allow_abbrev=False, lenient=True)
        tables, named = chosen_tables(scout, self.words)
        if algorithm is not None:
            tables = {"algorithm": {"name": algorithm}, **tables}
        add_flags(self, user_flags(tables, named), self.words, lists=lists, types=types or {})
        self.add_argument("-h", "--help", nargs="?", const="", action=Help, tables=tables, **page)

    def add_runs(self) -> None:
        """Add the stored runs that a command reads."""
        self.add_argument(
            "runs",
            nargs="+",
            metavar="RUN",
            help="folders of runs, folders of run folders such as a sweep's, or patterns such as "
            "'runs/*'",
        )

    def add_by(self, *flags: str) -> None:
        """Add the settings that distinguish groups of runs."""
        self.add_argument(
            *(*flags, "--by"),
            dest="by",
            type=setting_names,
            metavar="SETTING,...",
            help="settings that distinguish groups, by flag name, such as algorithm,cells "
            "(default: all that differ, except seeds)",
        )

    def add_target(self, *, several: bool = False) -> None:
        """Add the value that runs should reach, or several."""
        default = "the runs' --target, if all have the same"
        if several:
            default = "those of the runs, and values on the way to the best"
        self.add_argument(
            "--target",
            type=numbers if several else float,
            metavar="X,..." if several else "X",
            help=f"value to reach, such as 0.8 for 80 %% (default: {default})",
        )
        self.add_argument(
            "--field",
            metavar="FIELD",
            help="field of rows that --target refers to (default: accuracy, on validation samples "
            "if any)",
        )
        self.add_argument(
            "--tests",
            type=int,
            default=1,
            metavar="N",
            help="number of tests that are averaged, because single tests vary (default: 1)",
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse the arguments; unknown words are an error unless the parser is lenient."""
        words = sys.argv[1:] if args is None else args
        parsed, rest = super().parse_known_args(_with_numbers(words), namespace)
        if rest and not self.lenient:
            self._refuse(rest)
        return parsed, rest

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
        from wirelessfl.base.wording import suggestion  # imports packages, which main checks first
        from wirelessfl.config.synonyms import synonym

        flag = word.partition("=")[0]
        options = [option for action in self._actions for option in action.option_strings]
        settings = [option.removeprefix("--").replace("-", "_") for option in options]
        meant = synonym(flag, settings) if "rounds" in settings else None
        near = suggestion(flag, options) if meant is None else meant.sentence("--")
        self.error(f"unknown flag {flag!r}.{near or self.advice}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        from wirelessfl.base.wording import suggestion

        names = [str(choice) for choice in action.choices]
        kind = str(action.metavar or action.dest).lower()
        near = suggestion(value, names)
        if kind == "command" and not near:
            from wirelessfl.algorithms import algorithm_classes

            near = f" Do you mean 'run {value}'?" if value in algorithm_classes() else ""
        raise argparse.ArgumentError(
            None, f"unknown {kind} {value!r}.{near} Choose {', '.join(names)}."
        )
