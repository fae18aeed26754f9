"""Predefined networks: settings of published experiments, and 3GPP scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from channels.arguments import checked
from channels.cells import even_cells
from channels.decibels import dbm_to_watts
from channels.fading import Rayleigh
from channels.layouts import Hexagonal, Layout
from channels.network import Network
from channels.networks import Networks
from channels.path_loss import PathLoss, Uma, Umi
from channels.placed import placed_network, streams_in
from channels.streams import Generators, Stream, StreamOrStreams, Streams
from channels.validation import number_of


@overload
def section_vi_c(cells: int = 4, clients: int = 60, *, stream: Stream) -> Network: ...
@overload
def section_vi_c(cells: int = 4, clients: int = 60, *, stream: Sequence[Stream]) -> Networks: ...
@checked()
def section_vi_c(
    cells: int = 4, clients: int = 60, *, stream: StreamOrStreams
) -> Network | Networks:
    """The heterogeneous network of the HIST paper (Fang, Han, Brinton), Section VI-C.

    Cells j = 1..floor(N/2) are slow, with F_i ~ U(1, 2) GHz and an SNR of 30 dB; the others are
    fast, with F_i ~ U(2, 4) GHz and 40 dB. If N is odd, there is one more fast cell than slow
    cells; a single cell is fast. B = 9 MHz, M = 10, V_0 = 1e6, Rayleigh fading. The SNRs hold at
    0.1 W. Use ``dataclasses.replace`` to change a setting: another power or band shifts the SNRs,
    and :meth:`Network.with_snr` sets them.

    >>> import channels
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> network.cell_of.tolist(), network.mean_snr_db.shape
    ([0, 0, 1, 1], (4,))

    Args:
        cells: N, at least 1.
        clients: total number of clients, split evenly over the cells.
        stream: randomness of the CPU speeds, drawn once; equal streams give equal networks. A list
            of streams gives :class:`Networks`, one from each.

    Raises:
        ValueError: some cell would be empty.
        TypeError: ``cells`` or ``clients`` is not an integer.
    """
    cell_of = even_cells(clients, cells)
    fast = cell_of >= cells // 2
    generators, several = Generators(), not isinstance(stream, Stream)
    drawn = [
        generators.at(one.child("cpu").philox_key(), 0).uniform(1.0, 2.0, clients)
        for one in streams_in(stream)
    ]
    cpu_hz = np.array(drawn) if several else drawn[0]
    cpu_hz *= 1e9
    np.multiply(cpu_hz, 2.0, out=cpu_hz, where=fast)
    build: Any = Networks.from_snr if several else Network.from_snr
    built: Network | Networks = build(
        cell_of,
        cpu_hz=cpu_hz,
        snr_db=np.where(fast, 40.0, 30.0),
        bandwidth_hz=9e6,
        antennas=10,
        fading=Rayleigh(),
        cycles_per_step=1e6,
    )
    return built


@overload
def umi(
    cells: int = 4, clients: int = 60, *, stream: Stream, reuse_factor: int | None = None
) -> Network: ...
@overload
def umi(
    cells: int = 4, clients: int = 60, *, stream: Sequence[Stream], reuse_factor: int | None = None
) -> Networks: ...
@checked()
def umi(
    cells: int = 4,
    clients: int = 60,
    *,
    stream: StreamOrStreams,
    reuse_factor: int | None = None,
) -> Network | Networks:
    """Street-canyon micro cells in the style of 3GPP evaluations (TR 38.901 V16.1.0, UMi).

    Hexagonal cells 200 m apart; clients are uniform in their cell, outdoors, at least 10 m from
    their base station. Path loss, line of sight and shadowing: :class:`Umi` at 3.5 GHz, base
    stations at 10 m and clients at 1.5 m. 23 dBm (0.2 W), N0 = -174 dBm/Hz, noise figure 5 dB,
    B = 20 MHz per cell, M = 8 omnidirectional antennas of 0 dBi, Rayleigh fading on all links,
    F_i ~ U(1, 4) GHz, V_0 = 1e6, kappa = 1e-28. Use ``dataclasses.replace`` to change a setting.

    >>> import channels
    >>> network = channels.umi(cells=3, clients=6, stream=channels.Stream(1))
    >>> network.cells, network.clients
    (3, 6)

    Args:
        cells: N, at least 1.
        clients: total number of clients, split evenly over the cells.
        stream: randomness of positions, lines of sight, shadowing and CPU speeds, drawn once. A
            list of streams gives :class:`Networks`, one from each, without ``reuse_factor``.
        reuse_factor: number of bands that the cells reuse, see :func:`placed_network`; None for no
            interference. Only with one stream.

    Raises:
        ValueError: some cell would be empty, or the reuse factor has no pattern.
        TypeError: an argument is not an integer.
    """
    return _placed(Hexagonal(200.0), Umi(3.5), cells, clients, stream, reuse_factor, antennas=8)


@overload
def uma(
    cells: int = 4, clients: int = 60, *, stream: Stream, reuse_factor: int | None = None
) -> Network: ...
@overload
def uma(
    cells: int = 4, clients: int = 60, *, stream: Sequence[Stream], reuse_factor: int | None = None
) -> Networks: ...
@checked()
def uma(
    cells: int = 4,
    clients: int = 60,
    *,
    stream: StreamOrStreams,
    reuse_factor: int | None = None,
) -> Network | Networks:
    """Urban macro cells in the style of 3GPP evaluations (TR 38.901 V16.1.0, UMa).

    Hexagonal cells 500 m apart; clients are uniform in their cell, outdoors, at least 10 m from
    their base station. Path loss, line of sight and shadowing: :class:`Uma` at 3.5 GHz, base
    stations at 25 m and clients at 1.5 m. M = 16 antennas. All else as in :func:`umi`: 23 dBm
    (0.2 W), N0 = -174 dBm/Hz, noise figure 5 dB, B = 20 MHz per cell, omnidirectional antennas of
    0 dBi, Rayleigh fading on all links, F_i ~ U(1, 4) GHz, V_0 = 1e6, kappa = 1e-28.

    Arguments and errors are those of :func:`umi`.

    >>> import channels
    >>> network = channels.uma(cells=3, clients=6, stream=channels.Stream(1), reuse_factor=1)
    >>> network.interference is not None
    True
    """
    return _placed(Hexagonal(500.0), Uma(3.5), cells, clients, stream, reuse_factor, antennas=16)


def _placed(
    layout: Layout,
    path_loss: PathLoss,
    cells: int,
    clients: int,
    stream: StreamOrStreams,
    reuse_factor: int | None,
    *,
    antennas: int,
) -> Network | Networks:
    """A network with what UMi and UMa have in common."""
    clients = number_of("clients", clients)
    several, streams = not isinstance(stream, Stream), streams_in(stream)
    rows = np.arange(len(streams) * clients)
    cpu_hz = 1e9 + 3e9 * Streams(streams, clients).child("cpu").uniforms(0, rows, 1)[:, 0]
    return placed_network(
        layout,
        path_loss,
        cells=cells,
        clients=clients,
        stream=stream,
        cpu_hz=cpu_hz.reshape(-1, clients) if several else cpu_hz,
        reuse_factor=reuse_factor,
        transmit_power_w=dbm_to_watts(23.0),
        bandwidth_hz=20e6,
        noise_figure_db=5.0,
        antennas=antennas,
        fading=Rayleigh(),
        cycles_per_step=1e6,
        switched_capacitance=1e-28,
    )
