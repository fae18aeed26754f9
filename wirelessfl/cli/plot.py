"""``wirelessfl plot``: draws a field of the rows of runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser, check_figure

HELP = "plot runs: wirelessfl plot RUN ... -o FIG.pdf"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Plot a field of the rows: one curve per group, the mean over its runs with their range. A "
        "curve ends with the shortest run of its group."
    )
    parser.add_runs()
    parser.add_argument(
        "--x",
        default="seconds",
        metavar="FIELD",
        help="rounds, seconds, mib, joules, wall, or a field of rows (default: seconds)",
    )
    parser.add_argument(
        "--y",
        metavar="FIELD",
        help="accuracy, loss, or another field of rows (default: accuracy; without classes loss)",
    )
    parser.add_by("--group-by")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="GROUP=TEXT",
        help="text of a group in the legend; repeat the flag for each group",
    )
    parser.add_argument("--target", type=float, metavar="X", help="value of y to mark with a line")
    parser.add_argument(
        "--log",
        default="",
        choices=["x", "y", "xy"],
        metavar="AXES",
        help="axes with a logarithmic scale: x, y or xy",
    )
    parser.add_argument(
        "--smooth",
        type=int,
        default=1,
        metavar="N",
        help="number of successive rows that are averaged, odd (default: 1)",
    )
    parser.add_argument(
        "--style",
        default="ieee",
        choices=["ieee", "screen"],
        help="ieee: one column at print size; screen: for slides (default: ieee)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=expanded,
        default=Path("runs.pdf"),
        metavar="FIG",
        help=".pdf or .png; both are written (default: runs.pdf)",
    )


def act(arguments: argparse.Namespace) -> int:
    """Plot runs."""
    from wirelessfl.base.figures.curves import save_figure, use_style
    from wirelessfl.results import load_all

    check_figure("output", arguments.output)
    chosen = load_all(arguments.runs)
    try:
        figure = chosen.plot(
            arguments.x,
            arguments.y,
            by=arguments.by,
            labels=dict(map(_label, arguments.label)),
            target=arguments.target,
            log=arguments.log,
            smooth=arguments.smooth,
            style=arguments.style,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with use_style(arguments.style):
        files = save_figure(figure, arguments.output)
    for file in files:
        say(f"drawn: {file}")
    return 0


def _label(text: str) -> tuple[str, str]:
    """A group and its text, as written in a flag."""
    group, equals, label = text.partition("=")
    if not equals:
        raise ConfigError(f"label is {text!r}: write the group and its text, GROUP=TEXT.")
    return group, label
