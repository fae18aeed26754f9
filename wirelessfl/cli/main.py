"""The command line: ``wirelessfl --help`` lists its commands."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TextIO

import wirelessfl
from wirelessfl import check_packages
from wirelessfl.base import import_paths
from wirelessfl.base.errors import ConfigError, DataError, TrainingError, disk_full, out_of_memory
from wirelessfl.base.packages import defer, no_garbage
from wirelessfl.base.ranks import launched
from wirelessfl.base.signals import Terminated
from wirelessfl.base.terminal import OutputError, Stream, say, standard_streams
from wirelessfl.cli.parser import Parser

USER_ERRORS = (ConfigError, DataError, TrainingError, ImportError)
SMALLER = (
    "the settings need more memory than there is: choose a smaller model, fewer clients, or a "
    "smaller chunk or batch_size."
)
FRAME = ("flags", "help", "main", "output", "parser")
"""Files of this folder that are no commands."""
FIRST = ("run", "resume", "sweep", "timeline", "budget", "price", "plan", "pilot", "design")
"""Commands that the help lists first."""
GONE = {errno.EPIPE: 141, errno.EIO: 129}
"""Exit status if the reader of the output is gone: as if ended by SIGPIPE or SIGHUP."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; for a user's error, print one line on stderr and return exit status 2.

    The status is 1 if the standard output cannot be written.
    """
    with standard_streams():
        try:
            try:
                return _main(list(sys.argv[1:] if arguments is None else arguments))
            finally:
                Stream("stdout").flush()
        except OutputError as error:
            if error.errno in GONE:
                return GONE[error.errno]
            say(f"OSError: standard output: {error.strerror}.", error=True)
            return 1


def _main(words: list[str]) -> int:
    leads = True
    defer("torch")
    try:
        check_packages()
        leads = launched()[0] == 0  # all processes under torchrun raise the same errors
        # Otherwise a file there could stand for a package that is not installed.
        import_paths.search_current_folder(at_once="--trust" in words)
        with no_garbage():
            parsed = parser_of(words).parse_args(words)
        with _notes_shown():
            status: int = parsed.act(parsed)
    except USER_ERRORS as error:
        if leads or isinstance(error, TrainingError):
            public = next(kind for kind in type(error).__mro__ if kind in USER_ERRORS)
            say(f"{public.__name__}: {error}", error=True)
        return 2
    except OutputError:
        raise
    except OSError as error:
        if error.filename is None and not disk_full(error):
            raise
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        remedy = "Free disk space." if disk_full(error) else "Give another path."
        say(f"OSError: {place}{error.strerror}. {remedy}", error=True)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        cause = str(error).partition("\n")[0]
        say(f"MemoryError: {SMALLER} {cause}".rstrip(), error=True)
        return 2
    except KeyboardInterrupt:
        say("interrupted", error=True)
        return 130
    except Terminated:
        say("interrupted", error=True)
        raise
    return status


@contextmanager
def _notes_shown() -> Iterator[None]:
    """Print each note as a line on stderr, and other warnings as before."""
    from channels.notes import Note  # another package may have the name `channels`

    with warnings.catch_warnings():
        warnings.simplefilter("always", Note)
        show = warnings.showwarning

        def shown(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, Note):
                say(message, error=True)
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = shown
        yield


def parser_of(words: Sequence[str], *, whole: bool = False) -> Parser:
    """The parser of a command line.

    Args:
        words: the command line; only its command is imported, or all if it names none.
        whole: whether all commands have the flags of all settings, which takes a second.
    """
    parser = Parser(
        prog="wirelessfl",
        description="Design wireless networks and federated learning together.",
    )
    parser.add_argument(
        "--version", action="version", version=f"wirelessfl {wirelessfl.__version__}"
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    commands = command_names()
    named = [] if whole else [name for name in commands if words[:1] == [name]]
    for name in named or commands:
        module = import_module(f"wirelessfl.cli.{name}")
        command = subparsers.add_parser(name, help=module.HELP, allow_abbrev=False, add_help=False)
        command.words = words[1:] if named else [] if whole else None
        command.set_defaults(act=module.act)
        module.add(command)
        command.add_plain_help()
    return parser


def command_names() -> list[str]:
    """Names of all commands, in the order of the help: a file of this folder is a command."""
    names = [file.name for file in iter_modules([str(Path(__file__).parent)])]
    commands = [name for name in names if name not in FRAME]
    return sorted(commands, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
