"""Prices the same rounds over many networks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from channels import Access, EqualBands, EqualSlots, FixedRate, Network, ReadyOrder
from channels.arrays import BoolArray, FloatArray, IntArray
from solvers import EnergyWithinDeadline, OptimalBands
from solvers.access.many_bands import ManyBands
from wirelessfl.air.uplinks.checked import checked_access
from wirelessfl.runs.pricing.recorded import GainDraw, RecordedRounds

CELL_BY_CELL = (EqualSlots, ReadyOrder, EqualBands, OptimalBands, FixedRate, EnergyWithinDeadline)
"""Accesses that serve each cell and block as if it were alone."""
AT_ONCE = 1 << 16
"""Rows that are served together, so that arrays stay in the cache."""


@dataclass(frozen=True, eq=False)
class NetworkCosts:
    """Costs of the same rounds over several networks, cumulative over the rounds.

    Args:
        seconds: [networks, rounds], simulated seconds at the end of each round.
        joules: [networks, rounds], mean over all clients.
        joules_max: [networks, rounds], of the client that has used the most.
        equal: seconds of the rounds, and seconds and joules with equal shares, as the fields of
            rows, each [networks, rounds]; empty unless the uplink compares them.
    """

    seconds: FloatArray
    joules: FloatArray
    joules_max: FloatArray
    equal: dict[str, FloatArray]

    @property
    def fields(self) -> dict[str, FloatArray]:
        """The costs by field of rows, each [networks, rounds]."""
        columns = {
            "sim_seconds": self.seconds,
            "joules": self.joules,
            "joules_max": self.joules_max,
        }
        return columns | self.equal


def cell_by_cell(access: Access) -> bool:
    """Whether an access serves each cell and block as if it were alone."""
    return type(access) in CELL_BY_CELL


def costs(recorded: RecordedRounds, networks: Sequence[Network]) -> NetworkCosts:
    """Serve the recorded rounds over each network.

    Args:
        recorded: loads and fading of the rounds; its uplink's access serves cell by cell.
        networks: networks with the cells, antennas and fading of the recorded one.

    Returns:
        Costs, infinite where an upload never ends.

    Raises:
        ValueError: the access cannot serve a network.
    """
    size = max(1, AT_ONCE // max(1, len(recorded.clients)))
    parts = [
        _Chunk(recorded, networks[start : start + size]).costs()
        for start in range(0, len(networks), size)
    ]

    def joined(chunks: Sequence[FloatArray]) -> FloatArray:
        return np.concatenate(chunks)

    return NetworkCosts(
        joined([part.seconds for part in parts]),
        joined([part.joules for part in parts]),
        joined([part.joules_max for part in parts]),
        {name: joined([part.equal[name] for part in parts]) for name in parts[0].equal},
    )


class _Chunk:
    """Some of the networks: their blocks and cells are the cells of one large network."""

    def __init__(self, recorded: RecordedRounds, networks: Sequence[Network]) -> None:
        self.recorded, self.count = recorded, len(networks)
        whole, uplink = recorded.network, recorded.planner.links.uplink
        clients, items, cells = recorded.clients, recorded.items, whole.cells
        access = checked_access(uplink)
        self.access = ManyBands() if type(access) is OptimalBands else access
        self.shares = uplink.equal_shares
        shift = np.arange(self.count)[:, None] * items * cells

        def each(values: list[FloatArray]) -> FloatArray:
            """Rows of values [clients] of each network."""
            return np.stack(values)[:, clients].ravel()

        self.network = Network(
            (shift + recorded.cell_of).ravel(),
            part=np.arange(self.count * len(clients)),
            cpu_hz=each([network.cpu_hz for network in networks]),
            transmit_power_w=each([network.transmit_power_w for network in networks]),
            switched_capacitance=each([network.switched_capacitance for network in networks]),
            bandwidth_hz=np.repeat(
                np.stack([network.bandwidth_hz for network in networks])[:, None], items, 1
            ).ravel(),
            gain_db=0.0,
        )
        rises = [recorded.noise_rises(network) for network in networks]
        present = [rise for rise in rises if rise is not None]
        if present and len(present) < self.count:
            present = [np.ones(items * cells) if rise is None else rise for rise in rises]
        same = all(np.array_equal(network.path_gain_db, whole.path_gain_db) for network in networks)
        gain = (
            np.tile(recorded.gain, self.count)
            if same
            else np.concatenate([recorded.gains(network) for network in networks])
        )
        self.draw = GainDraw(
            self.network,
            gain,
            each([np.asarray(10 ** (network.snr_db / 10)) for network in networks]),
            np.concatenate(present) if present else None,
        )
        cycles = np.array([network.cycles_per_step for network in networks])
        self.load = recorded.loaded(self.count, cycles / whole.cycles_per_step)

    @np.errstate(over="ignore")  # infinite prices are refused later
    def costs(self) -> NetworkCosts:
        """Costs of the rounds over these networks."""
        served = self.access.serve(self.load, self.draw)
        seconds, joules = self._round_seconds(served.seconds), self._client_joules(served.joules)
        totals, most = self._totals(joules)
        equal: dict[str, FloatArray] = {}
        if self.shares is not None:
            shared = self.shares.serve(self.load, self.draw)
            sums, _ = self._totals(self._client_joules(shared.joules))
            equal = {
                "round_seconds": seconds.cumsum(1),
                "equal_seconds": self._round_seconds(shared.seconds).cumsum(1),
                "equal_joules": sums,
            }
        return NetworkCosts(seconds.cumsum(1), totals, most, equal)

    def _round_seconds(self, seconds: FloatArray) -> FloatArray:
        """Seconds [networks, rounds] of each round, from those of the rows."""
        recorded = self.recorded
        slowest = self.network.over_cells(np.maximum, seconds)
        by_block = slowest.reshape(self.count, recorded.rounds, recorded.blocks, -1)
        edge_rounds = recorded.planner.settings.edge_rounds
        return np.asarray((edge_rounds * by_block.mean(2) + recorded.exchange_seconds).max(-1))

    def _client_joules(self, joules: FloatArray) -> FloatArray:
        """Joules [networks, rows of the first blocks] of each client in each round."""
        recorded = self.recorded
        by_client = joules.reshape(self.count, -1) * recorded.planner.settings.edge_rounds
        if recorded.blocks == 1:
            return by_client
        starts = recorded.round_starts
        return np.concatenate(
            [
                by_client[:, first:last].reshape(self.count, recorded.blocks, -1).mean(1)
                for first, last in pairwise(starts)
            ],
            axis=1,
        )

    def _totals(self, joules: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean joules of all clients, and those of the one with the most, [networks, rounds]."""
        recorded = self.recorded
        clients = recorded.network.clients
        spent = np.zeros((self.count, clients))
        total, most = np.empty((2, self.count, recorded.rounds))
        first = 0
        for number, plan in enumerate(recorded.plans):
            part = joules[:, first : first + len(plan.clients)]
            first += len(plan.clients)
            if len(plan.clients) == clients:
                spent += part
            else:
                spent[:, plan.clients] += part
            total[:, number] = part.sum(1) / clients
            most[:, number] = spent.max(1)
        return total.cumsum(1), most


def never_ending(costs: NetworkCosts) -> IntArray:
    """The networks over which some upload never ends."""
    bad: BoolArray = ~(np.isfinite(costs.seconds[:, -1]) & np.isfinite(costs.joules[:, -1]))
    return np.flatnonzero(bad)
