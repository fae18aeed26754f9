"""Frequency division with the bands that end the slowest upload of each cell soonest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.loads import Decision, Load, Service
from channels.network import ChannelDraw
from solvers.access.decided_bands import DecidedBands
from solvers.bands import allocate_bandwidth
from solvers.bands.least_band import upload_seconds
from solvers.load_rows import by_client, cell_rows, heard_bits


@dataclass(frozen=True)
class OptimalBands(DecidedBands):
    """Bands that minimise when the last client of a cell ends, at full power.

    Each client sends when it is ready, within its own band; see :func:`solvers.allocate_bandwidth`.
    Cells and blocks are solved together. A client without bits gets no band. A client with bits and
    a channel of zero gets none either: its update never arrives, it spends no transmit energy, and
    the other clients share the whole band.

    >>> import channels
    >>> import solvers
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(cycles=1e6, elements=1000.0)
    >>> best = solvers.OptimalBands().serve(load, draw).seconds.max()
    >>> bool(best <= channels.EqualBands().serve(load, draw).seconds.max())
    True
    """

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`; a client transmits during its whole upload.

        Raises:
            ValueError: an argument is outside the range of the solver, or rounding errors leave
                no solution.
        """
        draw = draw.in_bands()
        network, snr_hz = draw.network, draw.snr_hz
        bits, stuck = heard_bits(load, draw)
        ready = load.ready_seconds(network)
        # A client that sends nothing must not delay the end for which the bands are chosen.
        waits = np.where(bits > 0, ready, 0.0)
        solution = allocate_bandwidth(
            cell_rows(network, bits),
            cell_rows(network, waits),
            cell_rows(network, snr_hz),
            network.bandwidth_hz,
        )
        if solution.value is None or not np.isfinite(solution.objective).all():
            raise ValueError(f"bands of the load: {solution.message}.")
        # No division by the bands of clients that send nothing.
        bands = np.where(bits > 0, by_client(network, solution.value), 0.0)
        upload = upload_seconds(bits, bands, snr_hz)
        joules = load.compute_joules(network) + network.sending_watts() * upload
        seconds = np.where(stuck, np.inf, ready + upload)
        decision = Decision(bands_hz=bands)
        return Service(seconds, joules, ~stuck, decision, airtime_seconds=upload)
