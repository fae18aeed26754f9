"""The command line: ``wirelessfl --help`` lists its commands."""

from __future__ import annotations

import argparse
import errno
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import wirelessfl
from wirelessfl import check_packages, import_paths
from wirelessfl.cli import commands
from wirelessfl.cli.check import add_check
from wirelessfl.cli.completion import add_completion
from wirelessfl.cli.doctor import add_doctor
from wirelessfl.cli.listing import add_list
from wirelessfl.cli.parser import Parser
from wirelessfl.cli.pilot import add_pilot, add_pilot_arguments
from wirelessfl.cli.plan import add_plan, add_plan_arguments
from wirelessfl.cli.price import add_price
from wirelessfl.cli.results import add_result_commands
from wirelessfl.deferred import defer
from wirelessfl.errors import ConfigError, DataError, TrainingError, disk_full, out_of_memory
from wirelessfl.import_paths import expanded
from wirelessfl.signals import Terminated
from wirelessfl.terminal import OutputError, Stream, say, standard_streams
from wirelessfl.training.workers.processes import launched

USER_ERRORS = (ConfigError, DataError, TrainingError, ImportError)
SMALLER = (
    "the settings need more memory than there is: choose a smaller model, fewer clients, or a "
    "smaller chunk or batch_size."
)
QUIET = "show only notes and the closing table: no bar, no line per row"
TRUST = "import the code that the configuration names as module:name"
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
        leads = launched()[0] == 0  # all processes under torchrun raise the same errors
        check_packages()
        # Otherwise a file there could stand for a package that is not installed.
        import_paths.search_current_folder(at_once="--trust" in words)
        with _no_garbage():
            parsed = _parser(words).parse_args(words)
        with _notes_shown():
            status: int = parsed.command(parsed)
    except USER_ERRORS as error:
        if leads or isinstance(error, TrainingError):
            say(f"{type(error).__name__}: {error}", error=True)
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


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Imports leave no garbage; looking for it takes a tenth of their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="wirelessfl",
        description="Design wireless networks and federated learning together.",
    )
    parser.add_argument(
        "--version", action="version", version=f"wirelessfl {wirelessfl.__version__}"
    )
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    run = subparsers.add_parser(
        "run",
        help="train: wirelessfl run ALGORITHM [--flag value ...], or --config FILE.toml",
        description="Train a model over a simulated wireless network. Name an algorithm, or give a "
        "configuration file; flags override the file.",
        allow_abbrev=False,
        add_help=False,
    )
    run.set_defaults(command=commands.run)
    sweep = subparsers.add_parser(
        "sweep",
        help="run all combinations: wirelessfl sweep hist,hfedavg --cells 2,4 --seed 1,2,3",
        description="Run every combination of the given values once. Each run is stored in a "
        "folder below --out (default: out of the file, or runs/sweep), named by the hash of its "
        "settings. Flags are those of `run`; separate values by commas, or by semicolons if a "
        "value contains commas. "
        "A run ignores flags that do not apply to its choices. --with NAME=X,NAME=Y sets values "
        "that vary together; repeat it for each point. Runs that differ only in an error-free "
        "radio are trained once and priced for each radio; --train-all trains each. --jobs N sets "
        "the number of concurrent runs, one CPU thread each (default: 1); --ray ADDRESS uses a Ray "
        "cluster, and --ray local starts one on this machine.",
        allow_abbrev=False,
        add_help=False,
    )
    sweep.set_defaults(command=commands.sweep)
    timeline = subparsers.add_parser(
        "timeline",
        help="draw each client's work: wirelessfl timeline hist --rounds 1 [--flag value ...]",
        description="Simulate the first rounds or seconds of a run without training, draw what "
        "each client does (compute, wait, send), and print where the time goes and who is the "
        "straggler. Flags are those of `run`; --rounds N sets the number of rounds (default: 2; at "
        "most 1000), or --seconds X the simulated time (default under schedules buffered and "
        "simultaneous: 20), and --picture FILE the .png or .pdf to write (default: "
        "results/timeline.png; both are always written).",
        allow_abbrev=False,
        add_help=False,
    )
    timeline.set_defaults(command=commands.timeline)
    budget = subparsers.add_parser(
        "budget",
        help="print the link budget: wirelessfl budget --layout hexagonal [--flag value ...]",
        description="Print each client's link budget, rate and upload time, or quantiles over "
        "clients. Nothing is trained. Flags of the network are those of `run`; without ALGORITHM, "
        "the network has cells as for hfedavg. --upload-mib X sets the size of an upload (default: "
        "1 MiB); --per-client prints one line per client.",
        allow_abbrev=False,
        add_help=False,
    )
    budget.set_defaults(command=commands.budget)
    pilot = add_pilot(subparsers)
    pilot.set_defaults(command=commands.pilot)
    plan = add_plan(subparsers)
    plan.set_defaults(command=commands.plan)
    design = subparsers.add_parser(
        "design",
        help="choose how to train: wirelessfl design hist --target 0.8 [--flag value ...]",
        description="Choose algorithm, local steps, edge rounds, clients, masks, uplink "
        "and allocation with which the target takes the fewest seconds or joules, or with which "
        "--max-seconds or --max-client-joules buys the most accuracy. A few pilots are trained, or "
        "read from --out (default: runs/pilots). Flags are those of `run`; lists of --local-steps, "
        "--edge-rounds, --clients-per-round and --uplink restrict the choice.",
        allow_abbrev=False,
        add_help=False,
    )
    design.set_defaults(command=commands.design)
    with_flags = {"run": run, "sweep": sweep, "timeline": timeline, "budget": budget, "plan": plan}
    with_flags |= {"pilot": pilot, "design": design}
    for name, command in with_flags.items():
        command.add_argument("algorithm", nargs="?", metavar="ALGORITHM", help="`wirelessfl list`")
        command.add_argument("--config", type=expanded, metavar="FILE", help="settings as TOML")
        command.add_argument("--json", action="store_true", help="print the results as JSON")
        command.add_argument("--trust", action="store_true", help=TRUST)
        if name in ("run", "sweep", "pilot", "design"):
            command.add_argument("--quiet", action="store_true", help=QUIET)
        if words[:1] == [name]:
            if name == "sweep":
                from wirelessfl.cli.sweep import add_sweep_arguments

                add_sweep_arguments(sweep)
            if name == "timeline":
                _add_timeline_arguments(timeline)
            if name == "pilot":
                add_pilot_arguments(pilot)
            if name == "budget":
                from wirelessfl.cli.budget import add_budget_arguments

                add_budget_arguments(budget)
            if name == "plan":
                add_plan_arguments(plan)
            if name == "design":
                from wirelessfl.cli.design import add_design_arguments

                add_design_arguments(design)
            _add_run_flags(command, words[1:], name)
    add_price(subparsers, words, TRUST)
    resume = subparsers.add_parser(
        "resume",
        help="resume an interrupted run, or extend a run: wirelessfl resume DIR --rounds 50",
        description="Resume the interrupted run in a folder, or show a finished run. With a later "
        "end, the run continues to it, and equals a run that was started with it.",
    )
    resume.set_defaults(command=commands.resume)
    resume.add_argument("directory", type=expanded, metavar="DIR", help="run directory")
    resume.add_argument("--rounds", type=int, metavar="N", help="new number of rounds")
    resume.add_argument(
        "--target", type=float, metavar="X", help="new accuracy at which the run ends"
    )
    resume.add_argument(
        "--max-seconds", type=float, metavar="X", help="new limit on simulated seconds"
    )
    resume.add_argument("--json", action="store_true", help="print the summary table as JSON")
    resume.add_argument("--trust", action="store_true", help=TRUST)
    resume.add_argument("--quiet", action="store_true", help=QUIET)
    add_result_commands(subparsers)
    add_list(subparsers)
    add_check(subparsers)
    add_doctor(subparsers)
    add_completion(subparsers, _parser)
    bench = subparsers.add_parser(
        "bench",
        help="time the engine, whole commands, submodels, the simulator and the solvers",
    )
    bench.set_defaults(command=commands.bench)
    bench.add_argument(
        "benchmark",
        nargs="?",
        default="all",
        choices=["all", "engine", "command", "submodels", "simulator", "solvers"],
        help="benchmark to run (default: all)",
    )
    bench.add_argument("--json", action="store_true", help="print the rows as JSON")
    bench.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="timings of each case (default: 5)"
    )
    bench.add_argument(
        "--quick", action="store_true", help="use few clients, to check that everything runs"
    )
    bench.add_argument("--data-dir", type=expanded, metavar="PATH", help="folder of the data sets")
    return parser


def _add_run_flags(parser: argparse.ArgumentParser, words: Sequence[str], command: str) -> None:
    """Add the flags of all settings, and help for the choices named in ``words``."""
    from wirelessfl.cli.chosen import chosen_tables, user_flags
    from wirelessfl.cli.flags import add_flags
    from wirelessfl.cli.help import Help

    tables, named = chosen_tables(parser.prog, words)
    options: dict[str, Any] = {}
    if command == "budget":
        from wirelessfl.cli.budget import ALGORITHM

        tables, options = {"algorithm": {"name": ALGORITHM}, **tables}, {"headings": ("network",)}
    options["tables"] = tables
    add_flags(parser, user_flags(tables, named), lists=command == "sweep")
    parser.add_argument("-h", "--help", nargs="?", const="", action=Help, **options)


def _add_timeline_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``run`` does not have."""
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="X",
        help="simulated seconds to draw (default: 2 rounds; 20 s for requests to clients)",
    )
    parser.add_argument(
        "--picture",
        type=expanded,
        default=Path("results/timeline.png"),
        metavar="FILE",
        help="figure to write, as .png and .pdf (default: results/timeline.png)",
    )
