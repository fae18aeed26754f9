"""Recorded channels, e.g. from measurements, ray tracing or a channel simulator."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.decibels import LARGEST_DB
from channels.fading import over_band
from channels.matlab import read_mat
from channels.npz import read_npz
from channels.streams import Stream
from channels.validation import RECEIVE_ARRAYS, as_array

ARRAYS = ("h", "gain", "gain_db")
"""Names of the arrays of a file, of which it has one."""
LARGEST_GAIN_DB = -20.0
"""Largest plausible mean gain: at 700 MHz, one metre of free space loses 29 dB."""
LONGEST_LIST = 10
"""Maximum number of names that a message lists."""


class Recorded:
    """Channels replayed block by block: a :class:`channels.Fading`.

    Block b of a run has the recorded block b modulo the number of recorded blocks. Uploads that
    start at any time have the block of their number. Channels include their path loss, so that
    ``Network(cell_of, cpu_hz=2e9, **Recorded(h).links)`` is their network.

    >>> import numpy as np
    >>> import channels
    >>> fading = channels.Recorded(1e-5 * np.ones((3, 4, 2), dtype=complex))
    >>> fading.draw(channels.Stream(1), 1, np.array([0, 2]), np.eye(2)).shape
    (2, 2)

    Args:
        h: [blocks, clients, antennas] complex, received over transmitted amplitude, or [blocks,
            clients, subcarriers, antennas] with the responses at the middles of subcarriers of
            equal width, which together are the band of the network. A client has one transmit
            antenna; the antennas are those of its edge server.

    Raises:
        ValueError: the shape is wrong, or a channel is not finite, is zero, or has an implausible
            gain.
    """

    h: ComplexArray
    """[blocks, clients, antennas] complex64, scaled to mean power 1 per client and antenna; with
    subcarriers, see :func:`channels.over_band`."""
    spectrum: FloatArray | None
    """[blocks, clients, subcarriers], gain of each over the mean; None for a flat band."""
    gain_db: FloatArray
    """[clients], mean channel gain per antenna, in dB."""

    def __init__(self, h: ArrayLike) -> None:
        channels = as_array("h", h)
        if channels.ndim not in (3, 4) or not channels.size:
            raise ValueError(
                f"h has shape {channels.shape}: give [blocks, clients, antennas] or [blocks, "
                "clients, subcarriers, antennas], at least one each."
                f"{' ' + RECEIVE_ARRAYS if channels.ndim > 4 else ''}"
            )
        if channels.dtype.kind != "c":
            raise ValueError(
                f"h has dtype {channels.dtype}: give complex channels. Power gains belong in gain "
                "(ratios) or gain_db."
            )
        bad = ~np.isfinite(channels)
        if bad.any():
            place = _place(bad)
            raise ValueError(
                f"h{place} is {channels[bad].flat[0]}: give finite channels [blocks, clients, "
                "antennas] or [blocks, clients, subcarriers, antennas]."
            )
        self.spectrum = None
        if channels.ndim == 4:
            responses = np.swapaxes(channels, 2, 3)
            flat = responses.shape[3] == 1
            channels, spectrum = (responses[..., 0], None) if flat else over_band(responses)
            self.spectrum = spectrum
        zero = ~channels.any(axis=-1)
        if zero.any():
            block, client = np.argwhere(zero)[0].tolist()
            raise ValueError(
                f"h[{block}, {client}] is zero, so client {client} would never finish an upload in "
                "this block: leave out the block, or the client."
            )
        wide = channels.astype(np.complex128)
        power = (wide.real**2 + wide.imag**2).mean(axis=(0, 2))
        self.gain_db = 10 * np.log10(power)
        _check_gains(self.gain_db)
        self.h = (wide / np.sqrt(power)[:, None]).astype(np.complex64)
        for array in (self.h, self.gain_db, self.spectrum):
            if array is not None:
                array.setflags(write=False)

    @classmethod
    def of_gains(cls, gain: ArrayLike) -> Recorded:
        """Channels of one antenna with these power gains, whose phases are 0.

        Args:
            gain: [blocks, clients] or [blocks, clients, subcarriers], received over transmitted
                power, > 0.

        Raises:
            ValueError: the shape is wrong, or a gain is not finite, not positive, or implausible.
        """
        gains = _gains("gain", gain)
        bad = ~(gains > 0)
        if bad.any():
            raise ValueError(
                f"gain{_place(bad)} is {gains[bad].flat[0]:g}: give ratios > 0. Gains in dB belong "
                "in gain_db."
            )
        return cls(np.sqrt(gains).astype(np.complex128)[..., None])

    @classmethod
    def of_gains_db(cls, gain_db: ArrayLike) -> Recorded:
        """Channels of one antenna with these power gains in dB, whose phases are 0.

        Args:
            gain_db: [blocks, clients] or [blocks, clients, subcarriers], in dB, within [-300, 0];
                minus the path loss.

        Raises:
            ValueError: the shape is wrong, or a gain is not finite or implausible.
        """
        decibels = _gains("gain_db", gain_db)
        bad = ~((decibels >= -LARGEST_DB) & (decibels <= 0))
        if bad.any():
            raise ValueError(
                f"gain_db{_place(bad)} is {decibels[bad].flat[0]:g}: give dB within [-300, 0], "
                "minus the path loss."
            )
        if (decibels > -1).all():
            raise ValueError(
                f"gain_db is {decibels.flat[0]:g} and similar, which look like ratios: give dB, or "
                "name the array gain."
            )
        return cls.of_gains(10 ** (decibels / 10))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Recorded:
        """Read a ``.npz`` file of NumPy or a ``.mat`` file of MATLAB, which has one of these.

        Files of MATLAB's format v7.3 need h5py (``pip install 'wirelessfl[matlab]'``). Axes are
        those of MATLAB's ``size(h)``.

        - ``h`` [blocks, clients, antennas] complex, without the last axis for one antenna, or
          [blocks, clients, subcarriers, antennas];
        - ``gain`` [blocks, clients], ratios of power, or ``gain_db``, in dB: one antenna. With
          subcarriers they are the last axis.

        Raises:
            ValueError: the file cannot be read, or its channels are wrong; the message names it.
        """
        file = Path(path).expanduser()
        arrays = _arrays(file)
        stored = [name for name in ARRAYS if name in arrays]
        if len(stored) != 1:
            names = [*arrays][:LONGEST_LIST]
            more = ["..."] if len(arrays) > LONGEST_LIST else []
            raise ValueError(
                f"{file} has the arrays {', '.join([*names, *more]) or '(none)'}: save one of h "
                "[blocks, clients, antennas], gain [blocks, clients] or gain_db [blocks, clients]; "
                "subcarriers are the axis after the clients."
            )
        try:
            values = arrays[stored[0]]
            if values.dtype.names:
                fields = ", ".join(values.dtype.names[:LONGEST_LIST])
                raise ValueError(
                    f"{stored[0]} is a struct with the fields {fields}: save one array, e.g. "
                    "h = h.re + 1i*h.im."
                )
            if values.dtype.kind not in "biufc":
                raise ValueError(f"{stored[0]} has dtype {values.dtype}: save an array of numbers.")
            if stored[0] == "h":  # MATLAB drops a last axis of length 1
                return cls(values[..., None] if values.ndim == 2 else values)
            return (cls.of_gains if stored[0] == "gain" else cls.of_gains_db)(values)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None

    @property
    def blocks(self) -> int:
        """Number of recorded blocks."""
        return len(self.h)

    @property
    def clients(self) -> int:
        """Number of clients."""
        return len(self.gain_db)

    @property
    def antennas(self) -> int:
        """Number of antennas per edge server."""
        return int(self.h.shape[2])

    @property
    def subcarriers(self) -> int:
        """Number of subcarriers; 1 for a flat band."""
        return 1 if self.spectrum is None else self.spectrum.shape[2]

    @property
    def links(self) -> dict[str, Any]:
        """Arguments of a :class:`channels.Network` with these channels."""
        return {"gain_db": self.gain_db, "antennas": self.antennas, "fading": self}

    def draw(
        self, stream: Stream, index: int, clients: IntArray, root: ComplexArray
    ) -> ComplexArray:
        """See :class:`channels.Fading`; nothing is random, and antennas are correlated already.

        Raises:
            ValueError: the network has more clients or another number of antennas.
        """
        if len(root) != self.antennas or (len(clients) and clients.max() >= self.clients):
            raise ValueError(
                f"the network has client {clients.max(initial=0)} and {len(root)} antennas, but "
                f"the recorded channels have {self.clients} clients and {self.antennas} antennas: "
                "give a network of their size."
            )
        return np.asarray(self.h[index % self.blocks][clients])

    def draw_band(
        self,
        stream: Stream,
        index: int,
        clients: IntArray,
        root: ComplexArray,
        bandwidth_hz: FloatArray,
    ) -> tuple[ComplexArray, FloatArray]:
        """See :class:`channels.SelectiveFading`; the recorded subcarriers are those of any band."""
        h = self.draw(stream, index, clients, root)
        if self.spectrum is None:
            return h, np.ones((len(clients), 1))
        return h, np.asarray(self.spectrum[index % self.blocks][clients])

    def gain_by_client(self, root: ComplexArray) -> bool:
        """See :class:`channels.fading.FadingByClient`: each client has its own recording."""
        return True

    def check_fits(self, clients: int) -> None:
        """Raise unless these are the channels of so many clients.

        Raises:
            ValueError: they are not.
        """
        if self.clients != clients:
            # Receive arrays [users, rx, tx] look like [blocks, clients, antennas].
            remedy = f" {RECEIVE_ARRAYS}" if self.blocks == clients else " Are the axes permuted?"
            raise ValueError(
                f"recorded channels have [blocks, clients, antennas] = "
                f"{[*self.h.shape]}, and the network has {clients} clients.{remedy}"
            )

    def __repr__(self) -> str:
        by = "" if self.spectrum is None else f"{self.subcarriers} subcarriers, "
        return (
            f"Recorded({self.blocks} blocks, {self.clients} clients, {by}{self.antennas} antennas)"
        )


def _check_gains(gain_db: FloatArray) -> None:
    """Raise if a mean gain is implausible, as that of normalised channels."""
    client = int(gain_db.argmax())
    if gain_db[client] > LARGEST_GAIN_DB:
        raise ValueError(
            f"the mean gain of client {client} is {gain_db[client]:.4g} dB, more than "
            f"{LARGEST_GAIN_DB:g} dB: give channels with their path loss. Multiply normalised "
            "channels h by 10 ** (-path_loss_db / 20)."
        )


def _gains(name: str, values: ArrayLike) -> FloatArray:
    array = as_array(name, values)
    if array.ndim not in (2, 3) or not array.size or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} has shape {array.shape} and dtype {array.dtype}: give real numbers "
            "[blocks, clients] or [blocks, clients, subcarriers]."
        )
    real = array.astype(np.float64)
    bad = ~np.isfinite(real)
    if bad.any():
        raise ValueError(f"{name}{_place(bad)} is {real[bad].flat[0]}: give finite gains.")
    return real


def _place(bad: Any) -> str:
    """Index of the first True, e.g. "[0, 3]"."""
    return str(np.argwhere(bad)[0].tolist())


def _arrays(file: Path) -> Mapping[str, Any]:
    """Arrays of a file, by name."""
    if not file.is_file():
        raise ValueError(f"there is no file {file}: give a .npz or .mat file of channels.")
    try:
        if file.suffix == ".npz":
            return read_npz(file)
        if file.suffix == ".mat":
            return read_mat(file, ARRAYS)
    except ModuleNotFoundError:
        raise ValueError(
            f"{file} has the format v7.3 of MATLAB, which needs h5py: run pip install "
            "'wirelessfl[matlab]', or save it as save(file, 'h', '-v7')."
        ) from None
    except Exception as error:  # readers raise many kinds on damaged files
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"{file} cannot be read ({reason}): save it as numpy.savez(file, h=h), or in MATLAB "
            "as save(file, 'h', '-v7')."
        ) from None
    raise ValueError(f"{file} has another format: give a .npz file of NumPy, or .mat of MATLAB.")
