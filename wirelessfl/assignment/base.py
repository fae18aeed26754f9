"""What an assignment of clients to tasks is, and what all of them check."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.registry import Choice

State = dict[str, NDArray[Any]]


class Assignment(Protocol):
    """Who trains which task in a round in which all tasks wait for each other."""

    @property
    def wants_losses(self) -> bool:
        """Whether :meth:`learn` needs losses: a pass of each chosen client over its data."""

    def choose(self, number: int, available: IntArray, shares: IntArray) -> list[IntArray]:
        """Disjoint sets of clients, one a task.

        What is chosen depends on the round, the arguments and the own state alone.

        Args:
            number: of the round, >= 0.
            available: [available], distinct clients to choose from, in any order.
            shares: [tasks], how many clients each task gets; 0 for one that has ended.

        Returns:
            For each task its clients [share], sorted.

        Raises:
            ValueError: the shares add up to more than there are, or arguments do not fit.
        """

    def learn(
        self,
        chosen: list[IntArray],
        seconds: list[FloatArray],
        losses: list[FloatArray] | None = None,
    ) -> None:
        """What the round showed.

        Args:
            chosen: as :meth:`choose` gave it.
            seconds: for each task the duration of each of its clients, finite, >= 0.
            losses: likewise the loss of the model that each was sent on its own data; not needed
                unless ``wants_losses``.

        Raises:
            ValueError: losses are missing, shapes do not fit, or a value is out of range.
        """

    def state(self) -> State:
        """What was learnt, by name: copies of numeric arrays, for a checkpoint."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from :meth:`state` as if nothing had happened."""


@dataclass(frozen=True)
class AssignmentRule(Choice, ABC):
    """Base of every rule of assignment. Its dataclass fields are its settings."""

    @abstractmethod
    def begin(self, clients: int, tasks: int, stream: Stream) -> Assignment:
        """What assigns in a run.

        Args:
            clients: of all.
            tasks: of all.
            stream: its randomness.
        """


def split(order: IntArray, sizes: IntArray) -> list[IntArray]:
    """The first ``sizes`` [tasks] of ``order`` as sorted sets, one after the other."""
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes))[:-1]]


def checked_round(
    available: IntArray, shares: IntArray, clients: int | None = None, tasks: int | None = None
) -> tuple[IntArray, IntArray]:
    """Available clients, sorted, and shares, if the round can be.

    Args:
        available, shares: as in :meth:`Assignment.choose`.
        clients: of all; None for any number.
        tasks: of all; None for any number.

    Raises:
        ValueError: it cannot; the message says why.
    """
    them, sizes = np.sort(np.asarray(available)), np.asarray(shares)
    for name, given in (("available", them), ("shares", sizes)):
        if given.ndim != 1 or not (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
            raise ValueError(
                f"{name} has shape {given.shape} and dtype {given.dtype}: give a list of integers."
            )
    if (them[1:] == them[:-1]).any():
        twice = them[1:][them[1:] == them[:-1]][0]
        raise ValueError(f"available holds client {twice} twice: give each client once.")
    if them.size and (them[0] < 0 or (clients is not None and them[-1] >= clients)):
        wrong = them[0] if them[0] < 0 else them[-1]
        below = "" if clients is None else f", below {clients}"
        raise ValueError(f"available holds client {wrong}: clients count from 0{below}.")
    if tasks is not None and len(sizes) != tasks:
        raise ValueError(f"shares has {len(sizes)} entries: give one for each of {tasks} tasks.")
    if (sizes < 0).any():
        raise ValueError(f"shares holds {sizes.min()}: give numbers of clients >= 0.")
    if sizes.sum() > len(them):
        raise ValueError(
            f"shares add up to {sizes.sum()}, and {len(them)} clients are available: ask for fewer."
        )
    return them.astype(np.int64), sizes.astype(np.int64)


def checked_values(
    name: str, chosen: list[IntArray], values: list[FloatArray] | None, *, min_value: float
) -> list[FloatArray]:
    """``values`` as float64, if there is a finite one >= ``min_value`` for each chosen client.

    Raises:
        ValueError: there is not.
    """
    if values is None or len(values) != len(chosen):
        got = "None" if values is None else f"{len(values)} arrays"
        raise ValueError(f"{name} is {got}: give one array for each of {len(chosen)} tasks.")
    arrays = [np.asarray(array, dtype=np.float64) for array in values]
    for task, (clients, array) in enumerate(zip(chosen, arrays, strict=True)):
        if array.shape != (len(clients),):
            raise ValueError(
                f"{name}[{task}] has shape {array.shape}: give a number for each of its "
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
