"""Random cells of three networks, for problems of allocation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from channels.presets import section_vi_c
from channels.streams import Stream

NOISE_WATTS_PER_HZ = 10 ** ((-174 - 30) / 10)
"""Thermal noise, -174 dBm/Hz."""
KAPPA = 1e-28
"""Energy of a CPU cycle at f is kappa f^2 joules."""
FCNN_BITS = 32 * 238_510
"""The network 784-300-10 of the HIST paper, in single precision."""
ANTENNAS = 10
STEPS = 20
"""Local steps per round."""


class Cells(NamedTuple):
    """Cells with one problem per row.

    Args:
        bits: [problems, clients], size of an update.
        cycles: [problems, clients] of computation.
        gain_per_noise: g / N0, [problems, clients] in Hz/W.
        max_cpu_hz: [problems, clients].
        max_power_watts: of each client.
        bandwidth_hz: of the cell.
    """

    bits: FloatArray
    cycles: FloatArray
    gain_per_noise: FloatArray
    max_cpu_hz: FloatArray
    max_power_watts: float
    bandwidth_hz: float

    @property
    def snr_hz(self) -> FloatArray:
        """SNR x band at full power, [problems, clients] in Hz."""
        return self.max_power_watts * self.gain_per_noise

    @property
    def compute_seconds(self) -> FloatArray:
        """Seconds of computation at full speed, [problems, clients]."""
        return self.cycles / self.max_cpu_hz


def macro_cell(problems: int, clients: int, stream: Stream) -> Cells:
    """The cell of Yang et al., IEEE TWC 20(3) (2021): 500 m square, base station in its centre.

    Path loss 128.1 + 37.6 log10 d(km) dB with 8 dB shadowing, 20 MHz, 10 dBm, updates of 28.1 kbit,
    1e4 to 3e4 cycles for each of 500 samples, up to 2 GHz.
    """
    dice = stream.generator()
    shape = problems, clients
    place = dice.uniform(-250, 250, (2, *shape))
    kilometres = np.maximum(np.hypot(*place), 1.0) / 1000
    loss_db = 128.1 + 37.6 * np.log10(kilometres) + 8 * dice.standard_normal(shape)
    return Cells(
        bits=np.full(shape, 28.1e3),
        cycles=500 * dice.uniform(1e4, 3e4, shape),
        gain_per_noise=10 ** (-loss_db / 10) / NOISE_WATTS_PER_HZ,
        max_cpu_hz=np.full(shape, 2e9),
        max_power_watts=0.01,
        bandwidth_hz=20e6,
    )


def disc(problems: int, clients: int, stream: Stream) -> Cells:
    """A disc of 500 m with 37.6 dB per decade and 8 dB shadowing; 10 dB per antenna at the edge.

    The SNR is that in the whole band of 9 MHz with 0.1 W; the base station combines ten antennas
    with Rayleigh fading. Clients train the network 784-300-10 with 1e7 cycles per step on CPUs of
    0.5 to 3 GHz.
    """
    dice = stream.generator()
    shape = problems, clients
    radius = np.maximum(500 * np.sqrt(dice.uniform(size=shape)), 10.0)
    snr_db = 10 - 37.6 * np.log10(radius / 500) + 8 * dice.standard_normal(shape)
    return Cells(
        bits=np.full(shape, float(FCNN_BITS)),
        cycles=np.full(shape, STEPS * 1e7),
        gain_per_noise=10 ** (snr_db / 10) * dice.gamma(ANTENNAS, size=shape) * 9e6 / 0.1,
        max_cpu_hz=dice.uniform(0.5e9, 3e9, shape),
        max_power_watts=0.1,
        bandwidth_hz=9e6,
    )


def section_vi_c_cell(problems: int, clients: int, stream: Stream) -> Cells:
    """In turn two slow cells (30 dB) and two fast ones (40 dB) of the HIST paper, Section VI-C."""
    shape = problems, clients
    network = section_vi_c(4, 4 * clients, stream=stream)
    dice = stream.child("fading").generator()
    gain = dice.gamma(ANTENNAS, size=shape)  # ||h||^2 of Rayleigh fading
    return Cells(
        bits=np.full(shape, float(FCNN_BITS)),
        cycles=np.full(shape, STEPS * 1e6),
        gain_per_noise=np.resize(10 ** (network.snr_db / 10), shape) * gain * 9e6 / 0.1,
        max_cpu_hz=np.resize(network.cpu_hz, shape),
        max_power_watts=0.1,
        bandwidth_hz=9e6,
    )


NETWORKS: dict[str, tuple[Callable[[int, int, Stream], Cells], int]] = {
    "macro cell": (macro_cell, 50),
    "disc": (disc, 60),
    "Section VI-C": (section_vi_c_cell, 15),
}
"""Networks with their numbers of clients per cell."""


def drawn(name: str, problems: int) -> Cells:
    """Random cells of a network; equal numbers give equal cells."""
    make, clients = NETWORKS[name]
    return make(problems, clients, Stream(0, ("allocation", name)))
