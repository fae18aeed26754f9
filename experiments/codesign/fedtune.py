"""FedTune: participants M and local training E, adjusted online from four overheads.

Zhang et al., arXiv:2110.03061 and arXiv:2211.13656. The order of the steps, the slopes and the
penalties follow the authors' public code (DataSysTech/FedTune, fedtuner.py), in which each overhead
is divided by the gain in accuracy that it bought; equation numbers of the papers were not at hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import has_diverged
from wirelessfl.base.wording import shown
from wirelessfl.designs.observed import SCORE
from wirelessfl.engine.rounds.redesign import Redesign, RoundSettings, SoFar

MORE_CLIENTS = np.array([True, True, False, False])
"""Whether more participants lower each overhead: CompT, TransT, CompL, TransL."""
MORE_TRAINING = np.array([False, True, False, True])
"""Whether more local training lowers each overhead."""


class Window(NamedTuple):
    """Rounds in which the accuracy has grown by ``least_gain``.

    Args:
        costs: CompT, TransT, CompL and TransL per gained accuracy, [4].
        clients: M.
        local_steps: H.
    """

    costs: FloatArray
    clients: int
    local_steps: int


NONE = Window(np.zeros(4), -1, -1)


@dataclass(frozen=True)
class FedTune(Redesign):
    """One participant more or fewer, and one unit of local training more or fewer.

    The papers' overheads of a round are, up to constants that cancel in all comparisons: E for the
    computation time CompT, 1 for the transmission time TransT, E M for the computation load CompL,
    and M for the transmission load TransL. Their E, passes over the local data, is here H in units
    of ``step``; edge rounds stay as they are.

    When the accuracy has grown by ``least_gain`` since the last decision, M and E each move by one
    unit in the direction in which the weighted overheads fall, with slopes that are the ratio of
    the last two changes of an overhead, estimated where M, or E, moved in its favour. If the
    weighted overheads have grown, the slopes that speak against the last move count ``penalty``
    times more. The first window decides nothing, as there.

    One term of the weighted change differs from the code, whose TransL term subtracts TransT; here
    it is the relative change of TransL, as for the others.

    Args:
        preferences: alpha, beta, gamma and delta: weights of CompT, TransT, CompL and TransL,
            which sum to 1.
        clients: least and largest M.
        local_steps: least and largest H.
        step: local steps of a unit of E, e.g. of one pass over a client's samples.
        every: global rounds between two looks at the accuracy.
        penalty: factor of the slopes after a bad decision.
        least_gain: gain in accuracy from one decision to the next.
        slope: initial slopes. They matter once some slopes have been estimated; the code's value.
        field: accuracy in the rows.

    Raises:
        ConfigError: a value is out of range.
    """

    preferences: tuple[float, float, float, float]
    clients: tuple[int, int]
    local_steps: tuple[int, int]
    step: int = 1
    every: int = 1
    penalty: float = 10.0
    least_gain: float = 0.01
    slope: float = 1e9
    field: str = SCORE

    reads: ClassVar[tuple[str, ...]] = (SCORE,)

    def __post_init__(self) -> None:
        weights = np.asarray(self.preferences, dtype=np.float64)
        if weights.shape != (4,) or not (weights >= 0).all() or not math.isclose(weights.sum(), 1):
            raise ConfigError(
                f"preferences is {shown(self.preferences)}: give four weights >= 0 that sum to 1, "
                "of computation time, transmission time, computation load, transmission load."
            )
        for name in ("clients", "local_steps"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise ConfigError(f"{name} is {shown((low, high))}: give 1 <= least <= largest.")
        if self.step < 1:
            raise ConfigError(f"step is {shown(self.step)}: give an integer >= 1.")

    def decide(self, run: SoFar) -> RoundSettings:
        """The next M and H, by a replay of all windows so far."""
        windows = [*self._windows(run)]
        now = run.settings
        if len(windows) < 2 or windows[-1][0] != run.rounds:
            return now
        eta, zeta = np.full(4, self.slope), np.full(4, self.slope)
        for place in range(1, len(windows)):
            before = windows[place - 2][1] if place > 1 else NONE
            last, current = windows[place - 1][1], windows[place][1]
            self._learn(eta, MORE_CLIENTS, current.clients > last.clients, current, last, before)
            more = current.local_steps > last.local_steps
            self._learn(zeta, MORE_TRAINING, more, current, last, before)
        change = np.abs(current.costs - last.costs) / current.costs
        weighted = np.asarray(self.preferences) * change
        clients = current.clients + self._sign(weighted * eta, MORE_CLIENTS)
        steps = current.local_steps + self.step * self._sign(weighted * zeta, MORE_TRAINING)
        return replace(
            now,
            clients_per_round=int(np.clip(clients, *self.clients)),
            local_steps=int(np.clip(steps, *self.local_steps)),
        )

    def _learn(
        self,
        slopes: FloatArray,
        lowers: Any,
        more: bool,
        current: Window,
        last: Window,
        before: Window,
    ) -> None:
        """Update the slopes of M or of E after a window, in place."""
        favoured = lowers if more else ~lowers
        moved, previous = np.abs(current.costs - last.costs), np.abs(last.costs - before.costs)
        measured = favoured & (previous > 0)
        slopes[measured] = moved[measured] / previous[measured]
        growth = (current.costs - last.costs) / current.costs
        if float(np.asarray(self.preferences) @ growth) > 0:
            slopes[~favoured] *= self.penalty

    @staticmethod
    def _sign(weighted: FloatArray, lowers: Any) -> int:
        return 1 if float(weighted[lowers].sum() - weighted[~lowers].sum()) > 0 else -1

    def _windows(self, run: SoFar) -> Iterable[tuple[int, Window]]:
        """The windows so far, with the round at which each ends."""
        rows = list(run.rows)
        reached, costs, done = 0.0, np.zeros(4), 0
        for row in rows[1:]:
            costs = costs + (row["round"] - done) * _overheads(row)
            done = row["round"]
            gain = 0.0 if has_diverged(row) else row[self.field] - reached
            if done % self.every or gain <= self.least_gain:
                continue
            yield done, Window(costs / gain, row["clients_per_round"], row["local_steps"])
            reached, costs = row[self.field], np.zeros(4)


def _overheads(row: Mapping[str, Any]) -> FloatArray:
    """CompT, TransT, CompL and TransL of a round, up to constants, [4]."""
    steps, clients = float(row["local_steps"]), float(row["clients_per_round"])
    return np.array([steps, 1.0, steps * clients, clients])
