"""``wirelessfl bench``: the benchmarks, which lie beside the packages of a checkout."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.cli.parser import Parser

HELP = "time the engine, whole commands, submodels, the simulator, the solvers and a GPU"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "benchmark",
        nargs="?",
        default="all",
        choices=["all", "engine", "command", "submodels", "simulator", "solvers", "gpu"],
        help="benchmark to run (default: all)",
    )
    parser.add_json("print the rows as JSON")
    parser.add_argument(
        "--repeats", type=int, default=5, metavar="N", help="timings of each case (default: 5)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="use few clients, to check that everything runs"
    )
    parser.add_argument("--data-dir", type=expanded, metavar="PATH", help="folder of the data sets")


def act(arguments: argparse.Namespace) -> int:
    """Run the benchmarks."""
    checkout = Path(__file__).parents[2]
    if not (checkout / "benchmarks" / "suite.py").is_file():
        raise ConfigError(
            "the benchmarks are not part of the installed package: run `wirelessfl bench` of a "
            "checkout (pip install --editable)."
        )
    sys.path.insert(0, str(checkout))
    status: int = import_module("benchmarks.suite").bench(
        arguments.benchmark, arguments.repeats, arguments.data_dir, arguments.json, arguments.quick
    )
    return status
