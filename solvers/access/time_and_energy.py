"""Bands, powers, clocks and ends that minimise seconds plus weighted joules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arguments import check_number
from channels.loads import Load, Service
from channels.network import ChannelDraw
from channels.validation import shown
from solvers.access.deadlines import Late, check_late
from solvers.access.decided_bands import DecidedBands
from solvers.access.energy_cells import EnergyCells
from solvers.energy.common_end import common_end


@dataclass(frozen=True)
class LeastTimeAndEnergy(DecidedBands):
    """The least T + W x joules, where T is when the last cell ends with what follows its phase.

    The joules are those of all clients of all cells. Clients choose clocks, powers and bands as in
    :class:`EnergyWithinDeadline`. All cells end together: a cell that could end sooner saves energy
    until the slowest has ended. Each block of the channel is decided alone.

    A deadline of the load is the latest end.

    >>> import channels
    >>> import solvers
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(1e6, 1000.0)
    >>> fast = solvers.LeastTimeAndEnergy(0.0).serve(load, draw)
    >>> frugal = solvers.LeastTimeAndEnergy(100.0).serve(load, draw)
    >>> bool(fast.seconds.max() < frugal.seconds.max())
    True
    >>> bool(frugal.joules.sum() < fast.joules.sum())
    True

    Args:
        energy_weight: W, in seconds per joule, >= 0. With 0, all cells end as soon as the
            slowest can, with the least energy for that.
        late: what happens if the clients of a cell cannot all meet a deadline of the load, see
            :class:`EnergyWithinDeadline`.
    """

    energy_weight: float
    late: Late = "error"

    def __post_init__(self) -> None:
        check_number("energy_weight", self.energy_weight, "seconds per joule")
        if not 0 <= self.energy_weight < np.inf:
            raise ValueError(
                f"energy_weight is {shown(self.energy_weight)}: give a finite number of seconds "
                "per joule, >= 0."
            )
        check_late(self.late)

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`.

        Raises:
            DeadlineMissedError: with ``late="error"``, a cell cannot meet the deadline of the load.
            ValueError: an argument is outside the range of the solver.
        """
        cells = EnergyCells.of(load, draw).in_time(self.late)
        if not cells.lost.size:
            return cells.ending(cells.lost)
        network = draw.network
        filled = network.cell_sizes > 0
        lost = np.where(filled, cells.lost.reshape(cells.shape), -np.inf)
        latest = np.where(filled, cells.deadline.reshape(cells.shape), np.inf).min(-1)
        optimum = common_end(cells.problem, lost, self.energy_weight, latest)
        return cells.service(optimum.plans, optimum.until.reshape(-1))
