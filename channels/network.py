"""A cellular network: cells, clients, their properties, and draws of their channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import checked, is_numeric
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.by_client import ByClientField, Listed, stored_by_cell
from channels.cells import ClientsByCell, read_only
from channels.decibels import (
    LARGEST_DB,
    THERMAL_DBM_PER_HZ,
    dbm_to_watts,
    gains_in_range,
    noise_power_dbm,
    powers_in_range,
)
from channels.fading import Fading, FadingByClient, Rayleigh, correlation_root
from channels.interference import Interference
from channels.placement import Placement
from channels.streams import Stream
from channels.summaries import ROWS, cells_of, counted, hertz, html_table, span
from channels.validation import (
    as_array,
    checked_cells,
    checked_part,
    in_range,
    increasing,
    shown,
)

BY_CLIENT = (
    "cell_of",
    "cpu_hz",
    "_snr_db",
    "path_gain_db",
    "transmit_power_w",
    "switched_capacitance",
)
DEFAULT_POWER_W = 0.1
"""Default transmit power of a client, 20 dBm, at which :meth:`Network.from_snr` fixes the gains."""
DEFAULT_DBM = 20.0
"""The same power in dBm."""
SHOWN = 10_000
"""Maximum number of clients whose SNRs the representation of a network evaluates."""


@dataclass(frozen=True, eq=False, init=False)
class Network(ClientsByCell):
    """Cells with their clients and one edge server per cell; immutable.

    Everything is physical: the SNR follows from mean channel gain, transmit power, band and noise.
    Where a shape is [clients] or [cells], one number applies to all. Downlink and backhaul are not
    modelled. :meth:`from_snr` takes an SNR instead of gains.

    >>> import channels
    >>> network = channels.Network([0, 0, 1], gain_db=[-100.0, -110.0, -90.0], cpu_hz=1e9)
    >>> network.mean_snr_db.round(1).tolist()
    [24.5, 14.5, 34.5]

    Args:
        cell_of: [clients], the cell of each client: 0, 1, ... in increasing order, without gaps.
        cpu_hz: F_i [clients], CPU cycles per second, > 0.
        gain_db: [clients], mean channel gain per antenna, in dB, within [-300, 0]: minus the path
            loss and shadowing, plus antenna gains. See :func:`channels.path_loss_db`.
        transmit_power_w: P_i [clients], maximum transmit power in watts, > 0 and at most 10.
        bandwidth_hz: B [cells], > 0.
        noise_dbm_per_hz: N0, density of the thermal noise in dBm/Hz, from -300 to -100.
        noise_figure_db: noise figure of the receivers in dB, from 0 to 60.
        antennas: M, number of antennas per edge server, >= 1.
        fading: model of small-scale fading; None means Rayleigh fading.
        antenna_correlation: rho of the exponential model, |rho| < 1.
        interference: noise rise by clients of other cells; None if cells do not interfere.
        placement: where the gains come from; None if they are given.
        cycles_per_step: V_0, CPU cycles per mini-batch step of the full model, > 0.
        switched_capacitance: kappa [clients] in kappa f^2 joules per cycle, >= 0.
        part: [clients], increasing indices of the clients in a larger network; None means that
            this is the whole network. In a sub-network (see :meth:`of`) cells may be empty, and
            ``bandwidth_hz`` covers all cells of the larger network.

    Raises:
        ValueError: a value is out of range, a shape does not fit, or a cell is empty or out of
            order.
        TypeError: ``fading`` is not a fading model, or ``gain_db`` is missing.
    """

    bandwidth_hz: FloatArray
    noise_dbm_per_hz: float
    noise_figure_db: float
    antennas: int
    fading: Fading
    antenna_correlation: complex
    interference: Interference | None
    placement: Placement | None
    cycles_per_step: float
    part: IntArray | None
    # An SNR that a caller gave is kept, with its noise, so that no rounding changes it.
    _noise_dbm: FloatArray
    """Noise powers [cells] in dBm, with which ``_snr_db`` holds."""
    cell_of: ByClientField[np.int64] = ByClientField()
    cpu_hz: ByClientField[np.float64] = ByClientField()
    transmit_power_w: ByClientField[np.float64] = ByClientField()
    switched_capacitance: ByClientField[np.float64] = ByClientField()
    path_gain_db: ByClientField[np.float64] = ByClientField()
    """Part of the mean gain that channels h include, in dB; 0 unless :meth:`from_snr` sets it."""
    _snr_db: ByClientField[np.float64] = ByClientField()
    """SNR [clients] at ``DEFAULT_POWER_W`` and the noise ``_noise_dbm``, without path gain."""
    _ends: IntArray = field(init=False, repr=False)  # [cells], first client after each cell

    @checked()
    def __init__(
        self,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike,
        gain_db: ArrayLike | None = None,
        transmit_power_w: ArrayLike = DEFAULT_POWER_W,
        bandwidth_hz: ArrayLike = 9e6,
        noise_dbm_per_hz: float = THERMAL_DBM_PER_HZ,
        noise_figure_db: float = 0.0,
        antennas: int = 1,
        fading: Fading | None = None,
        antenna_correlation: complex = 0.0,
        interference: Interference | None = None,
        placement: Placement | None = None,
        cycles_per_step: float = 1e6,
        switched_capacitance: ArrayLike = 1e-28,
        part: ArrayLike | None = None,
        path_gain_db: ArrayLike = 0.0,
        _snr_db: ArrayLike | None = None,
        _noise_dbm: FloatArray | None = None,
    ) -> None:
        if part is None:
            cells = checked_cells(cell_of)
            cell_count = int(cells[-1]) + 1
        else:
            cell_count = np.size(bandwidth_hz)
            cells, part = checked_part(cell_of, part, cell_count)
        fading = Rayleigh() if fading is None else fading
        if not isinstance(fading, Fading):
            raise TypeError(
                f"fading is {shown(fading)}: give a model, e.g. Rayleigh() or Rician()."
            )
        clients = ("clients", len(cells))
        band = in_range("bandwidth_hz", bandwidth_hz, ("cells", cell_count), above=0)
        noise = noise_power_dbm(band, noise_figure_db, noise_dbm_per_hz)
        path_gain = in_range("path_gain_db", path_gain_db, clients, limit=LARGEST_DB)
        if gain_db is not None:
            gain = gains_in_range(gain_db, clients)
            if placement is not None and part is None:
                placement.check_gains(gain)
            snr, path_gain = gain + DEFAULT_DBM - noise[cells], 0 * gain
            _noise_dbm = noise
        elif _snr_db is not None:
            snr = in_range("snr_db", _snr_db, clients)
        else:
            raise TypeError(
                "gain_db is missing: give mean channel gains in dB, or build the network with "
                "Network.from_snr."
            )
        if _noise_dbm is not None and len(_noise_dbm) != cell_count:
            raise ValueError(
                f"cell_of has {cell_count} cells, and the SNRs hold for {len(_noise_dbm)}: to "
                "change the number of cells, build a new network."
            )
        power = powers_in_range(transmit_power_w, clients)
        if interference is not None and part is None:
            interference.check_fits(clients=len(cells), cells=cell_count)
            interference = replace(interference, transmit_power_w=power)
        by_client = {
            "cell_of": cells,
            "cpu_hz": in_range("cpu_hz", cpu_hz, clients, above=0),
            "transmit_power_w": power,
            "switched_capacitance": in_range(
                "switched_capacitance", switched_capacitance, clients, min_value=0
            ),
            "path_gain_db": path_gain,
            "_snr_db": snr,
        }
        ends = np.searchsorted(cells, np.arange(cell_count), side="right")
        values = {
            "bandwidth_hz": band,
            "noise_dbm_per_hz": float(noise_dbm_per_hz),
            "noise_figure_db": float(noise_figure_db),
            "antennas": antennas,
            "fading": fading,
            "antenna_correlation": antenna_correlation,
            "interference": interference,
            "placement": placement,
            "cycles_per_step": float(
                in_range("cycles_per_step", cycles_per_step, ("", 1), above=0)[0]
            ),
            "part": part,
            "_noise_dbm": noise if _noise_dbm is None else _noise_dbm,
            "_ends": ends,
            **{
                name: stored_by_cell(value, ends) if part is None else Listed(value)
                for name, value in by_client.items()
            },
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        correlation_root(antennas, antenna_correlation)  # raise errors here, not in a draw

    @classmethod
    @checked()
    def from_snr(
        cls,
        cell_of: ArrayLike,
        *,
        cpu_hz: ArrayLike,
        snr_db: ArrayLike,
        path_gain_db: ArrayLike = 0.0,
        **others: Any,
    ) -> Network:
        """A network whose gains give these SNRs at the default power of 0.1 W (20 dBm).

        Another ``transmit_power_w`` shifts the SNR: 0.2 W gives 3 dB more.

        Args:
            cell_of: [clients], the cell of each client.
            cpu_hz: F_i [clients], CPU cycles per second.
            snr_db: [clients], transmit SNR P / sigma_0^2 at 0.1 W over the whole band and per
                antenna, in dB, for a channel of mean power 1; within [-300, 300].
            path_gain_db: [clients], mean power of a channel per antenna, in dB; within [-300, 300].
            others: further arguments of :class:`Network`, by name; not ``gain_db``.

        Raises:
            ValueError: as :class:`Network`.
            TypeError: ``gain_db`` is given, or an argument is unknown.
        """
        if "gain_db" in others:
            raise TypeError("gain_db conflicts with snr_db, which fixes the gains: omit one.")
        snr = in_range("snr_db", snr_db, ("clients", np.size(cell_of)), limit=LARGEST_DB)
        return cls(cell_of, cpu_hz=cpu_hz, path_gain_db=path_gain_db, _snr_db=snr, **others)

    @checked()
    def with_snr(self, snr_db: ArrayLike) -> Network:
        """This network with gains that give these SNRs at 0.1 W, see :meth:`from_snr`.

        Args:
            snr_db: [clients] or one number, in dB; within [-300, 300].

        Raises:
            ValueError: an SNR is out of range, or the shape does not fit.
        """
        snr = in_range("snr_db", snr_db, ("clients", self.clients), limit=LARGEST_DB)
        values: dict[str, Any] = {"_snr_db": snr, "_noise_dbm": self.noise_dbm}
        return replace(self, placement=None, **values)  # the SNR no longer follows from positions

    def __repr__(self) -> str:
        """One line; of many clients, the SNRs are those of some of them."""
        rows = np.arange(self.clients)
        about = ""
        if self.clients > SHOWN:
            rows, about = np.linspace(0, self.clients - 1, SHOWN).astype(np.int64), "about "
        snr = self.snr_db_of(rows) + vars(self)["path_gain_db"].at(rows)
        return f"<Network: {self._size}, mean SNR {about}{span(snr, 'dB')}>"

    def _repr_html_(self) -> str:
        """A table of the first clients, for notebooks."""
        rows = np.arange(min(self.clients, ROWS))
        some = self.of(rows if self.part is None else self.part[rows])
        columns = {
            "client": cells_of(some.numbers, "d"),
            "cell": cells_of(some.cell_of, "d"),
            "mean SNR [dB]": cells_of(some.mean_snr_db, ".1f"),
            "transmit power [W]": cells_of(some.transmit_power_w, ".3g"),
            "CPU [GHz]": cells_of(some.cpu_hz, ".3g", 1e9),
        }
        return html_table(repr(self)[1:-1], columns, self.clients)

    @property
    def _size(self) -> str:
        clients, cells = counted(self.clients, "client"), counted(self.cells, "cell")
        each = " per cell" if self.cells > 1 else ""
        antennas = counted(self.antennas, "antenna")
        return f"{clients} in {cells}, {hertz(self.bandwidth_hz)}{each}, {antennas}"

    @property
    def noise_dbm(self) -> FloatArray:
        """Noise power in each cell's band, N0 B and noise figure, in dBm [cells]."""
        return noise_power_dbm(self.bandwidth_hz, self.noise_figure_db, self.noise_dbm_per_hz)

    @property
    def snr_db(self) -> FloatArray:
        """Transmit SNR [clients] in dB, P_i over the noise, for a channel h of mean power 1.

        It covers the whole band of the cell, and includes the mean gain but for ``path_gain_db``,
        which is a part of h. The array is read-only.
        """
        return read_only(self.snr_db_of(np.arange(self.clients)))

    def snr_db_of(self, rows: IntArray) -> FloatArray:
        """``snr_db`` of some clients, [rows]; takes no memory for the others."""
        values = vars(self)
        power = values["transmit_power_w"].at(rows) / DEFAULT_POWER_W
        more_noise = (self.noise_dbm - self._noise_dbm)[values["cell_of"].at(rows)]
        return np.asarray(values["_snr_db"].at(rows) + 10 * np.log10(power) - more_noise)

    @property
    def gain_db(self) -> FloatArray:
        """Mean channel gain per antenna [clients], in dB."""
        gain = self._snr_db + self._noise_dbm[self.cell_of] - DEFAULT_DBM
        return read_only(gain + self.path_gain_db)

    @property
    def mean_snr_db(self) -> FloatArray:
        """Mean received SNR per antenna in the whole band of the cell [clients], in dB."""
        return read_only(self.snr_db + self.path_gain_db)

    @cached_property
    def _root(self) -> ComplexArray:
        return correlation_root(self.antennas, self.antenna_correlation)

    def of(self, clients: ArrayLike) -> Network:
        """The sub-network of the given clients; the cost of a draw is proportional to its size.

        The clients keep their cells and channels: a draw of the sub-network equals, bit for bit,
        these clients' rows of the draw of the whole network.

        Args:
            clients: [clients], an increasing subset of ``numbers``.

        Raises:
            ValueError: a client is not in this network, or the clients are out of order.
        """
        numbers = increasing("clients", clients)
        rows = numbers if self.part is None else np.searchsorted(self.part, numbers)
        unknown = rows >= self.clients
        if self.part is not None and not unknown.any():
            unknown = self.part[rows] != numbers
        if unknown.any():
            raise ValueError(
                f"clients contains {numbers[unknown][0]}: choose from the network's client "
                "indices, Network.numbers."
            )
        if len(numbers) == self.clients:
            return self
        return replace(
            self, part=numbers, **{name: vars(self)[name].at(rows) for name in BY_CLIENT}
        )

    def regrouped(self, rows: IntArray, cells: IntArray, sizes: IntArray) -> Network:
        """A network whose cells are groups of clients of this one, without interference.

        Each group has the band and the noise of its clients' cell. A client can be in several
        groups.

        Args:
            rows: [clients], clients of the groups, group by group, from 0 to ``clients`` - 1.
            cells: [groups], the cell of each group's clients.
            sizes: [groups], number of clients of each group.
        """
        by_client = {name: vars(self)[name].at(rows) for name in BY_CLIENT}
        by_client["cell_of"] = np.repeat(np.arange(len(cells)), sizes)
        by_cell: dict[str, Any] = {"_noise_dbm": self._noise_dbm[cells]}
        return replace(
            self,
            part=np.arange(len(rows)),
            bandwidth_hz=self.bandwidth_hz[cells],
            interference=None,
            placement=None,
            **by_cell,
            **by_client,
        )

    @checked()
    def draw(self, stream: Stream, index: int = 0, clients: ArrayLike | None = None) -> ChannelDraw:
        """The channels of one block.

        Args:
            stream: randomness of the channels, e.g. ``run.child("channel")``.
            index: the block, e.g. the global round; equal indices give equal channels.
            clients: clients to draw, see :meth:`of`; None means all.

        Returns:
            A draw with h [clients, antennas].

        Raises:
            TypeError: an argument has the wrong type.
        """
        if clients is not None:
            return self.of(clients).draw(stream, index)
        h = self.fading.draw(stream, index, self.numbers, self._root)
        amplitude = 10 ** (self.path_gain_db / 20)
        return ChannelDraw(
            self, h * amplitude[:, None].astype(np.float32), self._noise_rise(stream, index)
        )

    def _noise_rise(self, stream: Stream, index: int) -> FloatArray | None:
        """Noise and interference of a block over noise [cells]; None without interference."""
        if self.interference is None:
            return None
        watts = self.interference.watts(stream.child("interference"), index)
        return np.asarray(1 + watts / dbm_to_watts(self.noise_dbm))

    @cached_property
    def gain_by_client(self) -> bool:
        """Whether gains without the path gain differ in distribution from client to client.

        That is so for Rician fading with correlated antennas, where it depends on the direction.
        """
        return isinstance(self.fading, FadingByClient) and self.fading.gain_by_client(self._root)

    def draw_gains(self, stream: Stream, index: int, uploads: int) -> FloatArray:
        """Channel gains ||h||^2 of independent uploads, without the path gain.

        They have no client. Where :attr:`gain_by_client` is true, draw each of them by
        :meth:`draw_gain`.

        Args:
            stream: randomness of these channels.
            index: index of the block of uploads; equal indices give equal channels.
            uploads: number of uploads.

        Returns:
            [uploads].

        Raises:
            ValueError: gains depend on the client.
        """
        if self.gain_by_client:
            raise ValueError(
                f"fading is {self.fading} and antenna_correlation {self.antenna_correlation}: a "
                "gain depends on the client. Draw the gain of each upload by draw_gain."
            )
        return self._gains(stream, index, np.arange(uploads))

    def draw_gain(self, stream: Stream, number: int, client: int) -> float:
        """Channel gain ||h||^2 of one upload, without the path gain.

        Gains of uploads with other numbers are independent, but for what stays the client's own,
        e.g. its direction.

        Args:
            stream: randomness of these channels.
            number: number of the upload.
            client: its client, from 0 to ``clients`` - 1.
        """
        row = client if self.part is None else self.part[client]
        return float(self._gains(stream, number, np.array([row]))[0])

    def _gains(self, stream: Stream, index: int, rows: IntArray) -> FloatArray:
        """||h||^2 [rows] of small-scale channels."""
        h = self.fading.draw(stream, index, rows, self._root).astype(np.complex128)
        return np.asarray((h.real**2 + h.imag**2).sum(axis=-1))

    @checked()
    def draws(
        self, stream: Stream, indices: Iterable[int], clients: ArrayLike | None = None
    ) -> ChannelDraw:
        """The channels of several blocks; each equals :meth:`draw` with its index.

        Args:
            stream: randomness of the channels.
            indices: the blocks.
            clients: clients to draw, see :meth:`of`; None means all.

        Returns:
            A draw with h [blocks, clients, antennas].

        Raises:
            TypeError: an argument has the wrong type.
        """
        if not isinstance(indices, Iterable):
            raise TypeError(f"indices is {shown(indices)}: give several blocks, e.g. range(10).")
        if clients is not None:
            return self.of(clients).draws(stream, indices)
        blocks = [self.draw(stream, index) for index in indices]
        if not blocks:
            return ChannelDraw(self, np.empty((0, self.clients, self.antennas), np.complex64))
        rises = [block.noise_rise for block in blocks if block.noise_rise is not None]
        return ChannelDraw(
            self, np.stack([block.h for block in blocks]), np.stack(rises) if rises else None
        )


@dataclass(frozen=True, eq=False)
class ChannelDraw:
    """Channels of a network or sub-network during one block or more; leading axes index blocks.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> draw.h.shape
    (4, 10)

    Args:
        network: network of the channels.
        h: [..., clients, antennas] complex64, channel of each client to its edge server, including
            ``path_gain_db`` of the network.
        noise_rise: [..., cells], power of noise and interference over that of noise in the whole
            band, >= 1, while one client of each other cell sends; None without interference.

    Raises:
        ValueError: ``h`` does not have the network's shape, or is not finite.
    """

    network: Network
    h: ComplexArray
    noise_rise: FloatArray | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network):
            raise TypeError(f"network is {shown(self.network)}: give a channels.Network.")
        given = as_array("h", self.h)
        if not is_numeric(given):
            raise TypeError(f"h is {shown(self.h)}: give an array of numbers.")
        h = np.array(given, dtype=np.complex64, order="C")  # a copy, as gain is cached
        shape = (self.network.clients, self.network.antennas)
        if h.shape[-2:] != shape:
            raise ValueError(f"h has shape {h.shape}: its last axes must be {shape}.")
        if not np.isfinite(h).all():
            raise ValueError("h contains NaN or infinity: check the fading model.")
        object.__setattr__(self, "h", h)
        if self.noise_rise is not None:
            rise = np.array(as_array("noise_rise", self.noise_rise), dtype=np.float64)
            self._check_rise(rise)
            object.__setattr__(self, "noise_rise", rise)

    def __repr__(self) -> str:
        """One line."""
        blocks = self.h.shape[:-2]
        of = "" if not blocks else f"{' x '.join(map(str, blocks))} blocks of "
        with np.errstate(divide="ignore"):
            snr = 10 * np.log10(self.snr * self.gain)
        return f"<ChannelDraw: {of}{self.network._size}, SNR {span(snr, 'dB')}>"

    def _repr_html_(self) -> str:
        """A table of the first clients in the first block, for notebooks.

        The rate is Shannon's capacity of the cell's whole band.
        """
        network = self.network
        first = (0,) * (self.h.ndim - 2)
        snr = (self.snr * self.gain)[first][:ROWS]
        band = network.bandwidth_hz[network.cell_of[:ROWS]]
        with np.errstate(divide="ignore"):
            columns = {
                "client": cells_of(network.numbers, "d"),
                "cell": cells_of(network.cell_of, "d"),
                "SNR [dB]": cells_of(10 * np.log10(snr), ".1f"),
                "rate, whole band [Mbit/s]": cells_of(band * np.log2(1 + snr), ".4g", 1e6),
            }
        return html_table(repr(self)[1:-1], columns, network.clients)

    def _check_rise(self, rise: FloatArray) -> None:
        wanted = (*self.h.shape[:-2], self.network.cells)
        if rise.shape != wanted:
            raise ValueError(
                f"noise_rise has shape {rise.shape}: give [..., cells], here {wanted}."
            )
        bad = ~(np.isfinite(rise) & (rise >= 1))
        if bad.any():
            raise ValueError(
                f"noise_rise contains {rise[bad].flat[0]}: give ratios of noise and interference "
                "to noise, finite and >= 1."
            )

    @cached_property
    def gain(self) -> FloatArray:
        """Channel gain ||h_i||^2 [..., clients], including the path gain."""
        real, imag = self.h.real.astype(np.float64), self.h.imag.astype(np.float64)
        return np.asarray((real**2 + imag**2).sum(axis=-1))

    @cached_property
    def snr(self) -> FloatArray:
        """Transmit SNR [..., clients] as a ratio, over the cell's whole band.

        Where cells interfere, it is the ratio of power to noise and interference.
        """
        snr = np.asarray(10 ** (self.network.snr_db / 10))
        if self.noise_rise is None:
            return np.broadcast_to(snr, self.h.shape[:-1])
        return np.asarray(snr / self.noise_rise[..., self.network.cell_of])

    @property
    def snr_db(self) -> FloatArray:
        """``snr`` in dB; that of the network, [clients], without interference."""
        if self.noise_rise is None:
            return self.network.snr_db
        return np.asarray(10 * np.log10(self.snr))

    @property
    def snr_hz(self) -> FloatArray:
        """P g / N0 in Hz [..., clients]: the SNR in the cell's whole band times that band.

        The SNR within a band b is snr_hz / b.
        """
        network = self.network
        return np.asarray(self.snr * self.gain * network.bandwidth_hz[network.cell_of])

    @property
    def gain_per_noise(self) -> FloatArray:
        """G = g / N0 in Hz/W [..., clients]: the SNR at p watts within a band b is p G / b."""
        return self.snr_hz / self.network.transmit_power_w

    def in_bands(self) -> ChannelDraw:
        """These channels where all clients of a cell send at once, each in a band of its own.

        If other cells divide their band alike, then one client of each of them is heard with its
        whole power in each of these n_j bands, and over the whole band n_j of them are heard. That
        is n_j times the interference of ``noise_rise``. Without interference, nothing changes.
        """
        if self.noise_rise is None:
            return self
        senders = np.maximum(self.network.cell_sizes, 1)
        return ChannelDraw(self.network, self.h, 1 + senders * (self.noise_rise - 1))

    def block(self, number: int) -> ChannelDraw:
        """One block of a draw of several; the last one if there are fewer."""
        at = min(number, len(self.h) - 1)
        rise = None if self.noise_rise is None else self.noise_rise[at]
        return ChannelDraw(self.network, self.h[at], rise)

    def of(self, clients: ArrayLike) -> ChannelDraw:
        """The channels of the given clients, see :meth:`Network.of`."""
        network = self.network.of(clients)
        if network is self.network:
            return self
        rows = np.searchsorted(self.network.numbers, network.numbers)
        return ChannelDraw(network, self.h.take(rows, axis=-2), self.noise_rise)
