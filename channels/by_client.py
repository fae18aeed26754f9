"""Values of many clients, stored once for each cell where its clients have equal values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol

import numpy as np
from numpy.typing import NDArray

from channels.arrays import IntArray
from channels.validation import Scalar

Values = NDArray[Any]


class ByClient(Protocol):
    """Values of clients, of which some or all are read."""

    def at(self, clients: IntArray) -> Values:
        """Values of the given clients, [clients]."""

    def whole(self) -> Values:
        """Values of all clients, [clients], read-only."""


@dataclass(frozen=True)
class Listed:
    """One value per client.

    Args:
        values: [clients].
    """

    values: Values

    def at(self, clients: IntArray) -> Values:
        """Values of the given clients, [clients]."""
        return np.asarray(self.values[clients])

    def whole(self) -> Values:
        """Values of all clients, [clients], read-only."""
        return self.values


@dataclass(frozen=True)
class ByCell:
    """One value per cell, for clients that are sorted by cell.

    Args:
        values: [cells].
        ends: [cells], index of the first client after each cell, increasing.
    """

    values: Values
    ends: IntArray

    @cached_property
    def _sizes(self) -> IntArray:
        return np.diff(self.ends, prepend=0)

    @cached_property
    def _equal(self) -> Values:
        """The values of all clients of one cell; takes no memory for each."""
        return np.broadcast_to(self.values, int(self.ends[-1]))

    def at(self, clients: IntArray) -> Values:
        """Values of the given clients, [clients]."""
        return np.asarray(self.values[self.ends.searchsorted(clients, side="right")])

    def whole(self) -> Values:
        """Values of all clients, [clients], read-only."""
        if len(self.values) == 1:
            return self._equal
        values = np.repeat(self.values, self._sizes)
        values.setflags(write=False)
        return values


@dataclass(frozen=True)
class ByKind:
    """One value per kind of client, e.g. per device.

    Args:
        kinds: [kinds], their values.
        of: [clients], kind of each client.
    """

    kinds: Values
    of: IntArray

    def at(self, clients: IntArray) -> Values:
        """Values of the given clients, [clients]."""
        return np.asarray(self[clients])

    def __getitem__(self, clients: Any) -> Any:
        return self.kinds[self.of[clients]]

    def whole(self) -> Values:
        """Values of all clients, [clients], read-only."""
        values = self.kinds[self.of]
        values.setflags(write=False)
        return values


def stored_by_cell(values: Values, ends: IntArray) -> ByClient:
    """``values`` [clients], of which those that are equal within every cell are stored once.

    Args:
        values: [clients], read-only.
        ends: [cells], index of the first client after each cell, increasing.
    """
    by_cell = ByCell(values[ends - 1], ends)
    return by_cell if np.array_equal(by_cell.whole(), values) else Listed(values)


class ByClientField(Generic[Scalar]):
    """A field [clients] of a class, which is set to values ``ByClient`` and reads as an array."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object | None, owner: type) -> NDArray[Scalar]:
        if instance is None:
            raise AttributeError(self._name)  # so that the field has no default
        values: ByClient = vars(instance)[self._name]
        return values.whole()

    def __set__(self, instance: object, values: ByClient) -> None:
        vars(instance)[self._name] = values
