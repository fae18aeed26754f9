"""``wirelessfl table``: final accuracy and costs over seeds."""

from __future__ import annotations

import argparse

from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "table over seeds: wirelessfl table RUN ... --by algorithm"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print final accuracy and costs until a target: mean and range over the runs of each "
        "group, and how many reached the target. Groups in which most runs reach it come first, "
        "then those of lower cost."
    )
    parser.add_runs()
    parser.add_by()
    parser.add_target()
    parser.add_argument(
        "--sort",
        choices=["seconds", "rounds", "mib", "joules"],
        metavar="COST",
        help="seconds, rounds, mib or joules (default: seconds; by accuracy without a target)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the results as JSON")
    form.add_argument("--csv", action="store_true", help="print the numbers as CSV")
    form.add_argument("--latex", action="store_true", help="print LaTeX, for package booktabs")


def act(arguments: argparse.Namespace) -> int:
    """Print a table over seeds."""
    from wirelessfl.results import load_all

    table = load_all(arguments.runs).table(
        arguments.by,
        target=arguments.target,
        field=arguments.field,
        sort=arguments.sort,
        tests=arguments.tests,
    )
    if arguments.json:
        say(table.to_json())
    elif arguments.csv:
        say(table.to_csv(), end="")
    elif arguments.latex:
        say(table.to_latex(), end="")
    else:
        say(table)
    return 0
