"""Channels of a network's clients in some blocks: gains, SNR, and parts of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import is_numeric
from channels.arrays import ComplexArray, FloatArray
from channels.physical import PhysicalNetwork
from channels.summaries import ROWS, cells_of, html_table, span
from channels.validation import RECEIVE_ARRAYS, as_array, shown

MEAN_TOLERANCE = 1e-6
"""Largest deviation of a spectrum's mean from 1, above the rounding of float32."""


@dataclass(frozen=True, eq=False)
class DrawnChannels:
    """What a :class:`channels.ChannelDraw` is; see there for the arguments."""

    network: PhysicalNetwork
    h: ComplexArray
    noise_rise: FloatArray | None = None
    external_rise: FloatArray | None = None
    changes_db: FloatArray | None = None
    spectrum: FloatArray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.network, PhysicalNetwork):
            raise TypeError(f"network is {shown(self.network)}: give a channels.Network.")
        array = as_array("h", self.h)
        if not is_numeric(array):
            raise TypeError(f"h is {shown(self.h)}: give an array of numbers.")
        with np.errstate(over="ignore"):  # infinity is refused below
            h = np.array(array, dtype=np.complex64, order="C")  # a copy, as gain is cached
        shape = (self.network.clients, self.network.antennas)
        if h.shape[-2:] != shape:
            arrays = h.ndim > 2 and h.shape[-3:-1] == shape  # [..., users, rx, tx]
            raise ValueError(
                f"h has shape {h.shape}: its last axes must be {shape}, clients and antennas."
                f"{' ' + RECEIVE_ARRAYS if arrays else ''}"
            )
        if not np.isfinite(h).all():
            raise ValueError("h contains NaN or infinity: check the fading model.")
        object.__setattr__(self, "h", h)
        axes = {"noise_rise": ("cells", self.network.cells), "external_rise": ("clients", shape[0])}
        for name, axis in axes.items():
            if (value := getattr(self, name)) is not None:
                rise = np.array(as_array(name, value), dtype=np.float64)
                self._check_rise(name, rise, *axis)
                object.__setattr__(self, name, rise)
        if self.spectrum is not None:
            object.__setattr__(self, "spectrum", _spectrum(self.spectrum, h.shape[:-1]))

    def __repr__(self) -> str:
        """One line."""
        blocks = self.h.shape[:-2]
        of = "" if not blocks else f"{' x '.join(map(str, blocks))} blocks of "
        with np.errstate(divide="ignore"):
            snr = 10 * np.log10(self.snr * self.gain)
        return f"<ChannelDraw: {of}{self.network._size}, SNR {span(snr, 'dB')}>"

    def _repr_html_(self) -> str:
        """A table of the first clients in the first block, for notebooks.

        The rate is Shannon's capacity of the cell's whole band, over its subcarriers.
        """
        network = self.network
        first = (0,) * (self.h.ndim - 2)
        snr = (self.snr * self.gain)[first][:ROWS]
        band = network.bandwidth_hz[network.cell_of[:ROWS]]
        spectrum = np.ones(1) if self.spectrum is None else self.spectrum[first][:ROWS]
        capacity = np.log2(1 + snr[:, None] * spectrum).mean(-1)
        with np.errstate(divide="ignore"):
            columns = {
                "client": cells_of(network.numbers, "d"),
                "cell": cells_of(network.cell_of, "d"),
                "SNR [dB]": cells_of(10 * np.log10(snr), ".1f"),
                "rate, whole band [Mbit/s]": cells_of(band * capacity, ".4g", 1e6),
            }
        return html_table(repr(self)[1:-1], columns, network.clients)

    def _check_rise(self, name: str, rise: FloatArray, axis: str, size: int) -> None:
        shape = (*self.h.shape[:-2], size)
        if rise.shape != shape:
            raise ValueError(f"{name} has shape {rise.shape}: give [..., {axis}], here {shape}.")
        bad = ~(np.isfinite(rise) & (rise >= 1))
        if bad.any():
            raise ValueError(
                f"{name} contains {rise[bad].flat[0]}: give ratios of noise and interference "
                "to noise, finite and >= 1."
            )

    @cached_property
    def gain(self) -> FloatArray:
        """Channel gain ||h_i||^2 [..., clients], including the path gain."""
        real, imag = self.h.real.astype(np.float64), self.h.imag.astype(np.float64)
        return np.asarray((real**2 + imag**2).sum(axis=-1))

    @property
    def path_gain(self) -> FloatArray:
        """Mean power of a channel h per antenna, as a ratio: [clients], or of each block."""
        db = self.network.path_gain_db
        return np.asarray(10 ** ((db if self.changes_db is None else db + self.changes_db) / 10))

    @cached_property
    def snr(self) -> FloatArray:
        """Transmit SNR [..., clients] as a ratio, over the cell's whole band.

        Where cells interfere, it is the ratio of power to noise and interference.
        """
        snr = np.asarray(10 ** (self.network.snr_db / 10)) / self.rise()
        return np.broadcast_to(snr, self.h.shape[:-1])

    @property
    def disturbed(self) -> bool:
        """Whether there is interference."""
        return self.noise_rise is not None or self.external_rise is not None

    def rise(self, senders: FloatArray | float | None = None) -> FloatArray | float:
        """Power of noise and all interference over that of noise, [..., clients].

        Args:
            senders: [..., clients] or one number, how many clients of each other cell are heard;
                None for one.

        Returns:
            Ratios >= 1; 1 without interference.
        """
        if self.noise_rise is None:
            return 1.0 if self.external_rise is None else self.external_rise
        rise = self.noise_rise[..., self.network.cell_of]
        if senders is not None:
            rise = np.asarray(1 + senders * (rise - 1))
        return rise if self.external_rise is None else rise + (self.external_rise - 1)

    @property
    def snr_db(self) -> FloatArray:
        """``snr`` in dB; that of the network, [clients], without interference."""
        if not self.disturbed:
            return self.network.snr_db
        return np.asarray(10 * np.log10(self.snr))

    @property
    def snr_hz(self) -> FloatArray:
        """P g / N0 in Hz [..., clients]: the SNR in the cell's whole band times that band.

        The SNR within a band b is snr_hz / b. With subcarriers it is their mean.
        """
        network = self.network
        return np.asarray(self.snr * self.gain * network.bandwidth_hz[network.cell_of])

    @property
    def gain_per_noise(self) -> FloatArray:
        """G = g / N0 in Hz/W [..., clients]: the SNR at p watts within a band b is p G / b.

        Raises:
            ValueError: the channels are not flat over the band.
        """
        self.check_flat("gain_per_noise")
        return self.snr_hz / self.network.transmit_power_w

    def check_flat(self, what: str) -> None:
        """Raise unless the channels are flat over the band.

        Args:
            what: what needs flat channels, as the subject of the message.

        Raises:
            ValueError: they have a spectrum.
        """
        if self.spectrum is not None:
            raise ValueError(not_flat(what, self.spectrum.shape[-1]))

    def in_bands(self) -> Self:
        """These channels where all clients of a cell send at once, each in a band of its own.

        If other cells divide their band alike, then one client of each of them is heard with its
        whole power in each of these n_j bands, and over the whole band n_j of them are heard. That
        is n_j times the interference of ``noise_rise``. Without it nothing changes, as interference
        in watts has the same density in every part of the band.
        """
        if self.noise_rise is None:
            return self
        senders = np.maximum(self.network.cell_sizes, 1)
        return replace(self, noise_rise=1 + senders * (self.noise_rise - 1))

    def block(self, number: int) -> Self:
        """One block of a draw of several; the last one if there are fewer."""
        at = min(number, len(self.h) - 1)
        parts = (self.noise_rise, self.external_rise, self.changes_db, self.spectrum)
        return type(self)(
            self.network, self.h[at], *(None if part is None else part[at] for part in parts)
        )

    def of(self, clients: ArrayLike) -> Self:
        """The channels of the given clients, see :meth:`Network.of`."""
        network = self.network.of(clients)
        if network is self.network:
            return self
        rows = self.network.places(network.numbers)
        values: dict[str, FloatArray | None] = {
            "external_rise": self.external_rise,
            "changes_db": self.changes_db,
        }
        values = {name: v if v is None else v[..., rows] for name, v in values.items()}
        values["spectrum"] = None if self.spectrum is None else self.spectrum[..., rows, :]
        return replace(self, network=network, h=self.h.take(rows, axis=-2), **values)


def not_flat(what: str, subcarriers: int) -> str:
    """The message that something needs channels that are flat over the band."""
    return (
        f"{what} needs channels that are flat over the band, and these differ over {subcarriers} "
        "subcarriers: choose one subcarrier, or an access of equal slots or equal bands."
    )


def _spectrum(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Checked gains of subcarriers over their mean, [..., clients, subcarriers]."""
    spectrum = np.array(as_array("spectrum", values), dtype=np.float64)
    if spectrum.ndim != len(shape) + 1 or spectrum.shape[:-1] != shape or not spectrum.shape[-1]:
        raise ValueError(
            f"spectrum has shape {spectrum.shape}: give [..., clients, subcarriers], here "
            f"{(*shape, 'K')}."
        )
    mean = spectrum.mean(-1)
    if not ((spectrum >= 0).all() and (abs(mean - 1) <= MEAN_TOLERANCE).all()):
        raise ValueError(
            "spectrum has negative or non-finite gains, or means other than 1: give the gain of "
            "each subcarrier over the mean of the band."
        )
    return spectrum
