"""The interface of assignments of clients to tasks, and common checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.base.guard import UnfitError, described, entries, implementing, indices, returns
from wirelessfl.base.registry import Choice

State = dict[str, NDArray[Any]]
Shape = tuple[int, ...]


def _chosen(
    value: Any, assignment: Assignment, number: int, available: IntArray, shares: IntArray
) -> list[IntArray]:
    """Check for disjoint sets of available clients of the asked sizes."""
    expected = (
        f"{len(shares)} disjoint arrays of {', '.join(map(str, shares.tolist()))} available clients"
    )
    below = int(available.max(initial=-1)) + 1
    sets = [indices(clients, below, expected) for clients in entries(value, len(shares), expected)]
    sizes = [len(clients) for clients in sets]
    if sizes != shares.tolist():
        raise UnfitError(f"{', '.join(map(str, sizes))} clients", expected)
    chosen = np.concatenate([available[:0], *sets])
    if len(np.unique(chosen)) < len(chosen) or not np.isin(chosen, available).all():
        twice = len(np.unique(chosen)) < len(chosen)
        raise UnfitError("a client twice" if twice else "a client that is not available", expected)
    return sets


def _stored(value: Any, assignment: Assignment) -> State:
    expected = "a dict of numeric NumPy arrays by name"
    if not isinstance(value, Mapping):
        raise UnfitError(described(value), expected)
    for name, array in value.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biufc":
            raise UnfitError(f"{described(array)} for {name!r}", expected)
    return dict(value)


class Assignment(Protocol):
    """Chooses which clients train which task in each common round of the tasks."""

    @property
    def wants_losses(self) -> bool:
        """Whether :meth:`learn` needs losses, which cost each client one pass over its data."""

    @returns(_chosen)
    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Choose disjoint sets of clients, one per task.

        The choice depends only on the arguments and on this object's state.

        Args:
            number: round number, >= 0.
            available: [available], distinct clients to choose from, in any order.
            shares: [tasks], number of clients for each task; 0 for tasks that have ended.

        Returns:
            The clients [share] of each task, sorted.

        Raises:
            ValueError: the shares sum to more than the available clients, or shapes are wrong.
        """

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """Learn from a finished round.

        Args:
            chosen: clients of each task, as returned by :meth:`choose`.
            seconds: for each task the duration of each of its clients, finite, >= 0.
            losses: for each task the loss of the received model on each client's data; needed only
                if ``wants_losses``.

        Raises:
            ValueError: losses are missing, shapes are wrong, or a value is out of range.
        """

    @returns(_stored)
    def state(self) -> State:
        """State for a checkpoint: copies of numeric arrays by name."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the result of :meth:`state`, so that later choices are the same."""


@dataclass(frozen=True)
class AssignmentRule(Choice, ABC):
    """Base class of all assignment rules. Its dataclass fields are its settings."""

    @returns(implementing(Assignment))
    @abstractmethod
    def begin(self, clients: int, tasks: int, stream: Stream) -> Assignment:
        """Create the assignment of a run.

        Args:
            clients: number of all clients.
            tasks: number of all tasks.
            stream: random stream of the assignment.
        """


def split(order: IntArray, sizes: IntArray) -> list[IntArray]:
    """Split the first entries of ``order`` into consecutive sorted sets of ``sizes`` [tasks]."""
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes))[:-1]]


def checked_round(
    available: IntArray, shares: IntArray, clients: int | None = None, tasks: int | None = None
) -> tuple[IntArray, IntArray]:
    """Check the arguments of a round; return available clients, sorted, and shares as int64.

    Args:
        available, shares: as in :meth:`Assignment.choose`.
        clients: number of all clients; None for no check.
        tasks: number of all tasks; None for no check.
    """
    pool, sizes = np.sort(np.asarray(available)), np.asarray(shares)
    for name, array in (("available", pool), ("shares", sizes)):
        if array.ndim != 1 or not (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
            raise ValueError(
                f"{name} has shape {array.shape} and dtype {array.dtype}: give a one-dimensional "
                "list of integers."
            )
    if (pool[1:] == pool[:-1]).any():
        twice = pool[1:][pool[1:] == pool[:-1]][0]
        raise ValueError(f"available contains client {twice} twice: give each client once.")
    if pool.size and (pool[0] < 0 or (clients is not None and pool[-1] >= clients)):
        wrong = pool[0] if pool[0] < 0 else pool[-1]
        below = "" if clients is None else f" and < {clients}"
        raise ValueError(f"available contains client {wrong}: give client numbers >= 0{below}.")
    if tasks is not None and len(sizes) != tasks:
        raise ValueError(f"shares has {len(sizes)} entries: give one for each of {tasks} tasks.")
    if (sizes < 0).any():
        raise ValueError(f"shares contains {sizes.min()}: give numbers of clients >= 0.")
    if sizes.sum() > len(pool):
        raise ValueError(
            f"shares sum to {sizes.sum()}, and {len(pool)} clients are available: lower shares."
        )
    return pool.astype(np.int64), sizes.astype(np.int64)


def checked_values(
    name: str, chosen: list[IntArray], values: list[FloatArray] | None, *, min_value: float
) -> list[FloatArray]:
    """Return ``values`` as float64, after checking them.

    Each chosen client must have exactly one value, finite and >= ``min_value``.
    """
    if values is None or len(values) != len(chosen):
        got = "None" if values is None else f"{len(values)} arrays"
        raise ValueError(f"{name} is {got}: give one array for each of {len(chosen)} tasks.")
    arrays = [np.asarray(array, dtype=np.float64) for array in values]
    for task, (clients, array) in enumerate(zip(chosen, arrays, strict=True)):
        if array.shape != (len(clients),):
            raise ValueError(
                f"{name}[{task}] has shape {array.shape}: give one number for each of its "
                f"{len(clients)} clients."
            )
        wrong = ~(np.isfinite(array) & (array >= min_value))
        if wrong.any():
            limit = "" if min_value == -np.inf else f" >= {min_value:g}"
            raise ValueError(
                f"{name}[{task}] is {array[wrong][0]} for client {clients[int(wrong.argmax())]}: "
                f"give a finite number{limit}."
            )
    return arrays


def check_state(state: Mapping[str, NDArray[Any]], names: Iterable[str], shape: Shape) -> None:
    """Raise ValueError if an array of a checkpoint is not of ``shape``, e.g. [tasks, clients]."""
    for name in names:
        if state[name].shape != shape:
            raise ValueError(
                f"{name} has shape {state[name].shape}: give the state of a run with shape {shape}."
            )
