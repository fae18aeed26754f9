"""``wirelessfl compare``: compares runs, or groups of runs, with the first one."""

from __future__ import annotations

import argparse
import json

from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser, setting_names

HELP = "compare runs: wirelessfl compare RUN RUN ..."


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Compare runs, or groups of runs, with the first one: settings that differ, final "
        "accuracy, and costs until a target. Groups with common seeds are compared seed by seed, "
        "with the mean and its 95 % interval. Each RUN is a group, unless --by is given."
    )
    parser.add_json()
    parser.add_runs()
    parser.add_argument(
        "--by",
        type=setting_names,
        metavar="SETTING,...",
        help="group all runs by these settings, by flag name",
    )
    parser.add_target()


def act(arguments: argparse.Namespace) -> int:
    """Compare runs or groups of runs."""
    from wirelessfl.results import Runs, load_all
    from wirelessfl.results.comparison import compare

    if arguments.by is None:
        names = dict.fromkeys(path.rstrip("/") for path in arguments.runs)
        groups = {name: load_all(name) for name in names}
    else:
        cases = load_all(arguments.runs).cases(arguments.by)
        groups = {case.label: Runs(case.runs) for case in cases}
    comparison = compare(
        groups, target=arguments.target, field=arguments.field, tests=arguments.tests
    )
    say(json.dumps(comparison.to_dict(), indent=2) if arguments.json else comparison)
    return 0
