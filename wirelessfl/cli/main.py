"""``wirelessfl run | sweep | timeline | resume | list | bench``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import wirelessfl
from wirelessfl import check_packages
from wirelessfl.cli import commands
from wirelessfl.cli.parser import Parser
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.processes import launched

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
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    run = subparsers.add_parser(
        "run",
        help="train: wirelessfl run ALGORITHM [--flag value ...], or --config FILE.toml",
        description="Train a model over a simulated wireless network. Name an algorithm, or give a "
        "configuration; flags win over the configuration.",
        allow_abbrev=False,
    )
    run.set_defaults(command=commands.run)
    sweep = subparsers.add_parser(
        "sweep",
        help="all combinations: wirelessfl sweep ALGORITHM --cells 2,4 --seed 1,2,3",
        description="Run every combination of the given values, each once: runs are kept in the "
        "folder --out (runs/sweep) under the hash of their settings. Flags are those of `run`, "
        "with values separated by commas, or by semicolons where a value has commas itself.",
        allow_abbrev=False,
    )
    sweep.set_defaults(command=commands.sweep)
    timeline = subparsers.add_parser(
        "timeline",
        help="draw each client's work: wirelessfl timeline fedast --seconds 20 [--flag value ...]",
        description="Simulate the first seconds of a run under schedule buffered or simultaneous "
        "without training, and draw each client's work and the merges. Flags are those of `run`.",
        allow_abbrev=False,
    )
    timeline.set_defaults(command=commands.timeline)
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
    resume = subparsers.add_parser("resume", help="resume an interrupted run")
    resume.set_defaults(command=commands.resume)
    resume.add_argument("directory", type=Path, metavar="DIR", help="the run's folder")
    resume.add_argument("--json", action="store_true", help="print the closing table as JSON")
    listing = subparsers.add_parser(
        "list", help="algorithms, data sets, models, uplinks, schedules and other choices"
    )
    listing.set_defaults(command=commands.list_choices)
    bench = subparsers.add_parser(
        "bench",
        help="time engine, whole commands, submodels, simulator and solvers on this machine",
    )
    bench.set_defaults(command=commands.bench)
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
    from wirelessfl.config.kinds import KINDS
    from wirelessfl.config.presets import preset_of
    from wirelessfl.config.tables import read_toml

    scout = Parser(prog=parser.prog, add_help=False, allow_abbrev=False, lenient=True)
    scout.add_argument("--config", type=Path)
    scout.add_argument("--local")
    for kind in KINDS:
        scout.add_argument("--" + kind.replace("_", "-"))
    known, rest = scout.parse_known_args(words)
    tables: dict[str, Any] = read_toml(known.config) if known.config else {}

    def named(section: str) -> str | None:
        table = tables.get(section)
        name = table.get("name") if isinstance(table, dict) else table
        return name if isinstance(name, str) else None

    first = rest[0] if rest and not rest[0].startswith("-") else None
    algorithm = first or named("algorithm")
    table = tables.get("algorithm")
    kept = table.get("local") if isinstance(table, dict) else None
    local = known.local or (kept if isinstance(kept, str) else "fedavg")
    owners: dict[str, Any] = {
        "algorithm": [find_algorithm(algorithm, inner) for inner in local.split(",")]
        if algorithm
        else algorithm_classes().values()
    }
    preset = preset_of(algorithm or "")
    defaults = {"schedule": preset.schedule, "assignment": preset.assignment} if algorithm else {}
    for kind, found in KINDS.items():
        names = vars(known)[kind] or named(kind) or defaults.get(kind)
        owners[kind] = (
            [found.find(name) for name in names.split(",")] if names else found.classes().values()
        )
    if algorithm and not any(cls.work == "task rounds" for cls in owners["schedule"]):
        owners["assignment"] = []
    add_flags(parser, owners, {preset.schedule: preset.settings}, lists=lists)


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
