"""Assembles the solution of one problem or of a batch, some of which may be infeasible."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from channels.arrays import BoolArray, FloatArray
from solvers.arrays import like
from solvers.solution import PROVEN_GAP, Solution, Status


class Outcome(NamedTuple):
    """What a method has found for the feasible problems, one per row.

    Args:
        value: [feasible problems, ...], or a named tuple of such arrays.
        objective: [feasible problems], attained by ``value``.
        bound: [feasible problems], proven.
    """

    value: Any
    objective: FloatArray
    bound: FloatArray

    def solution(
        self,
        feasible: BoolArray,
        shape: tuple[int, ...],
        given: Any,
        *,
        backend: str,
        start: float,
        message: str = "",
    ) -> Solution[Any]:
        """The solution; problems without one have an infinite objective.

        Args:
            feasible: [problems], which problems the rows of the outcome belong to.
            shape: shape of the batch; () for one problem.
            given: argument whose array type the results have.
            backend: name of the method.
            start: when the solve began, by ``time.perf_counter``.
            message: why problems are infeasible, or other information.
        """
        objective, bound, gap = (np.full(len(feasible), x) for x in (np.inf, np.inf, 0.0))
        objective[feasible], bound[feasible] = self.objective, self.bound
        apart = self.bound != self.objective
        gap[feasible] = np.abs(
            np.divide(
                self.objective - self.bound, self.objective, np.zeros_like(self.bound), where=apart
            )
        )
        if not shape:
            value = _each(self.value, lambda x: like(given, x[0])) if feasible[0] else None
            ended = Status.of_gap(float(gap[0])) if feasible[0] else Status.INFEASIBLE
            known, limit, rest = float(objective[0]), float(bound[0]), float(gap[0])
            seconds = time.perf_counter() - start
            return Solution(value, known, limit, rest, ended, backend, seconds, message)

        def whole(values: NDArray[Any]) -> Any:
            every = np.full((len(feasible), *values.shape[1:]), -1, dtype=values.dtype)
            every[feasible] = values
            return like(given, every.reshape(*shape, *values.shape[1:]))

        value = _each(self.value, whole)
        every = np.full(len(feasible), Status.INFEASIBLE)
        every[feasible] = Status.FEASIBLE
        every[feasible & (gap <= PROVEN_GAP)] = Status.OPTIMAL
        objective, bound, gap = (like(given, x.reshape(shape)) for x in (objective, bound, gap))
        seconds = time.perf_counter() - start
        status = every.reshape(shape)
        return Solution(value, objective, bound, gap, status, backend, seconds, message)


def _each(value: Any, change: Callable[[NDArray[Any]], Any]) -> Any:
    """``change`` of an array, or of each field of a named tuple."""
    return type(value)(*map(change, value)) if isinstance(value, tuple) else change(value)
