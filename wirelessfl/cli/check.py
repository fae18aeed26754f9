"""``wirelessfl check``: contract tests of users' classes and functions."""

from __future__ import annotations

import argparse
import json

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "test your own class or function: wirelessfl check my_rule:MyRule"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Test classes and functions of yours in small runs: an algorithm, uplink, access, "
        "schedule, selection, split, model, data set and so on. Exit status 2 if a contract does "
        "not hold."
    )
    parser.add_argument("things", nargs="+", metavar="PATH", help="module:name or file.py:name")
    parser.add_argument("--kind", metavar="KIND", help="kind, if it is unclear, e.g. uplink")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that replaces a default; repeat the flag for each",
    )
    parser.add_json()


def act(arguments: argparse.Namespace) -> int:
    """Print one line per contract; 2 if one does not hold."""
    from wirelessfl.runs.checking import check

    settings = dict(_setting(words) for words in arguments.settings)
    reports = []
    for thing in arguments.things:
        report = check(thing, kind=arguments.kind, **settings)
        reports.append(report)
        if not arguments.json:
            say(report, flush=True)
    if arguments.json:
        say(json.dumps([report.as_dict() for report in reports], indent=2))
    return 0 if all(report.passed for report in reports) else 2


def _setting(words: str) -> tuple[str, str]:
    name, equals, value = words.partition("=")
    if not (name and equals):
        raise ConfigError(f"--set is {words!r}: write NAME=VALUE, e.g. --set mu=0.1.")
    return name.removeprefix("--").replace("-", "_"), value
