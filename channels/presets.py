"""Predefined networks with the settings of published experiments."""

from __future__ import annotations

import numpy as np

from channels.arguments import checked
from channels.arrays import IntArray
from channels.fading import Rayleigh
from channels.network import Network
from channels.streams import Stream
from channels.validation import whole_number


@checked()
def even_cells(clients: int, cells: int) -> IntArray:
    """Split clients evenly over cells; sizes differ by at most one, and larger cells come first.

    Args:
        clients: total number of clients, >= ``cells``.
        cells: number of cells, >= 1.

    Returns:
        cell_of [clients], sorted.

    Raises:
        ValueError: some cell would be empty.
        TypeError: an argument is not an integer.
    """
    clients, cells = whole_number("clients", clients), whole_number("cells", cells)
    if cells < 1 or clients < cells:
        raise ValueError(
            f"clients is {clients} and cells is {cells}: give at least one cell, and at least one "
            "client per cell."
        )
    sizes = [len(part) for part in np.array_split(np.empty(clients, dtype=np.bool_), cells)]
    return np.repeat(np.arange(cells), sizes)


@checked()
def section_vi_c(cells: int = 4, clients: int = 60, *, stream: Stream) -> Network:
    """The heterogeneous network of the HIST paper (Fang, Han, Brinton), Section VI-C.

    Cells j = 1..floor(N/2) are slow, with F_i ~ U(1, 2) GHz and an SNR of 30 dB; the others are
    fast, with F_i ~ U(2, 4) GHz and 40 dB. If N is odd, there is one more fast cell than slow
    cells; a single cell is fast. B = 9 MHz, M = 10, V_0 = 1e6, Rayleigh fading. The SNRs hold at
    0.1 W. Use ``dataclasses.replace`` to change a setting: another power or band shifts the SNRs,
    and :meth:`Network.with_snr` sets them.

    Args:
        cells: N, at least 1.
        clients: total number of clients, split evenly over the cells.
        stream: randomness of the CPU speeds, drawn once; equal streams give equal networks.

    Raises:
        ValueError: some cell would be empty.
        TypeError: ``cells`` or ``clients`` is not an integer.
    """
    cell_of = even_cells(clients, cells)
    fast = cell_of >= cells // 2
    cpu_hz = stream.child("cpu").generator().uniform(1.0, 2.0, clients)
    cpu_hz *= 1e9
    np.multiply(cpu_hz, 2.0, out=cpu_hz, where=fast)
    return Network.from_snr(
        cell_of,
        cpu_hz=cpu_hz,
        snr_db=np.where(fast, 40.0, 30.0),
        bandwidth_hz=9e6,
        antennas=10,
        fading=Rayleigh(),
        cycles_per_step=1e6,
    )
