"""Fading that is correlated in time: Clarke's spectrum, exactly or as an autoregression."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from channels.arguments import check_number
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.fading import Rayleigh, Rician, correlate
from channels.streams import Stream
from channels.validation import shown

MODELS = ("jakes", "ar1")
PATHS = 32
"""Scattered paths of a client; an even number keeps real and imaginary parts uncorrelated."""
FORGOTTEN = 1e-10
"""Correlations of an autoregression that are smaller are taken as 0."""
LARGEST_HZ, LONGEST_SECONDS = 1e5, 1e6


@dataclass(frozen=True)
class Speeds:
    """A constant speed of each client, uniform between two.

    Args:
        low: lowest speed in m/s.
        high: highest speed in m/s.
        stream: randomness of the speeds.
    """

    low: float
    high: float
    stream: Stream

    def of(self, clients: IntArray) -> FloatArray:
        """Speeds [clients] in m/s."""
        drawn = self.stream.uniforms(0, clients, 1)[:, 0]
        return np.asarray(self.low + (self.high - self.low) * drawn)

    def relative(self, clients: IntArray) -> FloatArray:
        """Speeds [clients] over the highest one; 1 if that is 0."""
        return self.of(clients) / self.high if self.high else np.ones(len(clients))


@dataclass(frozen=True)
class Doppler:
    """Rayleigh or Rician fading of moving clients: block i is at i times ``block_seconds``.

    Paths arrive from all directions alike, so that a client's channels at two times have the
    correlation J0(2 pi f_d tau) (Clarke 1968). ``"jakes"`` has it at all lags: each antenna
    receives the sum of 32 plane waves with independent complex normal amplitudes, whose directions
    are evenly spaced from a random one. ``"ar1"`` has it between consecutive blocks,
    rho = J0(2 pi f_d T), and rho^k over k blocks: h_i = rho h_(i-1) + sqrt(1 - rho^2) g_i (Baddour
    & Beaulieu 2005, order 1). At any one time the channels have the distribution of ``fading``,
    with its antenna correlation. At 0 Hz a channel stays as it is.

    A block depends on the stream, its index and the client alone, and is drawn without those before
    it: ``"ar1"`` draws blocks 0, 1, 2, 4, ... up to the index, then halves the last interval, which
    takes 2 log2(index) draws. A Rician line of sight turns by 2 pi f_d tau cos(psi_i), where psi_i
    is the angle between it and the client's way, uniform over the clients.

    >>> import numpy as np
    >>> import channels
    >>> walking = channels.Doppler(channels.Rayleigh(), doppler_hz=5.0, block_seconds=0.01)
    >>> h = [walking.draw(channels.Stream(1), i, np.arange(20000), np.eye(1)) for i in (40, 41)]
    >>> power = abs(np.array(h)) ** 2
    >>> round(float((h[0] * h[1].conj()).mean().real / power.mean()), 2)  # J0(0.314) is 0.976
    0.98

    Args:
        fading: distribution of the channels at one time.
        doppler_hz: f_d = v f_c / c, largest Doppler shift, from 0 to 1e5 Hz: 10 Hz for 3 km/h at
            3.6 GHz.
        block_seconds: T, time from one block to the next, above 0 and at most 1e6 seconds.
        model: ``"jakes"`` or ``"ar1"``.
        speeds: speeds of the clients; None if they have one. Then ``doppler_hz`` is the shift at
            the highest speed.
    """

    fading: Rayleigh | Rician = field(default_factory=Rayleigh)
    doppler_hz: float = 0.0
    block_seconds: float = 1.0
    model: Literal["jakes", "ar1"] = "jakes"
    speeds: Speeds | None = None

    def __post_init__(self) -> None:
        if type(self.fading) not in (Rayleigh, Rician):
            raise TypeError(
                f"fading is {shown(self.fading)}, and doppler_hz applies to Rayleigh and Rician "
                "fading: choose one of them, or let your model use the index of the block."
            )
        check_number("doppler_hz", self.doppler_hz, "hertz")
        if not 0 <= self.doppler_hz <= LARGEST_HZ:
            raise ValueError(
                f"doppler_hz is {self.doppler_hz}: give 0 to {LARGEST_HZ:g} Hz, v f_c / c."
            )
        check_block_seconds(self.block_seconds)
        if self.model not in MODELS:
            raise ValueError(f"model is {shown(self.model)}: choose jakes or ar1.")

    @property
    def independent(self) -> Rayleigh | Rician:
        """The fading of blocks that are far apart: the same distribution, without correlation."""
        return self.fading

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`."""
        cycles: Any = self.doppler_hz * self.block_seconds  # of the largest shift in a block
        if self.speeds is not None:
            cycles = cycles * self.speeds.relative(clients)[:, None]
        if self.model == "jakes":
            white = _sum_of_waves(stream, cycles * index, clients, len(root))
        else:
            white = _autoregression(stream, index, clients, len(root), bessel(2 * math.pi * cycles))
        scattered = correlate(white, root * math.sqrt(0.5))
        if isinstance(self.fading, Rayleigh):
            return scattered
        turn = stream.child("phase").uniforms(0, clients, 1)
        way = 2 * math.pi * stream.child("doppler", "way").uniforms(0, clients, 1)
        phase = 2 * math.pi * ((turn + cycles * index * np.cos(way)) % 1)
        return self.fading.with_sight(stream, clients, phase, scattered)

    def gain_by_client(self, root: ComplexArray) -> bool:
        """See :class:`channels.fading.FadingByClient`: blocks of a client are not independent."""
        return True


def check_block_seconds(block_seconds: float) -> None:
    """Raise unless this is a time from one block to the next."""
    check_number("block_seconds", block_seconds, "seconds")
    if not 0 < block_seconds <= LONGEST_SECONDS:
        raise ValueError(
            f"block_seconds is {block_seconds}: give seconds above 0, at most {LONGEST_SECONDS:g}."
        )


def bessel(x: Any) -> Any:
    """J0(x), the correlation of channels at two times in Clarke's model."""
    from scipy.special import j0  # SciPy loads slowly

    return j0(x)


def _sum_of_waves(stream: Stream, cycles: Any, clients: IntArray, antennas: int) -> ComplexArray:
    """Sums of plane waves, CN(0, 2), after so many cycles of the largest shift."""
    stream = stream.child("doppler")
    normals = stream.child("waves").normals(0, clients, 2 * antennas * PATHS)
    waves = normals.view(np.complex64).reshape(len(clients), antennas, PATHS)
    first = stream.child("directions").uniforms(0, clients, 1)
    shifts = np.cos(2 * math.pi * (first + np.arange(PATHS)) / PATHS)
    turned = waves * np.exp(2j * math.pi * (cycles * shifts % 1))[:, None]
    return np.asarray(turned.sum(-1) / math.sqrt(PATHS))


def _autoregression(
    stream: Stream, index: int, clients: IntArray, antennas: int, rho: Any
) -> ComplexArray:
    """Block ``index`` of g_i = rho g_(i-1) + sqrt(1 - rho^2) w_i, CN(0, 2), which is Markov.

    Given blocks i - b and i + b, block i has the mean q (g_(i-b) + g_(i+b)) / (1 + q^2) and the
    variance (1 - q^2) / (1 + q^2), q = |rho|^b. If rho < 0, every other block has the other sign.
    """
    blocks: dict[int, ComplexArray] = {}

    def block(number: int) -> ComplexArray:
        if number not in blocks:
            blocks[number] = drawn(number)
        return blocks[number]

    def drawn(number: int) -> ComplexArray:
        new = stream.normals(number, clients, 2 * antennas).view(np.complex64)
        step = number & -number  # to the neighbours that are drawn before this block
        doubled = number == step  # 1, 2, 4, ...: the neighbour behind is not drawn yet
        q = np.abs(rho) ** max(step // 2 if doubled else step, 1)
        q = np.where(q < FORGOTTEN, 0.0, q)
        if number == 0 or not q.any():
            return new
        if doubled:
            return np.asarray(q * block(number // 2) + np.sqrt(1 - q * q) * new)
        near = block(number - step) + block(number + step)
        square = q * q
        return np.asarray(q / (1 + square) * near + np.sqrt((1 - square) / (1 + square)) * new)

    if index % 2 == 0:
        return block(index)
    return np.asarray(np.where(rho < -FORGOTTEN, -1, 1) * block(index))


__all__ = ["Doppler"]
