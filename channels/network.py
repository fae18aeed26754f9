"""A cellular network: cells, clients, their properties, and draws of their channels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.arrays import ComplexArray, FloatArray, IntArray
from channels.decibels import dbm_to_watts
from channels.devices import some
from channels.drawn import DrawnChannels, not_flat
from channels.fading import Fading, FadingByClient, SelectiveFading, correlation_root
from channels.interference import ActiveInterference, watts_in
from channels.moving import Moving, amplitudes
from channels.network_values import DEFAULT_DBM, DEFAULT_POWER_W
from channels.physical import BY_CLIENT, SHOWN, PhysicalNetwork
from channels.streams import Stream
from channels.validation import shown

__all__ = ["BY_CLIENT", "DEFAULT_DBM", "DEFAULT_POWER_W", "SHOWN", "ChannelDraw", "Network"]


# partial, because mypy takes inherited fields of a dataclass for plain values, not descriptors.
@partial(dataclass, frozen=True, eq=False, init=False, repr=False)
class Network(PhysicalNetwork):
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
        cpu_hz: F_i [clients], CPU cycles per second, > 0; None with ``devices``.
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
        interference_watts: interference from elsewhere, received per antenna in the whole band of a
            cell: one number, [cells], or [clients], what the edge server hears while each client
            sends; [blocks, cells] or [blocks, clients], whose blocks repeat; or a function of a
            block's number that returns [cells] or [clients]. At most 1 W. Like noise it has one
            density over the band: an upload in 1/n of the band is disturbed by 1/n of it. With
            [blocks, cells, subcarriers], each value is that of one of K equal parts of the band,
            e.g. a resource block, and rates are sums over these. None for none. In a sub-network,
            values are those of all clients of the larger network.
        placement: where the gains come from; None if they are given.
        cycles_per_step: V_0, CPU cycles per mini-batch step of the full model, > 0.
        switched_capacitance: kappa [clients] in kappa f^2 joules per cycle, >= 0; None for 1e-28.
        part: [clients], indices of the clients in a larger network, increasing within each cell;
            None means that this is the whole network. In a sub-network (see :meth:`of` and
            :meth:`served`) cells may be empty, and ``bandwidth_hz`` covers all cells of the larger
            network.
        devices: :class:`Devices`, one :class:`Device` for all clients, or a list of one per client,
            whose measured seconds and joules replace clocks; None for ``cpu_hz``.
    """

    @cached_property
    def _root(self) -> ComplexArray:
        return correlation_root(self.antennas, self.antenna_correlation)

    @cached_property
    def _amplitude(self) -> NDArray[np.float32]:
        return (10 ** (self.path_gain_db / 20))[:, None].astype(np.float32)

    @checked()
    def draw(self, stream: Stream, index: int = 0, clients: ArrayLike | None = None) -> ChannelDraw:
        """The channels of one block.

        Args:
            stream: randomness of the channels, e.g. ``run.child("channel")``.
            index: the block, e.g. the global round; equal indices give equal channels.
            clients: clients to draw, see :meth:`of`; None means all.

        Returns:
            A draw with h [clients, antennas].
        """
        if clients is not None:
            return self.of(clients).draw(stream, index)
        (h,), changes_db, spectra = self._channels(stream, [index])
        changes_db = None if changes_db is None else changes_db[0]
        noise_rise, external_rise = self.rises(stream, index)
        external_rise, spectrum = self._disturbed(
            index, external_rise, None if spectra is None else spectra[0]
        )
        return ChannelDraw(self, h, noise_rise, external_rise, changes_db, spectrum)

    def _channels(
        self, stream: Stream, blocks: list[int]
    ) -> tuple[list[ComplexArray], FloatArray | None, list[FloatArray] | None]:
        """Channels [clients, antennas], changes of mean gains since block 0, and spectra."""
        fading, changes_db = self.fading, None
        drawn = [self._faded(stream, index) for index in blocks]
        h = [channels * self._amplitude for channels, _ in drawn]
        if isinstance(fading, Moving):
            changes_db = fading.changes_db(blocks, self.numbers, self.cell_of)
            h = [a * b for a, b in zip(h, amplitudes(changes_db), strict=True)]
        spectra = [spectrum for _, spectrum in drawn if spectrum is not None]
        return h, changes_db, spectra or None

    def _faded(self, stream: Stream, index: int) -> tuple[ComplexArray, FloatArray | None]:
        """Small-scale channels [clients, antennas] of a block, and their spectrum."""
        fading, selective = self._small_scale, self._selective
        if selective is None:
            return fading.draw(stream, index, self.numbers, self._root), None
        bandwidth_hz = self.bandwidth_hz[self.cell_of]
        return selective.draw_band(stream, index, self.numbers, self._root, bandwidth_hz)

    @property
    def _small_scale(self) -> Fading:
        return self.fading.fading if isinstance(self.fading, Moving) else self.fading

    @cached_property
    def _selective(self) -> SelectiveFading | None:
        """The fading, if channels differ over the band."""
        fading = self._small_scale
        selective = isinstance(fading, SelectiveFading) and fading.subcarriers > 1
        return fading if selective else None  # type: ignore[return-value]

    @property
    def subcarriers(self) -> int:
        """Number of subcarriers of a band; 1 if channels and interference are flat over it."""
        if self._watts_by_part is not None:
            return int(self._watts_by_part.shape[2])
        return 1 if self._selective is None else self._selective.subcarriers

    @property
    def _watts_by_part(self) -> FloatArray | None:
        """Interference [blocks, cells, subcarriers] in watts, if it differs over the band."""
        watts = self.interference_watts
        return watts if isinstance(watts, np.ndarray) and watts.ndim == 3 else None

    def _disturbed(
        self, blocks: int | list[int], external_rise: FloatArray | None, spectrum: FloatArray | None
    ) -> tuple[FloatArray | None, FloatArray | None]:
        """The same with interference by subcarrier: the SINR of each is that of the draw.

        With the rise r_k and the gain s_k of subcarrier k, the rise of the band is
        R = 1 / mean_k(s_k / r_k), and the spectrum R s_k / r_k, of mean 1.
        """
        watts = self._watts_by_part
        if watts is None:
            return external_rise, spectrum
        heard = watts[np.asarray(blocks) % len(watts)][..., self.cell_of, :]
        noise = dbm_to_watts(self.noise_dbm)[self.cell_of, None] / watts.shape[2]
        ratio = (1.0 if spectrum is None else spectrum) / (1 + heard / noise)
        mean = ratio.mean(-1)
        return np.maximum(1 / mean, 1.0), ratio / mean[..., None]

    def check_flat(self, what: str) -> None:
        """Raise unless channels are flat over the band.

        Args:
            what: what needs flat channels, as the subject of the message.

        Raises:
            ValueError: they differ over subcarriers.
        """
        if self.subcarriers > 1:
            raise ValueError(not_flat(what, self.subcarriers))

    def positions_m(self, blocks: Iterable[int], clients: ArrayLike | None = None) -> FloatArray:
        """Positions of the clients in some blocks, [blocks, clients, 2 or 3], in metres.

        Args:
            blocks: indices of the blocks.
            clients: clients, see :meth:`of`; None means all.

        Raises:
            ValueError: the gains do not follow from positions.
        """
        numbers = self.numbers if clients is None else self.of(clients).numbers
        if isinstance(self.fading, Moving):
            return self.fading.positions_m([*blocks], numbers)
        if self.placement is None:
            raise ValueError("placement is None: the gains do not follow from positions.")
        return np.repeat(self.placement.clients_m[numbers][None], len([*blocks]), axis=0)

    @property
    def hands_over(self) -> bool:
        """Whether clients that move are served by other cells, see :meth:`served`."""
        return isinstance(self.fading, Moving) and self.fading.handover

    @checked()
    def served(self, block: int, clients: ArrayLike | None = None) -> Network:
        """The sub-network of some clients in a block, each in the cell that serves it.

        With handover that is the cell of the base station with the largest mean gain at the
        client's position in this block; otherwise the client's own. Clients are sorted by this
        cell, then by number. Cells may be empty.

        >>> import channels
        >>> network = channels.placed_network(
        ...     channels.Hexagonal(), channels.Umi(), cells=2, clients=4, stream=channels.Stream(1),
        ...     cpu_hz=1e9, mobility=channels.RandomWaypoint(50.0), block_seconds=60.0,
        ...     handover="strongest",
        ... )
        >>> served = network.served(block=4)
        >>> served.numbers.tolist(), served.cell_of.tolist()
        ([0, 1, 2, 3], [0, 0, 0, 1])

        Args:
            block: index of the block.
            clients: clients, see :meth:`of`; None means all.

        Raises:
            ValueError: the gains do not follow from positions.
        """
        network, fading = self if clients is None else self.of(clients), self.fading
        if not (isinstance(fading, Moving) and fading.handover):
            return network
        if self.placement is None:
            raise ValueError(
                "placement is None, and clients are handed over: the gains must follow from "
                "positions."
            )
        numbers, home = network.numbers, network.cell_of
        cells = fading.strongest(block, numbers)
        away = np.flatnonzero(cells != home)
        if not len(away):
            return network
        loss_db, shadowing_db = fading.links.losses_db(numbers[away], cells[away])
        gain_db = self.placement.antenna_gain_db - loss_db - shadowing_db
        values = network._of_rows(np.arange(len(numbers)))
        values["_snr_db"][away] = gain_db + DEFAULT_DBM - self._noise_dbm[cells[away]]
        values["cell_of"] = cells
        order = np.lexsort((numbers, cells))
        devices = values.pop("devices")
        values = {name: value[order] for name, value in values.items()}
        return replace(network, part=numbers[order], devices=some(devices, order), **values)

    def rises(self, stream: Stream, index: int) -> tuple[FloatArray | None, FloatArray | None]:
        """``noise_rise`` [cells] and ``external_rise`` [clients] of the draw of a block.

        Args:
            stream: randomness of the channels.
            index: the block.
        """
        external_rise = self.external_rise(index)
        if self.interference is None:
            return None, external_rise
        stream = stream.child("interference")
        if isinstance(self.interference, ActiveInterference):
            watts = self.interference.watts_of(self.numbers, self._cross_fading(stream, index))
        else:
            watts = self.interference.watts(stream, index)
        return np.asarray(1 + watts / dbm_to_watts(self.noise_dbm)), external_rise

    def external_rise(self, index: int | None = None) -> FloatArray | None:
        """Power of noise and ``interference_watts`` over that of noise, [clients].

        Args:
            index: the block; None for the mean over the blocks, or for block 0 of a function.

        Returns:
            Ratios >= 1; None without these watts.
        """
        watts = self.interference_watts
        if watts is None:
            return None
        if self._watts_by_part is not None:  # at mean gains
            blocks = [*range(len(self._watts_by_part))] if index is None else [index]
            rise, _ = self._disturbed(blocks, None, None)
            return None if rise is None else rise.mean(0)
        if index is None and not callable(watts):
            values = watts.mean(0)
        else:
            values = watts_in(watts, index or 0, self.cells, self.clients, self.part)
        # With as many clients as cells, values are those of cells: at home each client is alone.
        rows = self.cell_of if len(values) == self.cells else self.numbers
        return np.asarray(1 + values[rows] / dbm_to_watts(self.noise_dbm)[self.cell_of])

    @property
    def watts_by_client(self) -> bool:
        """Whether ``interference_watts`` differ between the clients of a cell."""
        watts = self.interference_watts
        if watts is None:
            return False
        shape = np.shape(watts(0) if callable(watts) else watts[0])
        return len(shape) == 1 and shape != (self.cells,)

    def _cross_fading(self, stream: Stream, index: int) -> FloatArray:
        """Power gains per antenna, of mean 1, of clients to the receivers of all cells."""
        rows = [
            _powers(self._faded(stream.child("cell", cell), index)[0]) / self.antennas
            for cell in range(self.cells)
        ]
        return np.stack(rows, axis=1)

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
        """||h||^2 [rows] of small-scale channels of single uploads."""
        self.check_flat("an upload that shares the band with others at any time")
        return _powers(self.fading.draw(stream, index, rows, self._root))

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
        """
        if not isinstance(indices, Iterable):
            raise TypeError(f"indices is {shown(indices)}: give several blocks, e.g. range(10).")
        if clients is not None:
            return self.of(clients).draws(stream, indices)
        blocks = [*indices]
        if not blocks:
            return ChannelDraw(self, np.empty((0, self.clients, self.antennas), np.complex64))
        h, changes_db, spectra = self._channels(stream, blocks)
        by_block = zip(*(self.rises(stream, index) for index in blocks), strict=True)
        rises = [[rise for rise in some if rise is not None] for some in by_block]
        noise_rise, external_rise = (np.stack(some) if some else None for some in rises)
        spectrum = None if spectra is None else np.stack(spectra)
        external_rise, spectrum = self._disturbed(blocks, external_rise, spectrum)
        return ChannelDraw(self, np.stack(h), noise_rise, external_rise, changes_db, spectrum)


def _powers(h: ComplexArray) -> FloatArray:
    """||h||^2 [...] of channels [..., antennas]."""
    wide = h.astype(np.complex128)
    return np.asarray((wide.real**2 + wide.imag**2).sum(axis=-1))


@dataclass(frozen=True, eq=False, repr=False)
class ChannelDraw(DrawnChannels):
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
        noise_rise: [..., cells], power of noise and interference by clients of other cells over
            that of noise in the whole band, >= 1, while one client of each other cell sends; None
            without interference.
        external_rise: [..., clients], power of noise and ``interference_watts`` over that of noise
            while each client sends, >= 1; None without them.
        changes_db: [..., clients], change of the mean gain since block 0, in dB; None if clients
            stand still.
        spectrum: [..., clients, subcarriers], gain of each of K subcarriers of equal width over
            ||h||^2, which is their mean; None if channels are flat over the band.
    """

    network: Network
