"""``wirelessfl plan``: what a round costs with each access, without training."""

from __future__ import annotations

import argparse
import json

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "compare accesses and masks by the costs of a round: wirelessfl plan hist [--flag value ...]"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print seconds, MiB and joules of a round for every access, and for uniform and optimized "
        "masks, side by side. Nothing is trained, and no data are read. Flags are those of `run`; "
        "--rounds N sets the number of rounds whose mean is taken (default: 5)."
    )
    parser.add_configuration()
    parser.add_settings()
    parser.add_argument(
        "--air-joules",
        action="store_true",
        default=None,
        help="compute the joules of all rounds over the air, which takes longer",
    )


def act(arguments: argparse.Namespace) -> int:
    """Print the options."""
    from wirelessfl.cli.flags import given_flags, merged, tables_of
    from wirelessfl.runs.pricing.options import ROUNDS, plan

    flags = given_flags(arguments)
    if "out" in flags:
        raise ConfigError(
            f"out={flags['out']} conflicts with plan, which stores no run: omit --out."
        )
    config = merged(tables_of(arguments), flags)
    rounds = config.training.rounds if "rounds" in flags else ROUNDS
    plans = plan(config, rounds, air_joules=arguments.air_joules)
    if arguments.json:
        options = [vars(option) | {"flags": option.flags} for option in plans]
        say(json.dumps({"plan": plans.title, "rounds": rounds, "options": options}, indent=2))
    else:
        say(plans.table())
    return 0
