"""The interface of an access, and what several of them compute."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from channels.access.groups import seconds_in_groups
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.cells import smallest_by_cell
from channels.loads import NOTHING_DECIDED, Decision, Load, Rates, Service
from channels.network import ChannelDraw


class Access(ABC):
    """Who gets which part of the air, and when: seconds and joules of uploads follow.

    A subclass implements :meth:`serve`. If its clients can also start and end uploads at any time
    while others upload, as in asynchronous training, it implements :meth:`rates` as well.

    >>> import channels
    >>> class WholeBand(channels.Access):
    ...     # Each client has the whole band of its cell, as if it were alone
    ...     def serve(self, load, draw):
    ...         airtime = load.bits * channels.airtime_seconds_per_bit(draw, "tdma")
    ...         seconds = load.ready_seconds(draw.network) + airtime
    ...         joules = draw.network.transmit_power_w * airtime
    ...         return channels.Service(seconds, joules, seconds < float("inf"))
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(1e6, 1000.0)
    >>> alone, shared = WholeBand().seconds(load, draw), channels.EqualSlots().seconds(load, draw)
    >>> bool((alone < shared).all())
    True
    """

    coupled: ClassVar[bool] = False
    """Whether a client's seconds depend on how much the other clients of its cell do."""
    flat: ClassVar[bool] = False
    """Whether it needs channels that are flat over the band."""
    costly: ClassVar[bool] = False
    """Whether :meth:`serve` costs much more time than :meth:`seconds`."""
    time_shared: ClassVar[bool] = False
    """Whether each of n clients that upload at once has 1/n of the time: in :meth:`rates`, 1/n of
    the rate that it has alone, and the duty cycle 1/n."""

    @abstractmethod
    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """Serve a load: each client trains, then its update crosses the air.

        Args:
            load: what each client of the draw does.
            draw: channels of the clients, h [..., clients, antennas]; cells can be empty.

        Returns:
            Seconds, joules and the decision, [..., clients]; the leading axes of load and draw
            broadcast.

        Raises:
            ValueError: the load is not one of the draw's clients and blocks, see
                :meth:`Load.check_fits`.
        """

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """The seconds of :meth:`serve` alone, which may cost less."""
        return self.serve(load, draw).seconds

    def sent(self, draw: ChannelDraw) -> ChannelDraw:
        """The channels with the powers that clients give to subcarriers; ``draw`` for equal ones.

        Args:
            draw: channels, as those of :meth:`serve`.
        """
        return draw

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """The clients of each cell with which its last update arrives soonest.

        Compares the seconds that clients take in groups of ``counts`` clients per cell. Exact if a
        client's seconds depend only on its own load and on the number of clients of its cell; other
        accesses override it.

        Args:
            load: what each client of the draw would do.
            draw: channels of the clients, h [..., clients, antennas].
            counts: [cells], number of clients to choose, >= 0.

        Returns:
            [..., clients] boolean; all that can be reached, where a cell has fewer than its count.
        """
        load.check_fits(draw)
        seconds = seconds_in_groups(self.seconds, load, draw, counts)
        return smallest_by_cell(seconds, draw.network.cell_of, counts)

    @property
    def ranks_alone(self) -> bool:
        """Whether ``soonest`` of some clients does not depend on who else could be chosen.

        The soonest of all clients are then among the soonest of any clients to which they belong.
        """
        return type(self).soonest is Access.soonest and not self.coupled

    @property
    def asynchronous(self) -> bool:
        """Whether clients can start and end uploads at any time while others upload."""
        return type(self).rates is not Access.rates

    def rates(self, snr: FloatArray, bandwidth_hz: float) -> Rates:
        """Rates while exactly these clients upload.

        Args:
            snr: [uploading], received SNR of each over the whole band, in the order of their
                starts.
            bandwidth_hz: the whole band.

        Raises:
            NotImplementedError: this access serves whole rounds only.
        """
        raise NotImplementedError(f"{type(self).__name__} serves whole rounds only")


def sent(
    load: Load,
    draw: ChannelDraw,
    upload_seconds: FloatArray,
    airtime_seconds: FloatArray,
    decision: Decision = NOTHING_DECIDED,
) -> Service:
    """The service of clients that train at full speed and send at full power when ready.

    Args:
        load: the load.
        draw: channels of the clients.
        upload_seconds: [..., clients], seconds of each upload; inf if it never ends.
        airtime_seconds: [..., clients], seconds in which each client transmits.
        decision: what the access decided.
    """
    network = draw.network
    seconds = load.ready_seconds(network) + upload_seconds
    # An upload that never ends is not sent.
    airtime = np.where(np.isfinite(airtime_seconds), airtime_seconds, 0.0)
    joules = load.compute_joules(network) + network.sending_watts() * airtime
    return service(seconds, joules, decision, airtime)


def service(
    seconds: FloatArray,
    joules: FloatArray,
    decision: Decision = NOTHING_DECIDED,
    airtime_seconds: FloatArray | None = None,
) -> Service:
    """A service in which the updates arrive whose seconds are finite.

    Args:
        seconds: [..., clients], until each update arrives; inf if it never does.
        joules: [..., clients]; leading axes broadcast with those of ``seconds``.
        decision: what the access decided.
        airtime_seconds: [..., clients], seconds in which each client sends, see ``Service``.
    """
    seconds, joules = np.broadcast_arrays(seconds, joules)
    arrived = np.isfinite(seconds)
    return Service(seconds, joules, arrived, decision, airtime_seconds=airtime_seconds)


def times(bits: FloatArray, seconds_per_bit: FloatArray) -> FloatArray:
    """Seconds of uploads; 0 bits take 0 seconds even at rate 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(bits > 0, bits * seconds_per_bit, 0.0)
