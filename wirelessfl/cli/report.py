"""``wirelessfl report``: one HTML file on stored runs, to read and to send."""

from __future__ import annotations

import argparse
from pathlib import Path

from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "a page on runs: wirelessfl report RUN ... -o report.html"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Write one HTML file on runs, which loads nothing from elsewhere: curves to zoom and "
        "toggle against rounds, seconds, joules or MiB; costs of targets; settings that differ; "
        "where time and energy go, and who took part (from client logs); clients by SNR; errors "
        "over the air."
    )
    parser.add_runs()
    parser.add_by()
    parser.add_target(several=True)
    parser.add_trust("the code that the runs' settings name as module:name, for their networks")
    parser.add_argument(
        "-o",
        "--output",
        type=expanded,
        default=Path("report.html"),
        metavar="FILE",
        help="a .html file in an existing folder (default: report.html)",
    )


def act(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from wirelessfl.base.packages import bokeh
    from wirelessfl.results import load_all
    from wirelessfl.results.report import checked_output

    checked_output(arguments.output)
    bokeh("plotting")
    file = load_all(arguments.runs, trust=arguments.trust).report(
        arguments.output,
        by=arguments.by,
        targets=arguments.target,
        field=arguments.field,
        tests=arguments.tests,
    )
    say(f"written: {file}")
    return 0
