"""``wirelessfl run | sweep | timeline | resume | list | bench``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import wirelessfl
from wirelessfl import check_packages
from wirelessfl.cli.parser import Parser
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.processes import launched

if TYPE_CHECKING:
    from wirelessfl.config import Config
    from wirelessfl.runs.result import RunResult
    from wirelessfl.runs.transitions import Transition
    from wirelessfl.training.shards import Shards

USER_ERRORS = (ConfigError, DataError, TrainingError, ImportError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; a user's error is one line on stderr and exit status 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    leads = launched()[0] == 0  # torchrun's processes run into the same errors
    try:
        check_packages()
        sys.path.append(os.getcwd())  # where users keep modules that they name
        parsed = _parser(words).parse_args(words)
        status: int = parsed.command(parsed)
    except USER_ERRORS as error:
        if leads or isinstance(error, TrainingError):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="wirelessfl",
        description="Design wireless networks and federated learning together.",
    )
    parser.add_argument(
        "--version", action="version", version=f"wirelessfl {wirelessfl.__version__}"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="train: wirelessfl run ALGORITHM [--flag value ...], or --config FILE.toml",
        description="Train a model over a simulated wireless network. Name an algorithm, or give a "
        "configuration; flags win over the configuration.",
        allow_abbrev=False,
    )
    run.set_defaults(command=_run)
    sweep = commands.add_parser(
        "sweep",
        help="all combinations: wirelessfl sweep ALGORITHM --cells 2,4 --seed 1,2,3",
        description="Run every combination of the given values, each once: runs are kept in the "
        "folder --out (runs/sweep) under the hash of their settings. Flags are those of `run`, "
        "with values separated by commas, or by semicolons where a value has commas itself.",
        allow_abbrev=False,
    )
    sweep.set_defaults(command=_sweep)
    timeline = commands.add_parser(
        "timeline",
        help="draw who works on what: wirelessfl timeline fedast --seconds 20 [--flag value ...]",
        description="Simulate the first seconds of a run of several tasks without training, and "
        "draw each client's work and the merges. Flags are those of `run`.",
        allow_abbrev=False,
    )
    timeline.set_defaults(command=_timeline)
    for name, command in (("run", run), ("sweep", sweep), ("timeline", timeline)):
        command.add_argument("algorithm", nargs="?", metavar="ALGORITHM", help="`wirelessfl list`")
        command.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML")
        command.add_argument("--json", action="store_true", help="print the table as JSON")
        if words[:1] == [name]:
            if name == "sweep":
                from wirelessfl.cli.sweep import add_sweep_arguments

                add_sweep_arguments(sweep)
            if name == "timeline":
                _add_timeline_arguments(timeline)
            _add_run_flags(command, words[1:], lists=name == "sweep")
    resume = commands.add_parser("resume", help="resume an interrupted run")
    resume.set_defaults(command=_resume)
    resume.add_argument("directory", type=Path, metavar="DIR", help="the run's folder")
    resume.add_argument("--json", action="store_true", help="print the closing table as JSON")
    listing = commands.add_parser(
        "list", help="algorithms, data sets, models, uplinks, warm starts"
    )
    listing.set_defaults(command=_list)
    bench = commands.add_parser(
        "bench",
        help="time engine, whole commands, submodels, simulator and solvers on this machine",
    )
    bench.set_defaults(command=_bench)
    bench.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=["all", "engine", "command", "submodels", "simulator", "solvers"],
        help="default: all",
    )
    bench.add_argument("--json", action="store_true", help="print the rows as JSON")
    bench.add_argument("--repeats", type=int, default=5, metavar="N", help="runs of each (5)")
    bench.add_argument("--quick", action="store_true", help="few clients: only to see it work")
    bench.add_argument("--data-dir", type=Path, metavar="PATH", help="folder of the data sets")
    return parser


def _add_run_flags(
    parser: argparse.ArgumentParser, words: Sequence[str], *, lists: bool = False
) -> None:
    """Flags of the algorithm and uplink that the words name; of all where they name none."""
    from wirelessfl.algorithms import algorithm_classes, find_algorithm
    from wirelessfl.cli.flags import add_flags
    from wirelessfl.config.tables import read_toml
    from wirelessfl.uplinks import find_uplink, uplink_classes
    from wirelessfl.warm_starts import find_warm_start, warm_start_classes

    scout = Parser(prog=parser.prog, add_help=False, allow_abbrev=False, lenient=True)
    scout.add_argument("--config", type=Path)
    scout.add_argument("--uplink")
    scout.add_argument("--warm-start")
    scout.add_argument("--local")
    known, rest = scout.parse_known_args(words)
    tables: dict[str, Any] = read_toml(known.config) if known.config else {}

    def named(section: str) -> str | None:
        table = tables.get(section)
        name = table.get("name") if isinstance(table, dict) else table
        return name if isinstance(name, str) else None

    first = rest[0] if rest and not rest[0].startswith("-") else None
    algorithm, uplink = first or named("algorithm"), known.uplink or named("uplink")
    warm_start = known.warm_start or named("warm_start")
    table = tables.get("algorithm")
    kept = table.get("local") if isinstance(table, dict) else None
    local = known.local or (kept if isinstance(kept, str) else "fedavg")
    add_flags(
        parser,
        [find_algorithm(algorithm, inner) for inner in local.split(",")]
        if algorithm
        else algorithm_classes().values(),
        [find_uplink(name) for name in uplink.split(",")] if uplink else uplink_classes().values(),
        [find_warm_start(name) for name in warm_start.split(",")]
        if warm_start
        else warm_start_classes().values(),
        lists=lists,
    )


def _add_timeline_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that ``run`` has not."""
    parser.add_argument(
        "--seconds", type=float, default=20.0, metavar="X", help="simulated seconds to draw (20)"
    )
    parser.add_argument(
        "--picture",
        type=Path,
        default=Path("timeline.png"),
        metavar="FILE",
        help="where to draw, as .png and .pdf (timeline.png)",
    )


def _timeline(arguments: argparse.Namespace) -> int:
    from wirelessfl.cli.flags import given_flags
    from wirelessfl.config import Config
    from wirelessfl.config.tables import tables_from_flags
    from wirelessfl.runs.timeline import timeline

    own = ["algorithm", "config", "json", "command", "seconds", "picture"]
    flags = given_flags(arguments, own)
    config = Config.of(tables_from_flags(_tables(arguments), flags))
    if arguments.picture.suffix not in (".png", ".pdf"):
        raise ConfigError(f"picture is {arguments.picture}: name a .png or .pdf; both are written.")
    if config.run.out is not None:
        raise ConfigError(f"out is {config.run.out}, and nothing is trained: leave it out.")
    found = timeline(config, arguments.seconds)
    if arguments.json:
        print(json.dumps(found.summary(), indent=2))
    for file in found.draw(arguments.picture):
        _say(Console(stderr=arguments.json), f"drawn: {file}")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from wirelessfl.cli.flags import given_flags
    from wirelessfl.config import Config
    from wirelessfl.config.tables import tables_from_flags
    from wirelessfl.runs.run import run
    from wirelessfl.setup.computing import fewer_workers
    from wirelessfl.training.shards import sharded

    tables = _tables(arguments)
    flags = given_flags(arguments, ["algorithm", "config", "json", "command"])
    config = Config.of(tables_from_flags(tables, flags))
    if "workers" not in flags:  # those of a stored configuration may be of a larger machine
        config = fewer_workers(config)
    with sharded() as shards:
        if config.run.workers is None and shards.count == 1:  # a command can start processes
            config = config.with_run({"workers": "auto"})
        _watch(config, shards, arguments.json, partial(run, config))
    return 0


def _tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """The configuration file's tables, with the algorithm that the command names."""
    from wirelessfl.config.tables import read_toml

    tables: dict[str, Any] = read_toml(arguments.config) if arguments.config else {}
    if arguments.algorithm:
        kept = tables.get("algorithm")
        same = isinstance(kept, dict) and kept.get("name") == arguments.algorithm
        tables["algorithm"] = kept if same else {"name": arguments.algorithm}
    if "algorithm" not in tables:
        raise ConfigError("no algorithm: name one, or give --config FILE.toml.")
    return tables


def _sweep(arguments: argparse.Namespace) -> int:
    from wirelessfl.cli.sweep import sweep_command

    return sweep_command(arguments, _tables(arguments))


def _resume(arguments: argparse.Namespace) -> int:
    from wirelessfl.runs.directory import RunDirectory
    from wirelessfl.runs.run import resume
    from wirelessfl.training.shards import sharded

    with sharded() as shards:
        config = shards.by_first(lambda: RunDirectory.open(arguments.directory)[1])
        _watch(config, shards, arguments.json, partial(resume, arguments.directory))
    return 0


def _watch(config: Config, shards: Shards, as_json: bool, start: Callable[..., RunResult]) -> None:
    """Show a run's progress, and its closing table."""
    from wirelessfl.cli.show import progress

    if shards.rank > 0:
        start(shards=shards)
        return
    console = Console(stderr=True)
    with progress(config, console) as show:
        result = start(on_row=show, on_note=partial(_say, console), shards=shards)
    _close(result, as_json)


def _close(result: RunResult, as_json: bool) -> None:
    from wirelessfl.cli.show import closing_table, transitions_table

    summary, each = result.summary(), result.summaries()
    changes = _changes(result)
    if changes:
        summary["transitions"] = [vars(change) for change in changes]
    if as_json:
        print(json.dumps({**summary, "tasks": each} if len(each) > 1 else summary, indent=2))
        return
    console = Console()
    console.print(closing_table(each))
    if changes:
        console.print(transitions_table(changes))
    _say(console, f"rows, parameters and settings: {summary['directory']}")


def _changes(result: RunResult) -> list[Transition]:
    """What changes of clients cost, where there were any and the rows say it."""
    if result.config.sessions.sessions is None:
        return []
    try:
        return result.transitions()
    except ValueError:  # the first rounds of sessions were not tested
        return []


def _say(console: Console, text: str) -> None:
    """Print a line as it is: folders may hold brackets, and must not be wrapped."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _list(arguments: argparse.Namespace) -> int:
    from rich.table import Table

    from wirelessfl.algorithms import algorithm_classes
    from wirelessfl.data import dataset_names
    from wirelessfl.models import MODELS
    from wirelessfl.uplinks import uplink_classes
    from wirelessfl.warm_starts import warm_start_classes

    def first_line(thing: Any) -> str:
        return (thing.__doc__ or "").strip().splitlines()[0]

    table = Table(show_header=False, box=None, padding=(0, 2))
    for kind, things in (
        ("algorithms", {n: first_line(c) for n, c in algorithm_classes().items()}),
        ("data sets", dict.fromkeys(dataset_names(), "")),
        ("models", {n: first_line(c) for n, c in MODELS.items()}),
        ("uplinks", {n: first_line(c) for n, c in uplink_classes().items()}),
        ("warm starts of sessions", {n: first_line(c) for n, c in warm_start_classes().items()}),
    ):
        table.add_row(f"[bold]{kind}[/bold]", "")
        for name, text in sorted(things.items()):
            table.add_row(f"  {name}", text)
    Console().print(table)
    return 0


def _bench(arguments: argparse.Namespace) -> int:
    from wirelessfl.bench.suite import bench

    return bench(
        arguments.what, arguments.repeats, arguments.data_dir, arguments.json, arguments.quick
    )
