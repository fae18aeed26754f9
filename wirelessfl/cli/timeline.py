"""``wirelessfl timeline``: draws what each client does over simulated time, without training."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.ranks import launched
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser, check_figure

HELP = "draw each client's work: wirelessfl timeline hist --rounds 1 [--flag value ...]"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Simulate the first rounds or seconds of a run without training, draw what each client "
        "does (compute, wait, send), and print where the time goes and who is the straggler. Flags "
        "are those of `run`; --rounds N sets the number of rounds (default: 2; at most 1000)."
    )
    parser.add_configuration()
    parser.add_settings()
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="X",
        help="simulated seconds to draw (default: 2 rounds; 20 s under schedules buffered and "
        "simultaneous)",
    )
    parser.add_argument(
        "--picture",
        type=expanded,
        default=Path("results/timeline.png"),
        metavar="FILE",
        help="figure to write, as .png and .pdf (default: results/timeline.png)",
    )


def act(arguments: argparse.Namespace) -> int:
    """Simulate, draw, and print the summary."""
    from wirelessfl.cli.flags import given_flags, merged, tables_of
    from wirelessfl.runs.pricing.round_timeline import RoundTimeline, round_timeline
    from wirelessfl.runs.timeline import SECONDS, Timeline
    from wirelessfl.runs.timeline import timeline as task_timeline

    if launched()[0] > 0:  # under torchrun, the first process draws
        return 0
    flags = given_flags(arguments)
    config = merged(tables_of(arguments), flags)
    check_figure("picture", arguments.picture)
    if "out" in flags:  # in a stored configuration, out is ignored
        raise ConfigError(
            f"out={flags['out']} conflicts with timeline, which stores no run: omit --out."
        )
    seconds = arguments.seconds
    if seconds is not None and "rounds" in flags and not config.regime.of_tasks:
        raise ConfigError(
            f"seconds={seconds:g} conflicts with rounds={flags['rounds']}: both say how much to "
            "draw. Give one of them."
        )
    drawn: Timeline | RoundTimeline
    if config.regime.of_tasks:
        drawn = task_timeline(config, SECONDS if seconds is None else seconds)
    else:
        drawn = round_timeline(
            config, config.training.rounds if "rounds" in flags else None, seconds
        )
    try:
        files = drawn.draw(arguments.picture)
    except OSError as error:
        raise ConfigError(
            f"picture is {arguments.picture}: {error.strerror}. Choose another file."
        ) from error
    if arguments.json:
        say(json.dumps(drawn.summary(), indent=2))
    elif isinstance(drawn, RoundTimeline):
        for line in drawn.lines():
            say(line)
    for file in files:
        say(f"drawn: {file}", error=arguments.json)
    return 0
