"""The command `plan`: what a round costs with each access, without training."""

from __future__ import annotations

import argparse
import json
from typing import Any

from wirelessfl.terminal import say

HELP = "compare accesses and masks by the costs of a round: wirelessfl plan hist [--flag value ...]"


def add_plan(subparsers: Any) -> argparse.ArgumentParser:
    """Add the command, without the flags of settings."""
    command: argparse.ArgumentParser = subparsers.add_parser(
        "plan",
        help=HELP,
        description="Print seconds, MiB and joules of a round for every access, and for uniform "
        "and optimized masks, side by side. Nothing is trained, and no data are read. Flags are "
        "those of `run`; --rounds N sets the number of rounds whose mean is taken (default: 5). "
        "--air-joules computes the joules of all rounds over the air, which takes longer.",
        allow_abbrev=False,
        add_help=False,
    )
    return command


def add_plan_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments that ``run`` does not have."""
    command.add_argument(
        "--air-joules",
        action="store_true",
        default=None,
        help="compute the joules of all rounds over the air",
    )


def plan_command(config: Any, arguments: argparse.Namespace, rounds: int | None) -> int:
    """Print the options.

    Args:
        config: the settings.
        arguments: parsed command line.
        rounds: number of rounds; None for the default.
    """
    from wirelessfl.pricing.options import ROUNDS, plan

    found = plan(config, ROUNDS if rounds is None else rounds, air_joules=arguments.air_joules)
    if arguments.json:
        options = [vars(option) | {"flags": option.flags} for option in found]
        say(json.dumps({"plan": found.title, "rounds": found.rounds, "options": options}, indent=2))
        return 0
    say(found.table())
    return 0
