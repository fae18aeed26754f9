"""Time division whose clients put their power into their best subcarriers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from channels.access import Access, EqualSlots, ReadyOrder
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.loads import Load, Service
from channels.network import ChannelDraw
from channels.validation import shown
from solvers.water_filling import water_filling


@dataclass(frozen=True)
class WaterFilled(Access):
    """Turns on the whole band, with the powers of subcarriers that maximise each client's rate.

    A client's power on average is its maximum power, see :func:`solvers.water_filling`. Channels
    that are flat over the band leave nothing to choose.

    >>> import channels
    >>> import solvers
    >>> fading = channels.DelayProfile(300e-9)
    >>> network = channels.Network([0, 0], gain_db=-120.0, cpu_hz=1e9, fading=fading)
    >>> draw, load = network.draw(channels.Stream(1)), channels.Load(elements=1e4)
    >>> filled = solvers.WaterFilled().seconds(load, draw)
    >>> bool((filled < channels.EqualSlots().seconds(load, draw)).all())
    True

    Args:
        access: how clients take turns, ``channels.EqualSlots`` or ``channels.ReadyOrder``, with
            Shannon's rates.
    """

    access: EqualSlots | ReadyOrder = field(default_factory=EqualSlots)

    def __post_init__(self) -> None:
        if not isinstance(self.access, EqualSlots | ReadyOrder):
            raise TypeError(f"access is {shown(self.access)}: give EqualSlots() or ReadyOrder().")
        if self.access.law != "shannon":
            raise ValueError(
                f"access has the law {self.access.law!r}, and water-filling maximises Shannon's "
                "rates: choose 'shannon'."
            )
        object.__setattr__(self, "coupled", self.access.coupled)

    def sent(self, draw: ChannelDraw) -> ChannelDraw:
        """See :class:`channels.Access`."""
        return _filled(draw)

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`."""
        return self.access.serve(load, _filled(draw))

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`channels.Access`."""
        return self.access.seconds(load, _filled(draw))

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`channels.Access`."""
        return self.access.soonest(load, _filled(draw), counts)

    @property
    def ranks_alone(self) -> bool:
        """See :class:`channels.Access`."""
        return self.access.ranks_alone


def _filled(draw: ChannelDraw) -> ChannelDraw:
    """Channels as strong in each subcarrier as with its optimal power instead of an equal one."""
    if draw.spectrum is None:
        return draw
    network, count = draw.network, draw.spectrum.shape[-1]
    watts = network.transmit_power_w
    gain = (draw.snr_hz / watts)[..., None] * draw.spectrum
    powers = water_filling(gain, watts, network.bandwidth_hz[network.cell_of]).value
    assert powers is not None  # any powers are feasible
    spectrum = draw.spectrum * (powers * count / watts[:, None])
    mean = spectrum.mean(-1, keepdims=True)
    even = np.divide(spectrum, mean, out=np.ones(spectrum.shape), where=mean > 0)
    return replace(draw, h=draw.h * np.sqrt(mean), spectrum=even)
