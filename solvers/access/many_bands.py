"""The bands of ``OptimalBands`` for many cells at once, in less time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.loads import Decision, Load, Service
from channels.network import ChannelDraw
from solvers.access.optimal_bands import OptimalBands
from solvers.bands.allocate import soonest
from solvers.bands.least_band import upload_seconds
from solvers.bands.least_time import BandCells
from solvers.bands.newton import newton_bands
from solvers.load_rows import by_client, cell_rows


@dataclass(frozen=True)
class ManyBands(OptimalBands):
    """The same ends as :class:`solvers.OptimalBands`, to rounding errors, and without a bound.

    Each cell is solved by Newton's method, and by the solver of ``OptimalBands`` where that fails.
    A load and a draw have one block: all cells are those of one network.
    """

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`solvers.OptimalBands`."""
        in_bands = draw.in_bands()
        network, snr_hz, bits = in_bands.network, in_bands.snr_hz, load.bits
        if bits.shape != snr_hz.shape or snr_hz.ndim != 1 or not (snr_hz > 0).all():
            return super().serve(load, draw)
        ready = load.ready_seconds(network)
        sends = bits > 0
        waits = np.where(sends, ready, 0.0)
        size, waiting, rho = (cell_rows(network, values) for values in (bits, waits, snr_hz))
        cells = BandCells(size, waiting, rho, network.bandwidth_hz)
        rows, end, solved = newton_bands(cells)
        upload = end[network.cell_of] - ready
        others = np.flatnonzero(~solved & cells.bits.any(-1))
        if others.size:
            some = cells.rows(others)
            rows[others], *_ = soonest(some)
            taken = np.zeros(cells.bits.shape)
            taken[others] = upload_seconds(some.bits, rows[others], some.snr_hz)
            again = np.isin(network.cell_of, others)
            upload = np.where(again, by_client(network, taken), upload)
        bands = np.where(sends, by_client(network, rows), 0.0)
        upload = np.where(sends, upload, 0.0)
        joules = load.compute_joules(network) + network.sending_watts() * upload
        arrived = np.ones(bits.shape, dtype=np.bool_)
        decision = Decision(bands_hz=bands)
        return Service(ready + upload, joules, arrived, decision, airtime_seconds=upload)
