"""Clients by cell: how they are split over cells, and values per cell."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.validation import Scalar, number_of


@checked()
def even_cells(clients: int, cells: int) -> IntArray:
    """Split clients evenly over cells; sizes differ by at most one, and larger cells come first.

    >>> import channels
    >>> channels.even_cells(5, 2).tolist()
    [0, 0, 0, 1, 1]

    Args:
        clients: total number of clients, >= ``cells``.
        cells: number of cells, >= 1.

    Returns:
        cell_of [clients], sorted.

    Raises:
        ValueError: some cell would be empty.
        TypeError: an argument is not an integer.
    """
    clients, cells = number_of("clients", clients), number_of("cells", cells)
    if clients < cells:
        raise ValueError(
            f"clients is {clients} and cells is {cells}: give at least one cell, and at least one "
            "client per cell."
        )
    sizes = [len(part) for part in np.array_split(np.empty(clients, dtype=np.bool_), cells)]
    return np.repeat(np.arange(cells), sizes)


def smallest_by_cell(
    values: ArrayLike,
    cell_of: IntArray,
    counts: IntArray,
    ties: ArrayLike | Callable[[IntArray], FloatArray] | None = None,
) -> BoolArray:
    """The clients with the smallest values of each cell; of equal ones, those that come first.

    Args:
        values: [..., clients]; infinite or NaN for clients that are not to be chosen.
        cell_of: [clients], cell of each client, in increasing order.
        counts: [cells], number of clients to choose; all others if a cell has fewer.
        ties: [..., clients], decides among equal values; smaller comes first. For values [clients]
            it can be a function of those that are equal where not all of them are chosen.

    Returns:
        [..., clients] boolean.
    """
    costs = np.asarray(values, dtype=np.float64)
    chosen = np.asarray(costs < np.inf)
    sizes = np.bincount(cell_of, minlength=len(counts))
    starts = np.cumsum(sizes) - sizes
    for cell in np.flatnonzero(sizes > np.asarray(counts)):
        for block in np.ndindex(costs.shape[:-1]):
            part = (*block, slice(starts[cell], starts[cell] + sizes[cell]))
            if ties is None or callable(ties):
                among = ties
            else:
                among = np.broadcast_to(ties, costs.shape)[block].__getitem__
            first = _smallest(costs[part], int(counts[cell]), among, int(starts[cell]))
            chosen[part] &= first
    return chosen


def _smallest(
    values: FloatArray,
    count: int,
    ties: Callable[[IntArray], FloatArray] | None = None,
    start: int = 0,
) -> BoolArray:
    """The ``count`` smallest ``values`` [clients] of clients from ``start`` on; linear in time."""
    values = np.fmin(values, np.inf)  # NaN comes last
    last = np.partition(values, count - 1)[count - 1] if count else -np.inf
    chosen = np.asarray(values < last)
    equal = np.flatnonzero(values == last)
    left = count - int(np.count_nonzero(chosen))
    if ties is not None and 0 < left < len(equal):
        equal = equal[_smallest(ties(start + equal), left)]
    chosen[equal[:left]] = True
    return chosen


class ClientsByCell:
    """Clients that are sorted by cell: the part of a network that has no radio."""

    part: IntArray | None
    _ends: IntArray  # [cells], first client after each cell

    @property
    def clients(self) -> int:
        """Number of clients."""
        return int(self._ends[-1])

    @property
    def cells(self) -> int:
        """Number of cells, N."""
        return len(self._ends)

    @cached_property
    def cell_starts(self) -> IntArray:
        """Index of the first client of each cell, [cells], read-only."""
        return read_only(np.concatenate([[0], self._ends[:-1]]))

    @cached_property
    def cell_sizes(self) -> IntArray:
        """Number of clients in each cell, n_j [cells], read-only."""
        return read_only(np.diff(self._ends, prepend=0))

    @property
    def numbers(self) -> IntArray:
        """Client indices [clients]: 0, 1, ...; in a sub-network, indices in the whole network."""
        return np.arange(self.clients) if self.part is None else self.part

    @cached_property
    def _order(self) -> IntArray | None:
        """Places of the clients in the order of their numbers; None if that is their order."""
        if self.part is None or (np.diff(self.part) > 0).all():
            return None
        return self.part.argsort()

    def places(self, numbers: IntArray) -> IntArray:
        """Place of each of the clients with these numbers, [numbers].

        For the number of a client that is not in this network, the place is one of another client,
        or that after the last.
        """
        if self.part is None:
            return numbers
        if self._order is None:
            return np.searchsorted(self.part, numbers)
        at = np.searchsorted(self.part, numbers, sorter=self._order)
        return np.append(self._order, self.clients)[at]

    def over_cells(self, ufunc: np.ufunc, values: FloatArray) -> FloatArray:
        """Reduce ``values`` over the clients of each cell.

        Args:
            ufunc: binary ufunc, e.g. ``np.maximum`` or ``np.add``.
            values: [..., clients].

        Returns:
            [..., cells]; 0 for a cell without a client.
        """
        totals = np.zeros((*values.shape[:-1], self.cells))
        filled = np.flatnonzero(self.cell_sizes)
        totals[..., filled] = ufunc.reduceat(values, self.cell_starts[filled], axis=-1)
        return totals

    @checked(complex_valued=("values",))
    def by_cell(self, values: ArrayLike, fill: float = 0.0) -> FloatArray | ComplexArray:
        """One row per cell, as solvers take their clients.

        Args:
            values: [..., clients], or complex channels [..., clients, antennas].
            fill: value of the places after the last client of a cell. Solvers ignore clients
                without bits or weight, so pad sizes of uploads and weights with 0.

        Returns:
            [..., cells, clients of the largest cell], with the antennas last if there are any.
        """
        array = np.asarray(values)
        channels = np.iscomplexobj(array)
        listed = array.astype(np.complex128 if channels else np.float64)
        axis = -2 if channels else -1
        if listed.ndim < -axis or listed.shape[axis] != self.clients:
            raise ValueError(
                f"values has shape {array.shape} and dtype {array.dtype}: give [..., clients] real "
                f"numbers, or [..., clients, antennas] complex channels, for {self.clients} "
                "clients."
            )
        listed = np.moveaxis(listed, axis, 0)
        width = int(self.cell_sizes.max(initial=0))
        padded = np.full((self.cells, width, *listed.shape[1:]), fill, listed.dtype)
        cell = np.repeat(np.arange(self.cells), self.cell_sizes)
        padded[cell, np.arange(self.clients) - self.cell_starts[cell]] = listed
        return np.ascontiguousarray(np.moveaxis(padded, (0, 1), (axis - 1, axis)))


def read_only(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Make ``values`` read-only: writing to a copy would not change the network."""
    values.setflags(write=False)
    return values
