"""The learning curve of asynchronous cells: that of all cells, times a factor of cells per merge.

How much stale updates slow training down is not monotone in the number of cells per merge, and can
be steeper than 1/K. Each number therefore has a factor of its own, a power of H E: the more a cell
trains between two merges, the more its update may miss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from wirelessfl.codesign.curves.curve import RoundsCurve
from wirelessfl.codesign.curves.fit import fit_rounds
from wirelessfl.codesign.curves.pilot import Pilot
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown

GRID = 101
"""Accuracies at which merges are known, to find the accuracy after a number of merges."""
SLOPE = 0.2
"""Standard deviation of the exponent of H E, before any pilot."""


class Factor(NamedTuple):
    """Merges of some cells that do as much as one of all cells: exp(log + slope log(H E)).

    Args:
        clients: K, mean number of clients of the cells of a merge.
        log: at H E = 1, for each target, [targets].
        slope: exponent of H E.
        error: standard error of the logarithm.
    """

    clients: float
    log: FloatArray
    slope: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class MergesCurve(RoundsCurve):
    """Merges to a validation accuracy; created by ``merges_curve``.

    ``clients`` are those of the cells of a merge. In draws, the logarithms of factors are normal.

    Args:
        factors: for each number of cells per merge, in increasing order.
    """

    factors: tuple[Factor, ...] = ()

    @property
    def varies(self) -> tuple[str, ...]:
        """Settings on which the curve depends: also the clients of a merge."""
        return (*super().varies, "clients")

    @property
    def coefficients(self) -> dict[str, FloatArray]:
        """Those of the curve of all cells, and the factors at H E = 10."""
        found = {
            f"factor at K = {each.clients:g}": np.exp(each.log + each.slope * np.log(10.0))
            for each in self.factors
        }
        return super().coefficients | found

    def accuracy(
        self,
        rounds: ArrayLike,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """The largest accuracy within so many merges, see ``RoundsCurve.accuracy``."""
        given = np.asarray(rounds, dtype=np.float64)
        grid = np.linspace(self.targets[0], self.targets[-1], GRID)
        where = (local_steps, edge_rounds, clients, largest, noise)
        needed = np.stack(np.broadcast_arrays(*(self.rounds(each, *where) for each in grid)))
        needed = np.maximum.accumulate(needed)
        shape = np.broadcast_shapes(given.shape, needed.shape[1:])
        needed, given = np.broadcast_to(needed, (GRID, *shape)), np.broadcast_to(given, shape)
        reached = (needed <= given).sum(0)
        low = np.clip(reached - 1, 0, GRID - 2)
        before, after = (np.take_along_axis(needed, (low + i)[None], 0)[0] for i in (0, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.clip((given - before) / (after - before), 0.0, 1.0)
        found = grid[low] + np.nan_to_num(part, nan=0.0) * (grid[1] - grid[0])
        return np.asarray(np.where(reached == 0, 0.0, np.where(reached == GRID, grid[-1], found)))

    def _scale(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None,
    ) -> tuple[FloatArray, FloatArray]:
        """The factor of the merges of all cells, and its standard error."""
        places = self._places(clients)
        log = np.array([np.interp(target, self.targets, each.log) for each in self.factors])
        slope = np.array([each.slope for each in self.factors])
        error = np.array([each.error for each in self.factors])
        work = np.log(np.asarray(local_steps, dtype=np.float64) * np.asarray(edge_rounds))
        return np.asarray(np.exp(log[places] + slope[places] * work)), error[places]

    def _points(self, *values: ArrayLike | None) -> FloatArray:
        local_steps, edge_rounds, _, *others = values
        return super()._points(local_steps, edge_rounds, None, *others)

    def _places(self, clients: ArrayLike | None) -> IntArray:
        """Indices of the factors.

        Raises:
            ConfigError: no pilot has so many clients per merge.
        """
        if clients is None:
            raise ConfigError("clients is missing, and pilots differ in it: give it.")
        known = np.array([each.clients for each in self.factors])
        wanted = np.asarray(clients, dtype=np.float64)
        places = np.abs(wanted[..., None] - known).argmin(-1)
        if not np.allclose(wanted, known[places], rtol=1e-9):
            raise ConfigError(
                f"clients is {shown(clients)}, and pilots have {known.tolist()} per merge: choose "
                "one of these."
            )
        return np.asarray(places)


def merges_curve(
    pilots: Sequence[Pilot], targets: Sequence[float] | None, **options: Any
) -> MergesCurve:
    """Fit merges to a target to pilots that differ in the number of cells per merge.

    Args:
        pilots: those with the largest number determine the curve, the others its factors.
        targets: validation accuracies; None for those that ``fit_rounds`` chooses.
        options: of ``fit_rounds``.

    Raises:
        ConfigError: see ``fit_rounds``.
    """
    most = max(pilot.clients for pilot in pilots)
    whole = fit_rounds([p for p in pilots if p.clients == most], targets, **options)
    groups: dict[float, list[Pilot]] = {}
    for pilot in pilots:
        if pilot.clients < most:
            groups.setdefault(pilot.clients, []).append(pilot)
    logs = [np.array([_excess(pilot, whole) for pilot in group]) for group in groups.values()]
    spread = _spread(logs, whole.errors[whole.form])
    factors = [Factor(most, np.zeros(len(whole.targets)), 0.0, 0.0)]
    for (clients, group), values in zip(groups.items(), logs, strict=True):
        work = np.log([pilot.local_steps * pilot.edge_rounds for pilot in group])
        centred = work - work.mean()
        # The posterior mean of a normal slope about 0.
        slope = float(centred @ values[:, -1] / (centred @ centred + (spread / SLOPE) ** 2))
        log = values.mean(0) - slope * work.mean()
        factors.append(Factor(clients, log, slope, spread / len(group) ** 0.5))
    same = {entry.name: getattr(whole, entry.name) for entry in fields(whole)}
    return MergesCurve(**same, factors=tuple(sorted(factors, key=lambda each: each.clients)))


def _excess(pilot: Pilot, whole: RoundsCurve) -> FloatArray:
    """log(rounds of a pilot over those of all cells) at each target, [targets].

    That of a bound if the pilot does not tell the rounds; 0 if the others do not reach the target.
    """
    where = {"largest": pilot.largest, "noise": pilot.noise}
    found = np.zeros(len(whole.targets))
    for place, target in enumerate(whole.targets):
        expected = float(whole.rounds(target, pilot.local_steps, pilot.edge_rounds, **where))
        if np.isfinite(expected):
            found[place] = np.log(pilot.reached(target).rounds / expected)
    return found


def _spread(logs: Sequence[FloatArray], default: float) -> float:
    """Standard deviation at the highest target within groups [pilots, targets] of pilots.

    ``default``, the error of the curve, stands for it where groups are single pilots.
    """
    degrees = sum(len(values) - 1 for values in logs)
    if not degrees:
        return default
    squares = sum(float(((values - values.mean(0))[:, -1] ** 2).sum()) for values in logs)
    return float(np.sqrt(squares / degrees))
