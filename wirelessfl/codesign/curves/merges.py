"""The learning curve of asynchronous cells: that of all cells, times a factor of cells per merge.

How stale updates slow training down is not monotone in the number of cells per merge, and steeper
than 1/K: each number has a factor of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.codesign.curves.curve import RoundsCurve
from wirelessfl.codesign.curves.fit import fit_rounds
from wirelessfl.codesign.curves.pilot import EXACT, Pilot
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown


class Factor(NamedTuple):
    """Merges of some cells that do as much as one of all cells.

    Args:
        clients: K, mean number of clients of the cells of a merge.
        log: logarithm of the number of merges, mean over the pilots.
        error: standard error of ``log``.
    """

    clients: float
    log: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class MergesCurve(RoundsCurve):
    """Merges to a validation accuracy; created by ``merges_curve``.

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
        """Those of the curve of all cells, and the factors."""
        found = {f"factor at K = {each.clients:g}": np.exp(each.log) for each in self.factors}
        return super().coefficients | {name: np.array(value) for name, value in found.items()}

    def rounds(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Merges to a target, see ``RoundsCurve.rounds``; ``clients`` are those of a merge."""
        whole = super().rounds(target, local_steps, edge_rounds, None, largest, noise)
        return np.asarray(np.maximum(whole * np.exp(self._of(clients, "log")), 1.0))

    def draws(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None = None,
        largest: ArrayLike | None = None,
        noise: ArrayLike = 0.0,
    ) -> FloatArray:
        """Merges that a further run may need, see ``RoundsCurve.draws``.

        Factors are normal with their standard errors.
        """
        whole = super().draws(target, local_steps, edge_rounds, None, largest, noise)
        normal = Stream(1, ("design", "factors")).generator().standard_normal(len(whole))
        normal = normal.reshape(-1, *(1,) * (whole.ndim - 1))
        log = self._of(clients, "log") + self._of(clients, "error") * normal
        return np.asarray(np.maximum(whole * np.exp(log), 1.0))

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
        whole = np.asarray(rounds) / np.exp(self._of(clients, "log"))
        return super().accuracy(whole, local_steps, edge_rounds, None, largest, noise)

    def _of(self, clients: ArrayLike | None, name: str) -> FloatArray:
        """A field of the factors.

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
        return np.asarray(np.array([getattr(each, name) for each in self.factors])[places])


def merges_curve(
    pilots: Sequence[Pilot], targets: Sequence[float] | None, **options: Any
) -> MergesCurve:
    """Fit merges to a target to pilots that differ in the number of cells per merge.

    Args:
        pilots: those with the largest number determine the curve, the others factors: geometric
            means over their targets and over them.
        targets: validation accuracies; None for those that ``fit_rounds`` chooses.
        options: of ``fit_rounds``.

    Raises:
        ConfigError: see ``fit_rounds``.
    """
    most = max(pilot.clients for pilot in pilots)
    whole = fit_rounds([p for p in pilots if p.clients == most], targets, **options)
    logs: dict[float, list[float]] = {}
    for pilot in pilots:
        if pilot.clients < most:
            logs.setdefault(pilot.clients, []).append(_excess(pilot, whole))
    spread = _spread(list(logs.values()), whole.errors[whole.form])
    found = [
        Factor(clients, float(np.mean(values)), spread / len(values) ** 0.5)
        for clients, values in sorted(logs.items())
    ]
    same = {entry.name: getattr(whole, entry.name) for entry in fields(whole)}
    return MergesCurve(**same, factors=(*found, Factor(most, 0.0, 0.0)))


def _excess(pilot: Pilot, whole: RoundsCurve) -> float:
    """log(rounds of a pilot over those of all cells), mean over the targets that it reaches.

    If it reaches none between two evaluations, that of the bound.
    """
    where = {"largest": pilot.largest, "noise": pilot.noise}
    known: list[float] = []
    bounds: list[float] = []
    for target in whole.targets:
        rounds, kind = pilot.reached(target)
        expected = float(whole.rounds(target, pilot.local_steps, pilot.edge_rounds, **where))
        if np.isfinite(expected):
            (known if kind == EXACT else bounds).append(float(np.log(rounds / expected)))
    return float(np.mean(known or bounds or [0.0]))


def _spread(logs: Sequence[Sequence[float]], default: float) -> float:
    """Standard deviation within the groups; ``default`` if none has two pilots."""
    degrees = sum(len(values) - 1 for values in logs)
    if not degrees:
        return default
    squares = sum(float(((np.array(values) - np.mean(values)) ** 2).sum()) for values in logs)
    return float(np.sqrt(squares / degrees))
