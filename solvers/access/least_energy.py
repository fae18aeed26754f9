"""Bands, powers and clocks that meet a deadline with the least energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.access import Access
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.loads import Decision, Load, Service
from channels.network import ChannelDraw, Network
from channels.validation import shown
from solvers.access.cells import by_client, cell_rows, heard_bits
from solvers.access.soonest import soonest_in_bands
from solvers.bands import allocate_bandwidth
from solvers.bands.least_band import upload_seconds
from solvers.energy import allocate_energy
from solvers.solution import Status


@dataclass(frozen=True)
class EnergyWithinDeadline(Access):
    """The least energy with which every cell ends its local phase by a deadline.

    Clients choose clocks up to ``cpu_hz`` and powers up to ``transmit_power_w`` of the network, and
    share the band of their cell; see :func:`solvers.allocate_energy`. Cells and blocks are solved
    together. A client with bits and a channel of zero trains but sends nothing: its update never
    arrives. In a cell whose clients start at different times, all are treated as if they started at
    the latest of these.

    Args:
        deadline_seconds: T, when all updates must have arrived, in seconds from the start of the
            local phase; finite and > 0.

    Raises:
        ValueError: ``deadline_seconds`` is out of range.
    """

    coupled = True

    deadline_seconds: float

    def __post_init__(self) -> None:
        if not 0 < self.deadline_seconds < np.inf:
            raise ValueError(
                f"deadline_seconds is {shown(self.deadline_seconds)}: give a finite number of "
                "seconds above 0."
            )

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`.

        Raises:
            ValueError: a cell cannot meet the deadline even at full power and speed; the message
                names the cell, its slowest client and the shortfall.
        """
        draw = draw.in_bands()
        network = draw.network
        bits, stuck = heard_bits(load, draw)
        latest = self._latest_start(load, network)
        solution = allocate_energy(
            cell_rows(network, bits),
            cell_rows(network, load.cycles),
            cell_rows(network, draw.gain_per_noise),
            network.bandwidth_hz,
            max_power_watts=cell_rows(network, network.transmit_power_w),
            max_cpu_hz=cell_rows(network, network.cpu_hz),
            kappa=cell_rows(network, network.switched_capacitance),
            deadline_seconds=self.deadline_seconds - latest,
        )
        if solution.value is None or not np.isfinite(solution.objective).all():
            late = np.asarray(solution.status) == Status.INFEASIBLE
            raise ValueError(
                self._missed(load, draw, bits, late) if late.any() else f"{solution.message}."
            )
        bands, upload, powers, clocks = (by_client(network, x) for x in solution.value[:4])
        training = np.divide(load.cycles, clocks, out=np.zeros(clocks.shape), where=load.cycles > 0)
        seconds = np.where(stuck, np.inf, load.start_seconds + training + upload)
        joules = network.switched_capacitance * clocks**2 * load.cycles + powers * upload
        decision = Decision(bands_hz=bands, powers_w=powers, cpu_hz=clocks)
        return Service(seconds, joules, ~stuck, decision)

    def soonest(self, load: Load, draw: ChannelDraw, counts: IntArray) -> BoolArray:
        """See :class:`channels.Access`; those that end soonest at full power and speed."""
        load.check_fits(draw)
        return soonest_in_bands(load, draw, load.ready_seconds(draw.network), counts)

    def _latest_start(self, load: Load, network: Network) -> FloatArray:
        """When the last client of each cell starts, [..., cells]."""
        start = load.start_seconds
        start = np.broadcast_to(start, (*start.shape[:-1], network.clients))
        latest = network.over_cells(np.maximum, start)
        if not (latest < self.deadline_seconds).all():
            raise ValueError(
                f"deadline_seconds is {self.deadline_seconds:g}, but a client starts at "
                f"{latest.max():g} s: raise deadline_seconds."
            )
        return latest

    def _missed(self, load: Load, draw: ChannelDraw, bits: FloatArray, late: BoolArray) -> str:
        """Name the first of the cells [..., cells] that miss the deadline, and what it lacks."""
        network = draw.network
        *item, cell = (int(i) for i in np.argwhere(late)[0])
        mine = np.flatnonzero(network.cell_of == cell)
        ready = self._latest_start(load, network)[..., network.cell_of]
        ready = ready + load.cycles / network.cpu_hz
        size, ready, snr_hz = (
            np.broadcast_to(each, (*late.shape[:-1], network.clients))[(*item, mine)]
            for each in (bits, ready, draw.snr_hz)
        )
        band = network.bandwidth_hz[cell]
        end = float(allocate_bandwidth(size, ready, snr_hz, band).objective)
        alone = ready + upload_seconds(size, np.full(len(mine), band), snr_hz)
        slowest = int(alone.argmax())
        where = f" of item {item}" if item else ""
        return (
            f"deadline_seconds is {self.deadline_seconds:g}: cell {cell}{where} needs {end:.6g} s "
            f"even at full power and speed, {end - self.deadline_seconds:.3g} s more; its slowest "
            f"client, {network.numbers[mine[slowest]]}, needs {alone[slowest]:.6g} s in the whole "
            "band. Raise deadline_seconds, or send less."
        )
