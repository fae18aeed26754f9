"""The command `price`: a trained run over another radio, without training."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wirelessfl.errors import ConfigError
from wirelessfl.import_paths import expanded
from wirelessfl.terminal import say

USAGE = "RUN [--uplink NAME] [--target X] [--json] [--trust] [--flag value ...]"
OWN = ("directory", "json", "trust", "command", "target")
"""Arguments that are not settings of the radio."""
HEADINGS = ("network", "uplink")


def add_price(subparsers: Any, words: Sequence[str], trust: str) -> None:
    """Add the command.

    Args:
        subparsers: those of the main parser.
        words: the command line.
        trust: help of ``--trust``.
    """
    command: argparse.ArgumentParser = subparsers.add_parser(
        "price",
        help="price a trained run over another radio: wirelessfl price RUN --uplink ofdma",
        description="Print a trained run beside the seconds and joules that it would have had over "
        "another network or uplink. Cells, clients, seed and training stay; nothing is trained, "
        "and no data are read. Flags of the network and the uplink are those of `run`; naming an "
        "uplink replaces all settings of that of the run. --target X prices the rounds to an "
        "accuracy (default: the run's target).",
        allow_abbrev=False,
        add_help=False,
    )
    command.set_defaults(command=price_command)
    command.add_argument("directory", type=expanded, metavar="RUN", help="folder of the run")
    command.add_argument("--json", action="store_true", help="print the results as JSON")
    command.add_argument("--trust", action="store_true", help=trust)
    if words[:1] == ["price"]:
        _add_flags(command, words[1:])


def _add_flags(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Add the flags of all settings; those of training are refused with a remedy."""
    from wirelessfl.cli.chosen import chosen_tables, user_flags
    from wirelessfl.cli.flags import add_flags
    from wirelessfl.cli.help import Help

    folder = next((word for word in words if Path(word, "config.toml").is_file()), None)
    tables: dict[str, Any] = {}
    names: Mapping[str, Sequence[str]] = {}
    if folder is not None:
        rest = [word for word in words if word != folder]
        tables, names = chosen_tables(command.prog, ["--config", f"{folder}/config.toml", *rest])
    tables = {"algorithm": {"name": "hfedavg"}, **tables}
    add_flags(command, user_flags(tables, names))
    command.add_argument(
        "-h",
        "--help",
        nargs="?",
        const="",
        action=Help,
        tables=tables,
        headings=HEADINGS,
        usage=USAGE,
    )


def price_command(arguments: argparse.Namespace) -> int:
    """Print a run beside its price."""
    from wirelessfl.cli.flags import given_flags
    from wirelessfl.results.elsewhere import price_over
    from wirelessfl.results.load import load
    from wirelessfl.rounds.equal_shares import compared

    run = load(arguments.directory, trust=arguments.trust)
    flags = given_flags(arguments, OWN)
    if not flags:
        raise ConfigError(
            "no setting of the radio is given, so that the run has its own price: give one, such "
            "as --uplink ofdma or --bandwidth-hz 2e6. `wirelessfl show` prints the run."
        )
    found = price_over(run, flags)
    target = _target(arguments.target)
    if arguments.json:
        trained, now = found.costs(target)
        changes = {name: list(pair) for name, pair in found.changes.items()}
        told = {"run": str(run.directory), "trained": trained, "priced": now}
        say(json.dumps(told | {"changes": changes, "rows": found.rows}, indent=2))
        return 0
    lines = [f"{found.label}: {found.differences()}", found.table(target)]
    bought = compared(found.rows[-1])
    for line in [*lines, *([] if bought is None else [bought])]:
        say(line)
    return 0


def _target(text: str | None) -> float | None:
    """The target as a number.

    Raises:
        ConfigError: it is not one.
    """
    try:
        return None if text is None else float(text)
    except ValueError:
        raise ConfigError(f"target is {text!r}: give a number, such as 0.8.") from None
