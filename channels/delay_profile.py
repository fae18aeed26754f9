"""Channels that are selective in frequency: taps with the delays of a power-delay profile."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np

from channels.arguments import check_number
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.doppler import Doppler
from channels.fading import Fading, Rayleigh, offsets, over_band
from channels.streams import Stream
from channels.validation import number_of, shown

Profile = Literal["exponential", "tdl-a", "tdl-b", "tdl-c"]
PATHS = 24
"""Taps of an exponential profile, as many as the longest table has."""
LONGEST_SECONDS = 1e-3
LARGEST_SUBCARRIERS = 4096
TABLES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "tdl-a": (
        (0.0, 0.3819, 0.4025, 0.5868, 0.4610, 0.5375, 0.6708, 0.5750, 0.7618, 1.5375, 1.8978,
         2.2242, 2.1718, 2.4942, 2.5119, 3.0582, 4.0810, 4.4579, 4.5695, 4.7966, 5.0066, 5.3043,
         9.6586),
        (-13.4, 0.0, -2.2, -4.0, -6.0, -8.2, -9.9, -10.5, -7.5, -15.9, -6.6, -16.7, -12.4, -15.2,
         -10.8, -11.3, -12.7, -16.2, -18.3, -18.9, -16.6, -19.9, -29.7),
    ),
    "tdl-b": (
        (0.0, 0.1072, 0.2155, 0.2095, 0.2870, 0.2986, 0.3752, 0.5055, 0.3681, 0.3697, 0.5700,
         0.5283, 1.1021, 1.2756, 1.5474, 1.7842, 2.0169, 2.8294, 3.0219, 3.6187, 4.1067, 4.2790,
         4.7834),
        (0.0, -2.2, -4.0, -3.2, -9.8, -1.2, -3.4, -5.2, -7.6, -3.0, -8.9, -9.0, -4.8, -5.7, -7.5,
         -1.9, -7.6, -12.2, -9.8, -11.4, -14.9, -9.2, -11.3),
    ),
    "tdl-c": (
        (0.0, 0.2099, 0.2219, 0.2329, 0.2176, 0.6366, 0.6448, 0.6560, 0.6584, 0.7935, 0.8213,
         0.9336, 1.2285, 1.3083, 2.1704, 2.7105, 4.2589, 4.6003, 5.4902, 5.6077, 6.3065, 6.6374,
         7.0427, 8.6523),
        (-4.4, -1.2, -3.5, -5.2, -2.5, 0.0, -2.2, -3.9, -7.4, -7.1, -10.7, -11.1, -5.1, -6.8, -8.7,
         -13.2, -13.9, -13.9, -15.8, -17.1, -16.0, -15.7, -21.6, -22.8),
    ),
}  # fmt: skip
"""Normalised delays and powers in dB of the taps: 3GPP TR 38.901 V16.1.0, Tables 7.7.2-1 to -3."""


@dataclass(frozen=True)
class DelayProfile:
    """Independent Rayleigh taps whose delays make the channel differ over the band.

    The response at the offset f from the carrier is H(f) = sum_l sqrt(p_l) g_l e^(-2 pi j f tau_l),
    with taps g_l like channels of ``taps`` and powers p_l of sum 1: Rayleigh fading at every
    frequency. The band of a cell has K subcarriers of equal width, each of the response in its
    middle. Delays tau_l are those of a profile, times the delay spread (root mean square):

    - ``"exponential"``: 24 taps of equal power, at tau_l = -s ln(1 - (l + u) / 24), l = 0..23, with
      u uniform in [0, 1) for each tap and client, the same in all blocks. Over the clients they
      have the exponential profile of delay spread s, so that frequencies f apart have the
      correlation 1 / (1 + 2 pi j f s) at any f.
    - ``"tdl-a"``, ``"tdl-b"``, ``"tdl-c"``: the 23 or 24 taps of 3GPP TR 38.901, Tables 7.7.2-1 to
      7.7.2-3, scaled by (7.7-1).

    With one subcarrier the band is flat, and channels are those of ``taps`` alone.

    >>> import numpy as np
    >>> import channels
    >>> fading = channels.DelayProfile(300e-9, "tdl-c", subcarriers=50)
    >>> network = channels.Network([0, 0], gain_db=-100.0, cpu_hz=1e9, fading=fading)
    >>> draw = network.draw(channels.Stream(1))
    >>> draw.spectrum.shape, draw.spectrum.mean(axis=1).round(6).tolist()
    ((2, 50), [1.0, 1.0])

    Args:
        delay_spread_s: root mean square of the delays around their mean, weighted by the powers, in
            seconds, above 0 and at most 1e-3.
        profile: "exponential", "tdl-a", "tdl-b" or "tdl-c".
        subcarriers: K, from 1 to 4096. They sample the response: a spacing B / K well below the
            inverse of the delay spread is enough.
        taps: fading of each tap, :class:`Rayleigh`, or :class:`Doppler` of it.
    """

    delay_spread_s: float
    profile: Profile = "exponential"
    subcarriers: int = 64
    taps: Rayleigh | Doppler = field(default_factory=Rayleigh)

    def __post_init__(self) -> None:
        check_number("delay_spread_s", self.delay_spread_s, "seconds")
        if not 0 < self.delay_spread_s <= LONGEST_SECONDS:
            raise ValueError(
                f"delay_spread_s is {self.delay_spread_s}: give seconds above 0, at most "
                f"{LONGEST_SECONDS:g}. 300 ns are 300e-9."
            )
        if self.profile not in get_args(Profile):
            raise ValueError(
                f"profile is {shown(self.profile)}: choose {', '.join(get_args(Profile))}."
            )
        number_of("subcarriers", self.subcarriers, most=LARGEST_SUBCARRIERS)
        fading = self.taps.fading if isinstance(self.taps, Doppler) else self.taps
        if type(fading) is not Rayleigh:
            raise TypeError(
                f"taps have the fading {shown(fading)}, and those of a power-delay profile are "
                "Rayleigh: choose fading rayleigh, or no delay spread."
            )

    @property
    def independent(self) -> DelayProfile:
        """The channels of blocks that are far apart, see :class:`Doppler`."""
        return replace(self, taps=self.taps.fading) if isinstance(self.taps, Doppler) else self  # type: ignore[arg-type]

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`: the channels of a flat band, those of one tap."""
        return self.taps.draw(stream, index, clients, root)

    def draw_band(
        self,
        stream: Stream,
        index: int,
        clients: IntArray,
        root: ComplexArray,
        bandwidth_hz: FloatArray,
    ) -> tuple[ComplexArray, FloatArray]:
        """See :class:`channels.SelectiveFading`."""
        return over_band(self.responses(stream, index, clients, root, bandwidth_hz))

    def responses(
        self,
        stream: Stream,
        index: int,
        clients: IntArray,
        root: ComplexArray,
        bandwidth_hz: FloatArray,
    ) -> ComplexArray:
        """Responses at the subcarriers, [clients, antennas, subcarriers]; see ``draw_band``."""
        delays, powers = self._profile(stream, clients)
        cycles = delays * bandwidth_hz[:, None]  # over the band
        places = offsets(self.subcarriers)
        total = np.zeros((len(clients), len(root), self.subcarriers), dtype=np.complex128)
        for tap, power in enumerate(np.sqrt(powers).tolist()):
            of_tap = stream.child("tap", tap) if tap else stream
            h = power * self.taps.draw(of_tap, index, clients, root)
            turn = np.exp(-2j * math.pi * (cycles[:, tap, None] * places % 1))
            total += h[..., None] * turn[:, None]
        return total

    def _profile(self, stream: Stream, clients: IntArray) -> tuple[FloatArray, FloatArray]:
        """Delays [clients or 1, taps] in seconds and powers [taps], of sum 1."""
        if self.profile == "exponential":
            drawn = stream.child("delays").uniforms(0, clients, PATHS)
            delays = -np.log1p(-(np.arange(PATHS) + drawn) / PATHS)
            return self.delay_spread_s * delays, np.full(PATHS, 1 / PATHS)
        normalised, power_db = (np.array(column) for column in TABLES[self.profile])
        powers = 10 ** (power_db / 10)
        return self.delay_spread_s * normalised[None], powers / powers.sum()

    def gain_by_client(self, root: ComplexArray) -> bool:
        """See :class:`channels.fading.FadingByClient`."""
        return isinstance(self.taps, Doppler)


def independent(fading: Fading) -> Fading:
    """The fading of blocks that are far apart; ``fading`` itself if its blocks are independent."""
    return fading.independent if isinstance(fading, Doppler | DelayProfile) else fading


__all__ = ["DelayProfile"]
