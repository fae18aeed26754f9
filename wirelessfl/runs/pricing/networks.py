"""The same rounds over many networks: loads and fading are recorded once, and served together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from channels import (
    ChannelDraw,
    EqualBands,
    EqualSlots,
    FixedRate,
    Load,
    Network,
    ReadyOrder,
    Service,
)
from channels.arrays import FloatArray, IntArray
from solvers import EnergyWithinDeadline, OptimalBands
from solvers.access.many_bands import ManyBands
from wirelessfl.air.plan import Plan
from wirelessfl.air.round_price import cell_seconds, mean_joules
from wirelessfl.air.uplinks.checked import checked_access
from wirelessfl.config import Config
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.pricing.price import priced

Values = TypeVar("Values", FloatArray, IntArray)
CELL_BY_CELL = (EqualSlots, ReadyOrder, EqualBands, OptimalBands, FixedRate, EnergyWithinDeadline)
"""Accesses that serve each cell and block as if it were alone."""
AT_ONCE = 1 << 16
"""Rows that are served together, so that arrays stay in the cache."""
LOADS = (
    "cycles", "elements", "vectors", "start_seconds", "after_seconds", "deadline_seconds",
    "pilot_symbols",
    "bits_per_element",
)  # fmt: skip
"""Fields of loads that an access of separate transmissions uses."""


class GainDraw(ChannelDraw):
    """Channels of which only gains and SNRs are known, as accesses without beamformers need.

    Args:
        network: network of the clients.
        gain: [clients], channel gains.
        snr: [clients], transmit SNRs as ratios, over the cell's whole band.
        noise_rise: [cells], see ``ChannelDraw``.
        external_rise: [clients], see ``ChannelDraw``.
    """

    def __init__(
        self,
        network: Network,
        gain: FloatArray,
        snr: FloatArray,
        noise_rise: FloatArray | None = None,
        external_rise: FloatArray | None = None,
    ) -> None:
        # The channels themselves are not known; their shape is.
        absent = np.broadcast_to(np.complex64(0), (*gain.shape, network.antennas))
        vars(self).update(network=network, h=absent, noise_rise=noise_rise, changes_db=None)
        vars(self).update(external_rise=external_rise, gain=gain, _clean_snr=snr)
        vars(self).update(snr=np.asarray(snr / self.rise()))

    def in_bands(self) -> GainDraw:
        """See ``ChannelDraw``."""
        if self.noise_rise is None:
            return self
        senders = np.maximum(self.network.cell_sizes, 1)
        clean: FloatArray = vars(self)["_clean_snr"]
        rise = 1 + senders * (self.noise_rise - 1)
        return GainDraw(self.network, self.gain, clean, rise, self.external_rise)


@dataclass(frozen=True, eq=False)
class RecordedRounds:
    """Rounds of a run that do not depend on its radio, with a row per round, block and sender.

    Args:
        planner: plans the rounds over the network with which they were recorded.
        plans: the plans, whose submodels and participants hold for any radio.
        prices: costs over that network, as ``Prices.rows``.
    """

    planner: Planner
    plans: Sequence[Plan]
    prices: list[dict[str, Any]]

    @classmethod
    def of(cls, config: Config, rounds: int | None, objects: GivenObjects) -> RecordedRounds:
        """Simulate the rounds of a run without training, and record them.

        Args:
            config: the settings, resolved; the run has rounds of one model, and its participants
                and submodels do not depend on its radio. Its access serves cell by cell.
            rounds: number of rounds; None for all.
            objects: Python objects that replace settings.

        Raises:
            ConfigError: as for ``price``.
        """
        plans: list[Plan] = []
        simulated = priced(config, rounds, objects, log=lambda plan, trial: plans.append(plan))
        return cls(simulated.setup.planner, plans, simulated.prices.rows)

    def costs(self, networks: Sequence[Network]) -> dict[str, FloatArray]:
        """Serve the rounds over each network.

        Args:
            networks: networks with the cells, antennas and fading of the recorded one.

        Returns:
            The costs by field of rows, [networks, rounds] each, summed over the rounds; infinite
            where an upload never ends.

        Raises:
            ValueError: the access cannot serve a network.
        """
        size = max(1, AT_ONCE // max(1, len(self._clients)))
        parts = [
            self._costs(networks[start : start + size]) for start in range(0, len(networks), size)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    @np.errstate(over="ignore")  # infinite prices are refused later
    def _costs(self, networks: Sequence[Network]) -> dict[str, FloatArray]:
        uplink = self.planner.links.uplink
        access = checked_access(uplink)
        if type(access) is OptimalBands:
            access = ManyBands()
        load, draw = self._load(networks), self._draw(networks)
        service = access.serve(load, draw)
        seconds, (joules, most) = self._seconds(service, draw), self._joules(service, len(networks))
        costs = {"sim_seconds": seconds, "joules": joules, "joules_max": most}
        if uplink.equal_shares is not None:
            equal = uplink.equal_shares.serve(load, draw)
            costs |= {"round_seconds": seconds, "equal_seconds": self._seconds(equal, draw)}
            costs["equal_joules"] = self._joules(equal, len(networks))[0]
        return costs

    def _seconds(self, service: Service, draw: ChannelDraw) -> FloatArray:
        """Seconds at the end of each round, [networks, rounds]."""
        by_cell = cell_seconds(
            draw.network,
            service.seconds,
            self.planner.settings.edge_rounds,
            self._backhaul_seconds,
            (-1, len(self.plans), self._blocks, self.planner.network.cells),
        )
        return np.asarray(by_cell.max(-1).cumsum(1))

    def _joules(self, service: Service, count: int) -> tuple[FloatArray, FloatArray]:
        """Mean joules up to each round, and those of the client with the most, each as seconds."""
        clients, edge_rounds = self.planner.network.clients, self.planner.settings.edge_rounds
        spent = np.zeros((count, clients))
        joules, most = np.empty((2, count, len(self.plans)))
        ends = np.cumsum([self._blocks * len(plan.clients) for plan in self.plans])[:-1]
        for number, part in enumerate(np.split(service.joules.reshape(count, -1), ends, 1)):
            senders = self.plans[number].clients
            blocks = part.reshape(count, -1, len(senders))
            joules[:, number] = mean_joules(blocks, edge_rounds, clients)
            spent[:, slice(None) if len(senders) == clients else senders] += (
                edge_rounds * blocks.mean(1)
            )
            most[:, number] = spent.max(1)
        return joules.cumsum(1), most

    def _draw(self, networks: Sequence[Network]) -> ChannelDraw:
        """Channels whose cells are the cells of all blocks over each network."""
        whole, blocks = self.planner.network, len(self.plans) * self._blocks
        shift = np.arange(len(networks))[:, None] * blocks * whole.cells

        def rows(values: Callable[[Network], FloatArray]) -> FloatArray:
            return np.stack([values(network) for network in networks])[:, self._clients].ravel()

        bands = np.stack([network.bandwidth_hz for network in networks])[:, None]
        network = Network(
            (shift + self._cells).ravel(),
            part=np.arange(len(networks) * len(self._clients)),
            cpu_hz=rows(lambda network: network.cpu_hz),
            transmit_power_w=rows(lambda network: network.transmit_power_w),
            switched_capacitance=rows(lambda network: network.switched_capacitance),
            bandwidth_hz=np.repeat(bands, blocks, 1).ravel(),
            gain_db=0.0,
        )
        gain = np.concatenate([self._gains(network) for network in networks])
        snr = rows(lambda network: np.asarray(10 ** (network.snr_db / 10)))
        rises = (
            None
            if all(getattr(network, source) is None for network in networks)
            else np.concatenate([self._rises(network)[number] for network in networks])
            for number, source in enumerate(("interference", "interference_watts"))
        )
        return GainDraw(network, gain, snr, *rises)

    def _load(self, networks: Sequence[Network]) -> Load:
        cycles = np.array([network.cycles_per_step for network in networks])
        more = cycles / self.planner.network.cycles_per_step
        loads = {name: np.tile(values, len(networks)) for name, values in self._loads.items()}
        loads["cycles"] = np.outer(more, self._loads["cycles"]).ravel()
        return Load(**loads)

    def _rows(self, values: Iterable[Values]) -> Values:
        """Values [senders] or [blocks, senders] of each plan, [rows]."""
        shapes = [plan.draws.h.shape[:-1] for plan in self.plans]
        rows: list[Values] = [
            np.broadcast_to(value, shape).ravel()
            for value, shape in zip(values, shapes, strict=True)
        ]
        return np.concatenate(rows)

    @cached_property
    def _clients(self) -> IntArray:
        """The client of each row."""
        return self._rows(plan.clients for plan in self.plans)

    @property
    def _blocks(self) -> int:
        """Number of channel blocks of a round."""
        return len(self.plans[0].draws.h)

    @cached_property
    def _cells(self) -> IntArray:
        """The cell of each row, counted over the blocks of all rounds."""
        senders = np.repeat([len(plan.clients) for plan in self.plans], self._blocks)
        first = self.planner.network.cells * np.arange(len(senders))
        return np.repeat(first, senders) + self._rows(plan.node for plan in self.plans)

    @cached_property
    def _loads(self) -> dict[str, FloatArray]:
        """Loads of the rows by field."""
        loads = [plan.price.served.load for plan in self.plans]
        return {name: self._rows(getattr(load, name) for load in loads) for name in LOADS}

    @cached_property
    def _backhaul_seconds(self) -> FloatArray:
        """Seconds of the backhaul, [rounds, cells]."""
        return np.array([plan.price.backhaul_seconds for plan in self.plans])

    @cached_property
    def _gain(self) -> FloatArray:
        """Channel gain of each row over the recorded network."""
        return self._rows(plan.draws.gain for plan in self.plans)

    @cached_property
    def _parts(self) -> np.ndarray:
        """Real and imaginary parts of the channels without path gain, [2 x antennas, rows]."""
        planner = self.planner
        none: dict[str, Any] = {"path_gain_db": 0.0, "interference": None}
        plain = replace(planner.network, **none)
        h = [
            plain.draws(planner.channel_stream, planner.blocks(plan.round), plan.clients).h
            for plan in self.plans
        ]
        rows = np.concatenate([blocks.reshape(-1, plain.antennas) for blocks in h])
        return np.ascontiguousarray(rows.view(np.float32).T)

    def _gains(self, network: Network) -> FloatArray:
        """Channel gain of each row over a network, rounded as those of its own draws."""
        if np.array_equal(network.path_gain_db, self.planner.network.path_gain_db):
            return self._gain
        amplitude = (10 ** (network.path_gain_db / 20)).astype(np.float32)
        parts = (self._parts * amplitude[self._clients]).astype(np.float64)
        parts *= parts
        return np.asarray(parts.sum(0))

    def _rises(self, network: Network) -> tuple[FloatArray, FloatArray]:
        """See ``Network.rises``: by cell of all blocks, and by row; 1 without interference."""
        planner = self.planner
        rises: tuple[list[FloatArray], list[FloatArray]] = ([], [])
        for plan in self.plans:
            senders = network.of(plan.clients)
            sizes = network.cells, senders.clients
            for index in planner.blocks(plan.round):
                some = senders.rises(planner.channel_stream, index)
                for listed, rise, size in zip(rises, some, sizes, strict=True):
                    listed.append(np.ones(size) if rise is None else rise)
        return np.concatenate(rises[0]), np.concatenate(rises[1])
