"""``wirelessfl resume``: resumes an interrupted run, or extends a run."""

from __future__ import annotations

import argparse
from functools import partial

from wirelessfl.base.import_paths import expanded
from wirelessfl.cli.parser import Parser

HELP = "resume an interrupted run, or extend a run: wirelessfl resume DIR --rounds 50"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Resume the interrupted run in a folder, or show a finished run. With a later end, the run "
        "continues to it, and equals a run that was started with it."
    )
    parser.advice = (
        " The settings of a run are fixed; only its end may change: --rounds, --target and "
        "--max-seconds."
    )
    parser.add_argument("directory", type=expanded, metavar="DIR", help="run directory")
    parser.add_argument("--rounds", type=int, metavar="N", help="new number of rounds")
    parser.add_argument(
        "--target", type=float, metavar="X", help="new accuracy at which the run ends"
    )
    parser.add_argument(
        "--max-seconds", type=float, metavar="X", help="new limit on simulated seconds"
    )
    parser.add_json("print the summary table as JSON")
    parser.add_trust()
    parser.add_quiet()


def act(arguments: argparse.Namespace) -> int:
    """Resume a run."""
    from wirelessfl.cli.output import watch
    from wirelessfl.runs.run import resume
    from wirelessfl.training.workers.shards import sharded

    end = {name: getattr(arguments, name) for name in ("rounds", "target", "max_seconds")}
    with sharded() as shards:
        start = partial(resume, arguments.directory, trust=arguments.trust, **end)
        watch(shards, arguments, start)
    return 0
