"""Simultaneous analog transmission: all clients of a cell send each element at the same time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.access.access import Access, service
from channels.arguments import checked
from channels.arrays import FloatArray
from channels.links import SUBCARRIER_HZ, SYMBOL_SECONDS, aircomp_seconds_per_element
from channels.loads import NOTHING_DECIDED, Decision, Load, Service
from channels.network import ChannelDraw
from channels.validation import as_array


@dataclass(frozen=True)
class Simultaneous(Access):
    """An element per symbol and subcarrier, sent by all clients at once (HIST, (34)).

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> channels.Simultaneous().serve(channels.Load(0.0, 12_600.0), draw).seconds.round(4).tolist()
    [0.0015, 0.0015, 0.0015, 0.0015]

    Args:
        power: fraction of its maximum power that each client sends on average, >= 0: one number, or
            [..., clients], e.g. from ``solvers.OverTheAir``.
        elements_per_symbol: 1; 2 on I and Q; or 1/2 if an element takes two symbols.
        subcarrier_hz: Delta_f, > 0.
        symbol_seconds: t_s, > 0.
        decision: what the service reports as its decision.
    """

    power: FloatArray | float = 1.0
    elements_per_symbol: float = 1
    subcarrier_hz: float = SUBCARRIER_HZ
    symbol_seconds: float = SYMBOL_SECONDS
    decision: Decision = NOTHING_DECIDED

    def __post_init__(self) -> None:
        power = as_array("power", self.power)
        if power.dtype.kind not in "biuf":
            raise TypeError(f"power has dtype {power.dtype}: give real numbers.")
        bad = ~(np.isfinite(power) & (power >= 0))
        if bad.any():
            raise ValueError(
                f"power contains {power[bad].flat[0]}: give fractions of the maximum power, finite "
                "and >= 0."
            )

    @checked()
    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`Access`."""
        load.check_fits(draw)
        upload = load.vectors * load.jointly * self._per_element(draw)
        return np.asarray(load.ready_seconds(draw.network) + upload)

    @checked()
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`; a client is silent while others send elements that it does not."""
        network, powers = draw.network, np.shape(self.power)
        seconds = self.seconds(load, draw)
        if powers and powers[-1] not in {1, network.clients}:
            raise ValueError(
                f"power has shape {powers}, and the draw has {network.clients} clients: give one "
                "number, or [..., clients] for the clients of the draw."
            )
        airtime = load.vectors * load.elements * self._per_element(draw)
        joules = load.compute_joules(network) + network.sending_watts(self.power) * airtime
        return service(seconds, joules, self.decision, airtime)

    def _per_element(self, draw: ChannelDraw) -> FloatArray:
        return aircomp_seconds_per_element(
            draw,
            elements_per_symbol=self.elements_per_symbol,
            subcarrier_hz=self.subcarrier_hz,
            symbol_seconds=self.symbol_seconds,
        )
