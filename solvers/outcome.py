"""Assembles the solution of one problem or of a batch, some of which may be infeasible."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from channels.arrays import BoolArray, FloatArray, IntArray
from solvers.arrays import like
from solvers.solution import PROVEN_GAP, Solution, Status


class Outcome(NamedTuple):
    """What a method has found for the feasible problems, one per row.

    Args:
        value: [feasible problems, ...], or a NamedTuple of such arrays.
        objective: [feasible problems], attained by ``value``; not finite if the method failed.
        bound: [feasible problems], proven.
    """

    value: Any
    objective: FloatArray
    bound: FloatArray

    def solution(
        self,
        feasible: BoolArray,
        shape: tuple[int, ...],
        model: Any,
        *,
        backend: str,
        start: float,
        message: str = "",
    ) -> Solution[Any]:
        """The solution; problems without one have an infinite objective.

        An objective that is NaN or infinite means that rounding errors left no solution: its
        status is UNKNOWN.

        Args:
            feasible: [problems], which problems the rows of the outcome belong to.
            shape: shape of the batch; () for one problem.
            model: argument whose array type the results have.
            backend: name of the method.
            start: when the solve began, by ``time.perf_counter``.
            message: why problems are infeasible, or other information.
        """
        objective, bound, gap = (np.full(len(feasible), x) for x in (np.inf, np.inf, 0.0))
        failed, wrong = np.zeros(len(feasible), dtype=bool), ~np.isfinite(self.objective)
        failed[feasible] = wrong
        if wrong.any():
            text = (
                f"rounding errors leave no solution of {np.count_nonzero(wrong)} of {len(failed)}"
            )
            text += " problems: use units in which arguments are closer to 1"
            message = f"{message}; {text}" if message else text
            feasible = feasible & ~failed
        value = _each(lambda a: a[~wrong], self.value) if wrong.any() else self.value
        reached, proven = self.objective[~wrong], self.bound[~wrong]
        objective[feasible], bound[feasible] = reached, proven
        bound[failed], gap[failed] = np.nan, np.inf
        apart = proven != reached
        off = np.where(apart, np.inf, 0.0)  # what is left where the objective is 0
        gap[feasible] = np.abs(
            np.divide(reached - proven, reached, off, where=apart & (reached != 0))
        )
        if not shape:
            answer = _each(lambda a: like(model, a[0]), value) if feasible[0] else None
            missing = Status.UNKNOWN if failed[0] else Status.INFEASIBLE
            ended = Status.of_gap(float(gap[0])) if feasible[0] else missing
            cost, limit, rest = float(objective[0]), float(bound[0]), float(gap[0])
            seconds = time.perf_counter() - start
            return Solution(answer, cost, limit, rest, ended, backend, seconds, message)
        every = np.full(len(feasible), Status.INFEASIBLE)
        every[feasible] = Status.FEASIBLE
        every[feasible & (gap <= PROVEN_GAP)] = Status.OPTIMAL
        every[failed] = Status.UNKNOWN
        answer = _each(lambda a: like(model, _spread(a, feasible, shape)), value)
        objective, bound, gap = (like(model, x.reshape(shape)) for x in (objective, bound, gap))
        seconds = time.perf_counter() - start
        status = every.reshape(shape)
        return Solution(answer, objective, bound, gap, status, backend, seconds, message)


def clients(which: IntArray) -> str:
    """The first of the clients by number, e.g. "clients 1, 4"."""
    names = ", ".join(str(int(i)) for i in which[:5]) + (", ..." if len(which) > 5 else "")
    return f"client{'s' * (len(which) > 1)} {names}"


def unable(reasons: dict[str, BoolArray]) -> str:
    """Who cannot take part and why, e.g. "clients 1, 4 cannot send: snr_hz is 0".

    Args:
        reasons: whom each reason concerns, [clients]; a reason is e.g. "send: snr_hz is 0".
    """
    return "; ".join(
        f"{clients(np.flatnonzero(which))} cannot {why}"
        for why, which in reasons.items()
        if which.any()
    )


def located(
    text: str, which: BoolArray, shape: tuple[int, ...], what: str = "are infeasible"
) -> str:
    """A message about the first of some problems, with its place in the batch.

    Args:
        text: the message.
        which: [problems], which problems have such a message.
        shape: shape of the batch; () for one problem, where ``text`` is returned as it is.
        what: what these problems have in common.
    """
    if not shape:
        return text
    item = ", ".join(str(int(i)) for i in np.unravel_index(int(which.argmax()), shape))
    many = f"{np.count_nonzero(which)} of {which.size} problems {what}"
    return f"{many}; item [{item}]: {text}"


def left_out(missing: BoolArray, shape: tuple[int, ...], text: Callable[[int], str]) -> str:
    """A note on the first of the problems that go without some clients; "" if none does.

    Args:
        missing: clients that a problem goes without, [problems, ...].
        shape: shape of the batch.
        text: names the clients of a problem.
    """
    which = np.asarray(missing.any(tuple(range(1, missing.ndim))))
    if not which.any():
        return ""
    return located(text(int(which.argmax())), which, shape, "go without clients")


def _each(function: Callable[[NDArray[Any]], Any], value: Any) -> Any:
    """``function`` of an array, or of each array of a NamedTuple."""
    if isinstance(value, tuple):
        return type(value)(*(function(array) for array in value))
    return function(value)


def _spread(rows: NDArray[Any], feasible: BoolArray, shape: tuple[int, ...]) -> NDArray[Any]:
    """``rows`` of the feasible problems in an array of all; elsewhere -1, or False."""
    fill = False if rows.dtype == np.bool_ else -1
    every = np.full((len(feasible), *rows.shape[1:]), fill, dtype=rows.dtype)
    every[feasible] = rows
    return every.reshape(*shape, *rows.shape[1:])
