"""``wirelessfl design``: chooses how to train over the configured network."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import expanded
from wirelessfl.terminal import Terminal, say

if TYPE_CHECKING:
    from wirelessfl.config import Config

OWN = (
    *("objective", "among", "max_client_joules", "pilots", "pilot_steps", "jobs", "draws"),
    *("statistic", "air_snr_db", "save", "picture", "run"),
)
"""Arguments that are not settings of a run."""
LISTS = ("local_steps", "edge_rounds", "clients_per_round")
"""Settings of a run that restrict what is chosen from; values are separated by commas."""
NUMBERS = ("target", "max_seconds")
"""Settings of a run that are the goal."""
CHOSEN = (
    *("mask_sizes", "mask_shares", "allocation", "order", "round_deadline", "energy_weight"),
    *("late", "stop_at_target", "client_joules", "rounds"),
)
"""Settings that a design chooses, or that it does not consider."""
LEAST = {"pilots": 3, "draws": 2}
"""Least values of arguments that are numbers; 1 for others."""


def add_design_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``run`` does not have."""
    parser.add_argument(
        "--objective",
        metavar="X",
        help="seconds, joules, or W_T,W_E for W_T x seconds + W_E x joules per client, until the "
        "target (default: seconds)",
    )
    parser.add_argument(
        "--among", metavar="NAMES", help="algorithms to choose from, e.g. hfedavg,hist"
    )
    parser.add_argument(
        "--max-client-joules", metavar="X", help="limit on the joules of the run, mean per client"
    )
    parser.add_argument(
        "--statistic",
        metavar="X",
        help="mean, median, or a quantile such as 0.9 of the run's costs over its channels, which "
        "is minimised (default: mean)",
    )
    parser.add_argument(
        "--pilots", metavar="N", help="pilots per algorithm that differ in H and E (default: 8)"
    )
    parser.add_argument(
        "--pilot-steps", metavar="N", help="most local steps of a client in a pilot (default: 4000)"
    )
    parser.add_argument(
        "--air-snr-db",
        metavar="X,...",
        help="SNR of the pilots over the air, dB, with --uplink aircomp (default: the network's)",
    )
    parser.add_argument(
        "--jobs", metavar="N", help="number of pilots that train at a time (default: 1)"
    )
    parser.add_argument(
        "--draws", metavar="N", help="rounds that are simulated for the costs (default: 16)"
    )
    parser.add_argument(
        "--save", type=expanded, metavar="FILE", help="write the design as .toml, for run --config"
    )
    parser.add_argument("--run", action="store_true", help="train the design")
    parser.add_argument(
        "--picture", type=expanded, metavar="FILE", help="figure to write, as .png and .pdf"
    )


def design_command(
    tables: Mapping[str, Any],
    flags: dict[str, Any],
    arguments: argparse.Namespace,
    train: Callable[[Config], dict[str, Any] | None],
) -> int:
    """Design a run, print the tables, write the configuration and the figure, and train it.

    Args:
        tables: settings of a configuration file.
        flags: settings on the command line.
        arguments: the parsed command line.
        train: trains a run, and returns its summary if the output is JSON.

    Raises:
        ConfigError: an argument is wrong, or no design meets the goal.
    """
    from wirelessfl.cli.flags import merged
    from wirelessfl.codesign.design import design

    for name in CHOSEN:
        if name in flags:
            raise ConfigError(
                f"{name}={flags[name]} conflicts with design, which chooses it or does without: "
                f"leave --{name.replace('_', '-')} out."
            )
    _check_files(arguments)
    options: dict[str, Any] = {}
    for name in LISTS:
        if name in flags:
            options[name] = _integers(name, flags.pop(name))
    if "clients_per_round" in options:
        options["clients"] = options.pop("clients_per_round")
    for name in NUMBERS:
        if name in flags:
            options[name] = _number(name, flags.pop(name))
    if arguments.max_client_joules is not None:
        options["max_client_joules"] = _number("max_client_joules", arguments.max_client_joules)
    if arguments.objective is not None:
        options["objective"] = _objective(arguments.objective)
    if arguments.statistic is not None:
        options["statistic"] = arguments.statistic
        with suppress(ValueError):  # a word is checked with the other arguments
            options["statistic"] = float(arguments.statistic)
    if arguments.among is not None:
        options["among"] = [name.strip() for name in arguments.among.split(",")]
    if "uplink" in flags:
        options["uplinks"] = str(flags.pop("uplink")).split(",")
        if "aircomp" in options["uplinks"]:
            flags["uplink"] = "aircomp"  # the other settings of this uplink are those of the design
    if arguments.air_snr_db is not None:
        words = arguments.air_snr_db.split(",")
        options["air_snr_db"] = [_number("air_snr_db", word) for word in words]
    if "out" in flags:
        options["root"] = flags.pop("out")
    for name in ("pilots", "pilot_steps", "jobs", "draws"):
        if getattr(arguments, name) is not None:
            options[name] = _integer(name, getattr(arguments, name))
    console = Terminal(stderr=True)

    def tell(text: str) -> None:
        if not arguments.quiet:
            console.tell(text)

    on_note = None if arguments.quiet else tell
    solution = design(merged(tables, flags), **options, on_note=on_note)
    found = solution.value
    assert found is not None
    facts = found.facts() | {"solution": str(solution)}
    if arguments.json and not arguments.run:
        say(json.dumps(facts, indent=2))
    elif not arguments.json:
        say(found.table())
        say(solution)
    if arguments.save is not None:
        trusting = " --trust" if found.config.code else ""
        tell(f"to train it: wirelessfl run --config {found.save(arguments.save)}{trusting}")
    if arguments.picture is not None:
        from wirelessfl.figures import save_figure

        for file in save_figure(found.plot(), arguments.picture):
            tell(f"drawn: {file}")
    if arguments.run:
        summary = train(found.config)
        if arguments.json:
            say(json.dumps(facts | {"run": summary}, indent=2))
    return 0


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before any work.

    Raises:
        ConfigError: one of them.
    """
    from wirelessfl.runs.files import check_writable

    save, picture = arguments.save, arguments.picture
    if save is not None:
        if save.suffix != ".toml":
            raise ConfigError(f"save is {save}: name a .toml file.")
        check_writable(save.parent, "save")
    if picture is not None:
        if picture.suffix not in (".png", ".pdf"):
            raise ConfigError(f"picture is {picture}: name a .png or .pdf; both are written.")
        check_writable(picture.parent, "picture")


def _integers(name: str, words: str) -> list[int]:
    try:
        return [int(word) for word in str(words).split(",")]
    except ValueError:
        raise ConfigError(f"{name} is {words!r}: give integers >= 1, e.g. 5,10,20.") from None


def _integer(name: str, word: str) -> int:
    try:
        number = int(word)
    except ValueError:
        number = 0
    least = LEAST.get(name, 1)
    if number < least:
        raise ConfigError(f"{name} is {word!r}: give an integer >= {least}.")
    return number


def _number(name: str, word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise ConfigError(f"{name} is {word!r}: give a number.") from None


def _objective(words: str) -> str | list[float]:
    if "," not in words:
        return words
    try:
        return [float(word) for word in words.split(",")]
    except ValueError:
        raise ConfigError(
            f"objective is {words!r}: give seconds, joules, or two weights, e.g. 1,50."
        ) from None
