"""Time division in order of readiness: who has trained first sends first, on the whole band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.access.access import Access, service, times
from channels.access.on_time import soonest_in_turn
from channels.arguments import checked
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.links import airtime_seconds_per_bit, rate_at
from channels.loads import Decision, Load, Rates, Service
from channels.modulation import RateLaw, check_law
from channels.network import ChannelDraw, Network


@dataclass(frozen=True)
class ReadyOrder(Access):
    """One client of a cell sends at a time, without interruption, in the order of readiness.

    No order of such uploads ends earlier: it is the problem 1 | r_j | C_max. Ties go to the client
    with the lower index. A client without bits does not wait, and a client whose upload would never
    end does not send.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(cycles=[1e6, 9e6, 1e6, 9e6], elements=1000.0)
    >>> channels.ReadyOrder().serve(load, draw).decision.order.tolist()
    [0.0, 1.0, 0.0, 1.0]

    Args:
        law: how rates follow from SNRs, see :func:`channels.spectral_efficiency`.
    """

    coupled = True

    law: RateLaw = "shannon"

    def __post_init__(self) -> None:
        check_law(self.law)

    @checked()
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`Access`; client i waits for those of its cell that are ready before it."""
        load.check_fits(draw)
        network = draw.network
        per_bit = airtime_seconds_per_bit(draw, "tdma", law=self.law)
        alone, ready = np.broadcast_arrays(times(load.bits, per_bit), load.ready_seconds(network))
        airtime = np.where(np.isfinite(alone), alone, 0.0)
        ends, places = _in_turn(network, ready, airtime)
        seconds = np.where(airtime > 0, ends, ready + alone)  # alone is 0 or inf if own is 0
        joules = load.compute_joules(network) + network.sending_watts() * airtime
        return service(seconds, joules, Decision(order=places), airtime)

    @checked()
    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`Access`; by bisection over the end, see :func:`soonest_in_turn`."""
        load.check_fits(draw)
        network = draw.network
        per_bit = airtime_seconds_per_bit(draw, "tdma", law=self.law)
        alone, ready = np.broadcast_arrays(times(load.bits, per_bit), load.ready_seconds(network))
        chosen = np.zeros(alone.shape, dtype=np.bool_)
        for cell, first in enumerate(network.cell_starts):
            part = slice(first, first + network.cell_sizes[cell])
            for block in np.ndindex(alone.shape[:-1]):
                at = (*block, part)
                chosen[at] = soonest_in_turn(ready[at], alone[at], int(counts[cell]))
        return chosen

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """See :class:`Access`: the client that started first has the band, the others wait."""
        bps, duty = np.zeros(len(snr)), np.zeros(len(snr))
        bps[:1], duty[:1] = rate_at(bandwidth_hz, snr[:1], self.law), 1.0
        return Rates(bps, duty)


def _in_turn(
    network: Network, ready: FloatArray, airtime: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """When each upload ends, and its place in its cell's order, [..., clients].

    Cells of one size are served together.
    """
    ends, places = np.empty_like(airtime), np.empty_like(airtime)
    sizes = network.cell_sizes
    for count in np.unique(sizes[sizes > 0]):
        rows = network.cell_starts[sizes == count][:, None] + np.arange(count)
        order = ready[..., rows].argsort(axis=-1, kind="stable")
        at = np.take_along_axis(ready[..., rows], order, -1)
        took = np.take_along_axis(airtime[..., rows], order, -1)
        # An upload ends at max over k <= i of (ready_k + all uploads from k to i).
        free = np.zeros(at.shape[:-1])
        done, turn = np.empty_like(took), np.empty_like(took)
        for place in range(count):
            free = np.maximum(free, at[..., place]) + took[..., place]
            done[..., place] = free
        sorted_ends = np.empty_like(done)
        np.put_along_axis(sorted_ends, order, done, -1)
        np.put_along_axis(turn, order, np.arange(count, dtype=np.float64), -1)
        ends[..., rows], places[..., rows] = sorted_ends, turn
    return ends, places
