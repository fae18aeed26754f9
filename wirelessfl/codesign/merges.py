"""When asynchronous cells are merged, and what the merges cost: simulated without training.

The n-th round of a cell takes the same seconds whenever it starts, because its channels depend on n
only. The rounds of all cells are therefore priced first, for all numbers of local steps and edge
rounds at once; then the events of the schedule are simulated with these seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from channels.arrays import BoolArray, FloatArray, IntArray
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.rounds.planner import Planner
from wirelessfl.server.present import ConsecutiveClients
from wirelessfl.uplinks import Uplink

REPLICATES = 8
"""Simulated runs whose mean is taken; in each, cells start at other rounds of the sample."""
MOST = 200
"""Merges that are simulated; further ones take as long as those of the second half."""


class CellCosts(NamedTuple):
    """Costs of rounds of single cells.

    Args:
        seconds: [cells, draws, H, E], duration.
        joules: [cells, draws, H, E], mean over all clients of the network.
    """

    seconds: FloatArray
    joules: FloatArray


@dataclass(frozen=True, eq=False)
class CellRounds:
    """A sample of the rounds of each cell.

    Args:
        planner: plans the rounds; its stream draws the sample.
        draws: number of rounds of each cell.
    """

    planner: Planner
    draws: int

    @cached_property
    def cells(self) -> list[SampledRounds]:
        """The sample of each cell."""
        network = self.planner.network
        numbers = zip(network.cell_starts.tolist(), network.cell_sizes.tolist(), strict=True)
        return [
            SampledRounds(self.planner, self.draws, present=ConsecutiveClients(first, size))
            for first, size in numbers
        ]

    def of(
        self, uplink: Uplink, local_steps: Sequence[int], edge_rounds: Sequence[int]
    ) -> CellCosts:
        """Costs of the rounds.

        Args:
            uplink: the uplink.
            local_steps: H, numbers of local steps.
            edge_rounds: E, numbers of edge rounds.

        Raises:
            ConfigError: the access cannot serve a load.
        """
        found = [costs.of(uplink, local_steps, edge_rounds) for costs in self.cells]
        return CellCosts(np.stack([c.seconds for c in found]), np.stack([c.joules for c in found]))

    def merges(self, costs: CellCosts, buffer: int, count: int) -> Merges:
        """The first merges of runs with these rounds, mean over the replicates.

        Args:
            costs: costs of the rounds.
            buffer: B, cells per merge.
            count: number of merges; at most ``MOST`` are simulated.
        """
        shape = REPLICATES, self.planner.network.cells
        generator = self.planner.stream.child("merges").generator()
        shifts = generator.integers(self.draws, size=shape)
        seconds, joules = merged(costs, buffer, min(count, MOST), shifts)
        return Merges(seconds.mean(0), joules.mean(0))


def merged(
    costs: CellCosts, buffer: int, count: int, shifts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Simulate the merges of asynchronous cells, as ``AsynchronousCells`` carries them out.

    The cloud waits until ``buffer`` cells have finished, merges them, and gives these cells their
    next round. Of cells that finish at the same time, those with the earlier start are first, and
    then those with the lower number.

    Args:
        costs: costs of the cells' rounds.
        buffer: B, cells per merge.
        count: number of merges.
        shifts: [replicates, cells], round of the sample with which a cell starts; after the last
            one comes the first.

    Returns:
        Simulated seconds and joules up to each merge, [replicates, count + 1, H, E].
    """
    cells, draws, *shape = costs.seconds.shape
    durations, spent = (each.reshape(cells, draws, -1) for each in costs)
    cell, point = np.arange(cells), np.arange(durations.shape[-1])[:, None]
    done = np.zeros((len(shifts), len(point), cells), dtype=np.int64)

    def of(values: FloatArray) -> FloatArray:
        """Values of the current round of each cell, [replicates, points, cells]."""
        return np.asarray(values[cell, (done + shifts[:, None]) % draws, point])

    finish, start = of(durations), np.zeros(done.shape)
    now, joules = np.zeros(done.shape[:2]), np.zeros(done.shape[:2])
    times, sums = [now], [joules]
    for _ in range(count):
        order = np.lexsort((np.broadcast_to(cell, done.shape), start, finish))
        chosen: BoolArray = np.zeros(done.shape, dtype=np.bool_)
        np.put_along_axis(chosen, order[..., :buffer], True, -1)
        now = np.where(chosen, finish, -np.inf).max(-1)
        joules = joules + np.where(chosen, of(spent), 0.0).sum(-1)
        done += chosen
        start = np.where(chosen, now[..., None], start)
        finish = np.where(chosen, start + of(durations), finish)
        times.append(now)
        sums.append(joules)
    found = (np.stack(each, 1).reshape(len(shifts), -1, *shape) for each in (times, sums))
    seconds, energy = found
    return seconds, energy


@dataclass(frozen=True, eq=False)
class Merges:
    """Costs of a run with asynchronous cells up to each merge.

    Args:
        seconds: [merges + 1, H, E], simulated seconds; 0 before the first merge.
        joules: [merges + 1, H, E], mean over the clients.
    """

    seconds: FloatArray
    joules: FloatArray

    def totals(self, rounds: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Seconds and joules up to a number of merges, [H, E]; inf if it is infinite.

        Args:
            rounds: [H, E], merges, not necessarily whole.
        """
        return self._at(self.seconds, rounds), self._at(self.joules, rounds)

    def within(self, seconds: float | None, joules: float | None) -> FloatArray:
        """Number of merges [H, E] within limits, not necessarily whole.

        Args:
            seconds: limit on simulated seconds; None for none.
            joules: limit on joules, mean over the clients; None for none.
        """
        found = np.full(self.seconds.shape[1:], np.inf)
        for values, limit in ((self.seconds, seconds), (self.joules, joules)):
            if limit is not None:
                found = np.minimum(found, self._until(values, limit))
        return found

    @staticmethod
    def _at(values: FloatArray, rounds: FloatArray) -> FloatArray:
        last = len(values) - 1
        rounds = np.broadcast_to(rounds, values.shape[1:])
        whole = np.clip(np.floor(np.where(np.isfinite(rounds), rounds, 0)), 0, last - 1)
        low = whole.astype(np.int64)[None]
        before = np.take_along_axis(values, low, 0)[0]
        after = np.take_along_axis(values, low + 1, 0)[0]
        found = before + (rounds - whole) * (after - before)
        return np.asarray(
            np.where(rounds > last, values[-1] + (rounds - last) * _rate(values), found)
        )

    @staticmethod
    def _until(values: FloatArray, limit: float) -> FloatArray:
        last = len(values) - 1
        count = (values <= limit).sum(0) - 1
        low = np.minimum(count, last - 1)[None]
        before = np.take_along_axis(values, low, 0)[0]
        after = np.take_along_axis(values, low + 1, 0)[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = low[0] + (limit - before) / (after - before)
            beyond = last + (limit - values[-1]) / _rate(values)
        return np.asarray(np.where(count >= last, beyond, found))


def _rate(values: FloatArray) -> FloatArray:
    """What a merge adds, mean over the second half."""
    last = len(values) - 1
    half = last // 2
    return np.asarray((values[-1] - values[half]) / (last - half))
