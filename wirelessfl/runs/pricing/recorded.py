"""The rounds of a run that do not depend on its radio: loads and fading, recorded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from channels import ChannelDraw, Load, Network, dbm_to_watts
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.plan import Plan
from wirelessfl.config import Config
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.runs.build.given import NOTHING, GivenObjects
from wirelessfl.runs.pricing.price import priced

LOADS = ("cycles", "elements", "vectors", "start_seconds", "after_seconds", "deadline_seconds")
"""Fields of loads that an access of separate transmissions uses."""


class GainDraw(ChannelDraw):
    """Channels of which only gains and SNRs are known, as accesses without beamformers need.

    Args:
        network: network of the clients.
        gain: [clients], channel gains.
        snr: [clients], transmit SNRs as ratios, over the cell's whole band.
        noise_rise: [cells], see ``ChannelDraw``.
    """

    def __init__(
        self,
        network: Network,
        gain: FloatArray,
        snr: FloatArray,
        noise_rise: FloatArray | None = None,
    ) -> None:
        # The channels themselves are not known; their shape is.
        absent = np.broadcast_to(np.complex64(0), (*gain.shape, network.antennas))
        values = {"network": network, "h": absent, "noise_rise": noise_rise}
        for name, value in (values | {"gain": gain, "_clean_snr": snr}).items():
            object.__setattr__(self, name, value)
        rise = 1.0 if noise_rise is None else noise_rise[..., network.cell_of]
        object.__setattr__(self, "snr", np.asarray(snr / rise))

    def in_bands(self) -> GainDraw:
        """See ``ChannelDraw``."""
        if self.noise_rise is None:
            return self
        senders = np.maximum(self.network.cell_sizes, 1)
        clean: FloatArray = vars(self)["_clean_snr"]
        return GainDraw(self.network, self.gain, clean, 1 + senders * (self.noise_rise - 1))


@dataclass(frozen=True, eq=False)
class RecordedRounds:
    """Loads and fading of a run's rounds, with one row per round, channel block and sender.

    Args:
        planner: plans the rounds over the network with which they were recorded.
        plans: the plans, whose submodels and participants hold for any radio.
        prices: costs over that network, as ``Prices.rows``.
        clients: [rows], the client of each row, by round, block and cell.
        cell: [rows], its cell, from 0 in each block of each round.
        load: [rows], by field of ``Load``.
        gain: [rows], channel gains, including the path gain of the recorded network.
        h: [rows, antennas], channels without path gain.
        exchange_seconds: [rounds, cells], seconds of the backhaul.
        blocks: number of channel blocks of a round.
    """

    planner: Planner
    plans: Sequence[Plan]
    prices: list[dict[str, Any]]
    clients: IntArray
    cell: IntArray
    load: dict[str, FloatArray]
    gain: FloatArray
    h: np.ndarray
    exchange_seconds: FloatArray
    blocks: int

    @property
    def network(self) -> Network:
        """The network with which the rounds were recorded."""
        return self.planner.network

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.plans)

    @property
    def items(self) -> int:
        """Number of blocks of all rounds."""
        return self.rounds * self.blocks

    @property
    def cell_of(self) -> IntArray:
        """[rows], number of each row's cell in its block, counted over all blocks."""
        item = np.repeat(
            np.arange(self.items), np.repeat([len(p.clients) for p in self.plans], self.blocks)
        )
        return np.asarray(item * self.network.cells + self.cell)

    @property
    def round_starts(self) -> IntArray:
        """[rounds + 1], first row of each round, and their number."""
        sizes = [len(plan.clients) * self.blocks for plan in self.plans]
        return np.concatenate([[0], np.cumsum(sizes)])

    @classmethod
    def of(
        cls, config: Config, rounds: int | None, objects: GivenObjects = NOTHING
    ) -> RecordedRounds:
        """Simulate the rounds of a run without training, and record them.

        Args:
            config: the settings, resolved; the run has rounds of one model, and its participants
                and submodels do not depend on its radio.
            rounds: number of rounds; None for all.
            objects: Python objects that replace settings.

        Raises:
            ConfigError: as for ``price``.
        """
        plans: list[Plan] = []
        simulated = priced(config, rounds, objects, log=lambda plan, trial: plans.append(plan))
        return cls._of(simulated.setup.planner, plans, simulated.prices.rows)

    @classmethod
    def _of(
        cls, planner: Planner, plans: Sequence[Plan], prices: list[dict[str, Any]]
    ) -> RecordedRounds:
        blocks = plans[0].draws.h.shape[0]
        shapes = [(blocks, len(plan.clients)) for plan in plans]

        def rows(values: list[FloatArray]) -> FloatArray:
            columns = [np.broadcast_to(v, s).ravel() for v, s in zip(values, shapes, strict=True)]
            return np.concatenate(columns)

        loads = [plan.price.served.load for plan in plans]
        pricing, network = planner.pricing, planner.network
        none: dict[str, Any] = {"path_gain_db": 0.0, "interference": None}
        plain = replace(network, **none)
        h = [
            plain.draws(planner.channel_stream, planner.blocks(plan.round), plan.clients).h
            for plan in plans
        ]
        return cls(
            planner,
            plans,
            prices,
            rows([plan.clients.astype(np.float64) for plan in plans]).astype(np.int64),
            rows([plan.node.astype(np.float64) for plan in plans]).astype(np.int64),
            {name: rows([getattr(load, name) for load in loads]) for name in LOADS},
            rows([plan.draws.gain for plan in plans]),
            np.concatenate([columns.reshape(-1, network.antennas) for columns in h]),
            np.array(
                [pricing.exchange_seconds(plan.submodels, plan.client_submodels) for plan in plans]
            ),
            blocks,
        )

    def gains(self, network: Network) -> FloatArray:
        """Channel gains [rows] in a network that differs in its path gains.

        Rounded as those of its own draws.
        """
        if np.array_equal(network.path_gain_db, self.network.path_gain_db):
            return self.gain
        amplitude = (10 ** (network.path_gain_db / 20)).astype(np.float32)
        parts = (self._parts * amplitude[self.clients]).astype(np.float64)
        parts *= parts
        return np.asarray(parts.sum(0))

    @cached_property
    def _parts(self) -> np.ndarray:
        """Real and imaginary parts of the channels, [2 x antennas, rows]."""
        return np.ascontiguousarray(self.h.view(np.float32).T)

    def noise_rises(self, network: Network) -> FloatArray | None:
        """Noise rises [blocks of all rounds x cells] of a network; None without interference."""
        if network.interference is None:
            return None
        stream: Stream = self.planner.channel_stream.child("interference")
        indices = [index for plan in self.plans for index in self.planner.blocks(plan.round)]
        watts = [network.interference.watts(stream, index) for index in indices]
        return np.asarray(1 + np.array(watts) / dbm_to_watts(network.noise_dbm)).ravel()

    def loaded(self, times: int, more_cycles: FloatArray) -> Load:
        """The load of the rows for several networks, [networks x rows].

        Args:
            times: number of networks.
            more_cycles: [networks], cycles of a step over those of the recorded network.
        """
        tiled = {name: np.tile(values, times) for name, values in self.load.items()}
        if (more_cycles != 1).any():
            tiled["cycles"] = np.outer(more_cycles, self.load["cycles"]).ravel()
        first = self.plans[0].price.served.load
        return Load(**tiled, bits_per_element=first.bits_per_element)
