"""``wirelessfl budget``: the link budget of the configured network."""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any

from rich.table import Table

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.terminal import Terminal, say
from wirelessfl.cli.parser import Parser

if TYPE_CHECKING:
    from channels import Access, LinkBudget, Network
    from wirelessfl.air.uplinks import Uplink
    from wirelessfl.config import Config

HELP = "print the link budget: wirelessfl budget --layout hexagonal [--flag value ...]"
ALGORITHM = "hfedavg"
"""Algorithm if none is named; it has cells."""
KEPT = (("algorithm", "name"), ("run", "seed"))
"""Settings beside those of the radio that a link budget needs."""
FEW = 4
"""Maximum number of clients that have a column each; of more clients, quantiles are shown."""
BITS_PER_MIB = 8 * 2**20
WIDTH = 150
"""Width of a table with one line per client, if the terminal is narrower."""


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print each client's link budget, rate and upload time, or quantiles over clients. Nothing "
        "is trained. Flags of the network are those of `run`; without ALGORITHM, the network has "
        "cells as for hfedavg."
    )
    parser.add_configuration()
    parser.add_settings(algorithm=ALGORITHM, headings=("network",))
    parser.add_argument(
        "--upload-mib",
        type=float,
        default=1.0,
        metavar="X",
        help="size of each client's upload, MiB (default: 1)",
    )
    parser.add_argument(
        "--per-client", action="store_true", help="print one line per client, not quantiles"
    )


def budget_of(config: Config, upload_mib: float) -> tuple[Network, LinkBudget]:
    """The configured network and its link budget.

    Args:
        config: settings of a run.
        upload_mib: size of each client's upload.
    """
    from channels import link_budget
    from channels.notes import Notes
    from channels.streams import Stream
    from wirelessfl.air.links import check_flat
    from wirelessfl.base.wording import shown
    from wirelessfl.runs.build.network import build_network
    from wirelessfl.runs.build.plausible import implausible

    if not 0 < upload_mib < math.inf:
        raise ConfigError(f"upload_mib is {shown(upload_mib)}: give a finite number of MiB > 0.")
    if config.given.network is not None:
        raise ConfigError(
            "the settings belong to a run with network=... given to wirelessfl.run: call "
            "channels.link_budget(network)."
        )
    network = build_network(config.network, Stream(config.run.seed), config)
    check_flat(network, config.uplink)
    notes = Notes()
    notes(*implausible(config, network))
    if config.network.pilot_symbols:
        notes("a link budget does not count the seconds and joules of pilots: see price.")
    if config.mobility is not None and config.mobility.moves:
        notes("clients move, and a link budget has their gains in the first block.")
    if network.subcarriers > 1:
        notes(
            f"a link budget has the mean gain in each of the {network.subcarriers} subcarriers; "
            "that of a channel draw sums the rates of their own gains."
        )
    accesses = accesses_of(config.uplink, network)
    return network, link_budget(network, bits=upload_mib * BITS_PER_MIB, accesses=accesses)


def accesses_of(uplink: Uplink, network: Network) -> dict[str, Access]:
    """The accesses of a network's budget, and that of the uplink if it is another one, by name."""
    from channels.budget import ACCESSES, default_accesses
    from solvers import OverTheAir

    access = uplink.sizing  # there is no round whose deadline could be met
    if isinstance(access, OverTheAir):
        access = access.times  # beamformers do not change the seconds
    as_set = {} if access in ACCESSES.values() else {f"{uplink.name} as set": access}
    return {**default_accesses(network), **as_set}


def act(arguments: argparse.Namespace) -> int:
    """Print the link budget as a table or as JSON."""
    from wirelessfl.base.rows import finite
    from wirelessfl.base.wording import count_of
    from wirelessfl.cli.flags import given_flags, merged, tables_of
    from wirelessfl.runs.pricing.radio import TABLES

    if arguments.algorithm is None and arguments.config is None:
        arguments.algorithm = ALGORITHM
    flags = given_flags(arguments)
    config = merged(tables_of(arguments), flags)
    for flag, value in flags.items():
        place = config.homes[flag]
        if place[0] not in TABLES and place not in KEPT:  # it is of training
            raise ConfigError(f"{flag}={value} has no effect on a link budget: leave it out.")
    network, budget = budget_of(config, arguments.upload_mib)
    if arguments.json:
        result = {
            "upload_mib": arguments.upload_mib,
            "antennas": network.antennas,
            "quantiles": budget.table(),
            "clients": budget.rows(),
        }
        say(json.dumps(finite(result), indent=2, allow_nan=False))
        return 0
    console = Terminal()
    lines = notes(network, budget, arguments.upload_mib)
    if arguments.per_client and network.clients > FEW:
        console = Terminal(width=max(console.width, WIDTH))
        table, same = _by_client(budget)
        lines += same
    else:
        table = _by_quantity(budget)
    over = "" if arguments.per_client or network.clients <= FEW else ": quantiles over clients"
    cells = count_of(network.cells, "cell")
    table.title = f"link budget of {count_of(network.clients, 'client')} in {cells}{over}"
    console.print(table)
    for line in lines:
        console.tell(line)
    return 0


def notes(network: Network, budget: LinkBudget, upload_mib: float) -> list[str]:
    """What the table's numbers mean, and what they leave out."""
    from channels.budget import OVER_THE_AIR
    from wirelessfl.base.wording import count_of

    antennas = count_of(network.antennas, "antenna")
    lines = [
        f"{antennas} per edge server; upload of {upload_mib:g} MiB per client. The mean SNR is "
        "that of one antenna.",
        "Rates and seconds hold at mean channel gains, while all clients of a cell upload.",
    ]
    if OVER_THE_AIR in budget.rate_bps:
        lines.append(
            "Over the air, an element counts as 32 bits at any SNR: noise makes errors, not "
            "seconds."
        )
    if network.interference is None and network.interference_watts is None:
        lines.append("Interference between cells is off.")
    return lines


def _by_quantity(budget: LinkBudget) -> Table:
    """One line per quantity; a column for each client, or for each of three quantiles."""
    if len(budget.client) <= FEW:
        rows = budget.rows()
        heads = [f"client {row['client']}" for row in rows]
        names = [name for name in rows[0] if name not in ("client", "cell")]
        lines = {name: [row[name] for row in rows] for name in names}
    else:
        quantiles = budget.table()
        heads = [head for head in quantiles[0] if head != "quantity"]
        lines = {row["quantity"]: [row[head] for head in heads] for row in quantiles}
    table = Table()
    table.add_column("", no_wrap=True)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for name, values in lines.items():
        if any(value is not None for value in values):
            table.add_row(_title(name), *(_cell(name, value) for value in values))
    return table


def _by_client(budget: LinkBudget) -> tuple[Table, list[str]]:
    """One line per client, and a line for each quantity that is equal for all clients."""
    rows = budget.rows()
    shown = {name: [_cell(name, row[name]) for row in rows] for name in rows[0]}
    several = [name for name, cells in shown.items() if len(set(cells)) > 1]
    same = [
        f"{_title(name)} of all clients: {cells[0]}"
        for name, cells in shown.items()
        if name not in several and cells[0]
    ]
    table = Table()
    for name in several:
        table.add_column(_title(name), justify="right")
    for place in range(len(rows)):
        table.add_row(*(shown[name][place] for name in several))
    return table, same


def _title(name: str) -> str:
    return name.replace("[bit/s]", "[Mbit/s]")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if name in ("client", "cell"):
        return str(value)
    if name.endswith("[bit/s]"):
        return f"{value / 1e6:.4g}"
    return f"{value:.4g}" if name.endswith("[s]") else f"{round(value, 2) + 0.0:.2f}"
