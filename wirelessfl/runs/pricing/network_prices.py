"""Prices of the same rounds over several networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from channels.notes import Notes
from channels.summaries import count_of, span
from wirelessfl.air.uplinks.checked import checked_access
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.plausible import implausible
from wirelessfl.runs.pricing.networks import CELL_BY_CELL, RecordedRounds
from wirelessfl.runs.pricing.price import check_priceable, priced
from wirelessfl.runs.pricing.radio import COSTS, FIXED, KEYS, Row, dependences

VARYING = tuple(name for name in COSTS if name not in FIXED)
"""Fields of rows that differ from network to network; others may, if participants do."""
NAMES = (*KEYS, "task")
"""Fields that say which round a row is about."""
LINKS = ("downlink_mbps", "backhaul_mbps", "coherence", "cycles_per_flop", "pilot_symbols")
"""Settings of the network that are not part of a ``channels.Network``."""


@dataclass(frozen=True, eq=False)
class Entry:
    """One of several networks.

    Args:
        config: the settings over it.
        network: the network.
        given: whether the network is given as an object, and not named by the settings.
    """

    config: Config
    network: Network
    given: bool

    @property
    def shared(self) -> tuple[Any, ...]:
        """What networks share whose rounds can be recorded once: links, antennas and fading."""
        network, fading = self.network, self.network.fading
        try:
            hash(fading)
        except TypeError:
            fading = id(fading)  # type: ignore[assignment]
        links = tuple(getattr(self.config.network, name) for name in LINKS)
        uplink = repr(self.config.uplink)
        measured = network.devices is not None
        return uplink, links, network.antennas, network.antenna_correlation, fading, measured


@dataclass(frozen=True, eq=False)
class NetworkPrices:
    """Costs of the same rounds over several networks.

    >>> import channels, wirelessfl
    >>> config = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=3)
    >>> streams = [channels.Stream(number) for number in range(5)]
    >>> networks = channels.umi(cells=1, clients=4, stream=streams)
    >>> prices = wirelessfl.price(config, network=networks)
    >>> prices.seconds.shape, len(prices.rows_of(2))
    ((5, 4), 4)

    Args:
        networks: the networks.
        common: rows with what all networks have in common, such as ``round`` and ``uplink_mib``.
        fields: the costs that differ, by field of rows, each [networks, rows].
    """

    networks: Sequence[Network]
    common: Sequence[Row]
    fields: dict[str, FloatArray]

    def __len__(self) -> int:
        return len(self.networks)

    def __repr__(self) -> str:
        """One line."""
        ends = [f"{span(self.seconds[:, -1], 's')}"]
        if "joules" in self.fields:
            ends.append(f"{span(self.joules[:, -1], 'J')} per client")
        rounds = count_of(int(self.common[-1]["round"]), "round")
        return (
            f"<{type(self).__name__}: {count_of(len(self), 'network')}, {rounds} in {ends[0]}"
            + (f", {ends[1]}>" if len(ends) > 1 else ">")
        )

    @property
    def rounds(self) -> Any:
        """The round of each row, [rows]."""
        return np.array([row["round"] for row in self.common])

    @property
    def seconds(self) -> FloatArray:
        """Simulated seconds [networks, rows] since the start."""
        return self.fields["sim_seconds"]

    @property
    def joules(self) -> FloatArray:
        """Energy [networks, rows] since the start, mean over the clients.

        Raises:
            ConfigError: the prices were computed without joules.
        """
        if "joules" not in self.fields:
            raise ConfigError("the prices have no joules: call price(...) with joules=True.")
        return self.fields["joules"]

    def rows_of(self, number: int) -> list[dict[str, Any]]:
        """The rows over one network.

        Args:
            number: the network's place.
        """
        values = {name: column[number].tolist() for name, column in self.fields.items()}
        return [
            {name: values[name][at] if name in values else value for name, value in row.items()}
            for at, row in enumerate(self.common)
        ]


def network_prices(
    entries: Sequence[Entry],
    rounds: int | None,
    objects: GivenObjects,
    *,
    joules: bool = True,
) -> NetworkPrices:
    """The costs of the same rounds over several networks.

    Rounds over an error-free uplink are planned once for all networks with the same fading.

    Args:
        entries: the networks, with equal cells.
        rounds: number of rounds; None for all.
        objects: other Python objects that replace settings.
        joules: whether to compute the energy.

    Raises:
        ConfigError: an upload never ends, or see ``price``; the message names the network.
    """
    check_priceable(entries[0].config, rounds, joules)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, entry in enumerate(entries):
        groups.setdefault(entry.shared, []).append(number)
    arrays: dict[str, FloatArray] = {}
    common: list[dict[str, Any]] = []
    for numbers in groups.values():
        some = [entries[number] for number in numbers]
        rows, fields = _priced(some, numbers, rounds, objects, joules=joules)
        common = common or rows
        _check_same(rows, common, numbers[0])
        for name in (name for name in rows[0] if name not in NAMES):
            into = arrays.setdefault(name, np.empty((len(entries), len(rows))))
            into[numbers] = fields[name] if name in fields else [row[name] for row in rows]
    notes, seen = Notes(), set[int]()
    for entry in entries:
        new = id(entry.config) not in seen
        notes(*implausible(entry.config, entry.network, settings=new))
        seen.add(id(entry.config))
    differing = {
        name: values
        for name, values in arrays.items()
        if name in VARYING or (values != values[0]).any()
    }
    return NetworkPrices([entry.network for entry in entries], common, differing)


def _priced(
    entries: Sequence[Entry],
    numbers: Sequence[int],
    rounds: int | None,
    objects: GivenObjects,
    *,
    joules: bool,
) -> tuple[list[dict[str, Any]], dict[str, FloatArray]]:
    """Rows over the first of some networks, and the costs over all of them by field."""
    first = entries[0]
    config = first.config
    together = config.regime.common_rounds and not any(dependences(config))
    together = together and first.network.devices is None and first.network.subcarriers == 1
    together = together and not first.network.hands_over
    if not (together and type(checked_access(config.uplink)) in CELL_BY_CELL):
        rows_of_networks = [
            _alone(entry, number, rounds, objects, joules=joules)
            for entry, number in zip(entries, numbers, strict=True)
        ]
        for rows, number in zip(rows_of_networks, numbers, strict=True):
            _check_same(rows, rows_of_networks[0], number)
        names = [name for name in rows_of_networks[0][0] if name not in NAMES]
        return rows_of_networks[0], {
            name: np.array([[row[name] for row in rows] for rows in rows_of_networks])
            for name in names
        }
    try:
        recorded = RecordedRounds.of(config, rounds, _with(objects, first))
    except ConfigError as error:
        raise ConfigError(f"network[{numbers[0]}]: {error}") from error
    try:
        costs = recorded.costs([entry.network for entry in entries])
    except ValueError:
        for entry, number in zip(entries, numbers, strict=True):  # to name the network
            _alone(entry, number, rounds, objects, joules=joules)
        raise
    ends = np.isfinite(costs["sim_seconds"][:, -1]) & np.isfinite(costs["joules"][:, -1])
    for place in np.flatnonzero(~ends).tolist():
        _alone(entries[place], numbers[place], rounds, objects, joules=joules)  # raises
    fields = {name: np.pad(values, ((0, 0), (1, 0))) for name, values in costs.items()}
    rows = recorded.prices
    if not joules:
        rows = [
            {n: v for n, v in row.items() if n == "sim_seconds" or n not in fields} for row in rows
        ]
        fields = {"sim_seconds": fields["sim_seconds"]}
    return rows, fields


def _check_same(rows: Sequence[Row], first: Sequence[Row], number: int) -> None:
    """Refuse a network over which the run has other rounds, or tasks in another order."""
    one, other = ([[row.get(name) for name in NAMES] for row in some] for some in (rows, first))
    if one != other:
        raise ConfigError(
            f"over network[{number}] the run has other rounds or tasks in its {len(one)} rows than "
            f"over the first one in its {len(other)}: price them one by one."
        )


def _with(objects: GivenObjects, entry: Entry) -> GivenObjects:
    return replace(objects, network=entry.network) if entry.given else objects


def _alone(
    entry: Entry, number: int, rounds: int | None, objects: GivenObjects, *, joules: bool
) -> list[dict[str, Any]]:
    try:
        return priced(entry.config, rounds, _with(objects, entry), joules=joules).prices.rows
    except ConfigError as error:
        raise ConfigError(f"network[{number}]: {error}") from error
