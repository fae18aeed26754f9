"""Bands, powers and clocks that meet a deadline with the least energy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arguments import check_number
from channels.arrays import FloatArray
from channels.loads import Load, Service
from channels.network import ChannelDraw
from channels.validation import shown
from solvers.access.deadlines import Late, check_late
from solvers.access.decided_bands import DecidedBands
from solvers.access.energy_cells import EnergyCells


@dataclass(frozen=True)
class EnergyWithinDeadline(DecidedBands):
    """The least energy with which every cell ends its local phase by a deadline.

    Clients choose clocks up to ``cpu_hz`` and powers up to ``transmit_power_w`` of the network, and
    share the band of their cell; see :func:`solvers.allocate_energy`. Cells and blocks are solved
    together. A client with bits and a channel of zero trains but sends nothing: its update never
    arrives. In a cell whose clients start at different times, all are treated as if they started at
    the latest of these.

    >>> import channels
    >>> import solvers
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> load = channels.Load(1e6, 1000.0)
    >>> soon, late = (solvers.EnergyWithinDeadline(limit).serve(load, draw) for limit in (0.1, 0.2))
    >>> bool((late.joules < soon.joules).all()), bool((late.seconds <= 0.2).all())
    (True, True)

    Args:
        deadline_seconds: T, when all updates must have arrived, in seconds from the start of the
            local phase; finite and > 0. None for the deadline of the load; the earlier one counts.
        late: what happens if the clients of a cell cannot all meet the deadline: "error", or
            "lost": the largest number of them that can take part, and the others neither train nor
            send.
    """

    deadline_seconds: float | None = None
    late: Late = "error"

    def __post_init__(self) -> None:
        if self.deadline_seconds is not None:
            check_number("deadline_seconds", self.deadline_seconds, "seconds")
        if self.deadline_seconds is not None and not 0 < self.deadline_seconds < np.inf:
            raise ValueError(
                f"deadline_seconds is {shown(self.deadline_seconds)}: give a finite number of "
                "seconds above 0."
            )
        check_late(self.late)

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`channels.Access`.

        Raises:
            DeadlineMissedError: with ``late="error"``, a cell cannot meet the deadline even at full
                power and speed; the message names the worst one, its slowest client and the
                shortfall.
            ValueError: there is no deadline, or an argument is outside the range of the solver.
        """
        cells = self.check(load, draw)
        return cells.ending(cells.deadline - cells.lost)

    def seconds(self, load: Load, draw: ChannelDraw) -> FloatArray:
        """See :class:`channels.Access`; inf in cells that cannot meet the deadline."""
        cells = self._cells(load, draw)
        if self.late == "lost":
            return cells.in_time("lost").ending(cells.deadline - cells.lost).seconds
        late = cells.late()
        seconds = cells.without(late).ending(cells.deadline - cells.lost).seconds
        missed = np.zeros(len(cells.lost), dtype=np.bool_)
        missed[late] = True
        network = draw.network
        missed = missed.reshape(*seconds.shape[:-1], network.cells)[..., network.cell_of]
        return np.where(missed, np.inf, seconds)

    def check(self, load: Load, draw: ChannelDraw) -> EnergyCells:
        """The cells with the clients that can meet the deadline.

        Raises:
            DeadlineMissedError, ValueError: as :meth:`serve`.
        """
        return self._cells(load, draw).in_time(self.late)

    def _cells(self, load: Load, draw: ChannelDraw) -> EnergyCells:
        deadline = np.inf if self.deadline_seconds is None else self.deadline_seconds
        cells = EnergyCells.of(load, draw, deadline)
        if not np.isfinite(cells.deadline[cells.works()]).all():
            raise ValueError(
                "deadline_seconds is missing: give it to the load, or to EnergyWithinDeadline."
            )
        return cells


@dataclass(frozen=True)
class DeadlineCheck(EnergyWithinDeadline):
    """Raises where :class:`EnergyWithinDeadline` does, but leaves powers and clocks undecided.

    Every cell ends at its deadline, and spends no energy.

    >>> import channels
    >>> import solvers
    >>> network = channels.section_vi_c(cells=2, clients=4, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> solvers.DeadlineCheck(1.0).serve(channels.Load(1e6, 1000.0), draw).seconds.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """

    def serve(self, load: Load, draw: ChannelDraw) -> Service:
        """See :class:`EnergyWithinDeadline`."""
        return self.check(load, draw).undecided()
