"""Which cell a client of a placed network belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from channels.arguments import nearest as most_similar
from channels.arrays import FloatArray, IntArray
from channels.layouts import Positions
from channels.validation import as_array, shown

Association: TypeAlias = str | ArrayLike | Callable[[FloatArray], ArrayLike]
"""A rule by name, the cell of each client, or a function of mean gains in dB [clients, cells]."""
PLACED = "placed"
"""The rule of layouts: each client is in the cell in which it was placed."""


def _nearest(where: Positions, gain_db: FloatArray) -> IntArray:
    cells = range(gain_db.shape[1])
    distance_m = np.stack([where.distances_to(cell) for cell in cells], axis=1)
    return np.asarray(distance_m.argmin(1))


RULES: dict[str, Callable[[Positions, FloatArray], IntArray]] = {
    PLACED: lambda where, gain_db: where.cell_of,
    "nearest": _nearest,
    "strongest": lambda where, gain_db: np.asarray(gain_db.argmax(1)),
}
"""Rules by name."""


def cells_of(association: Association, where: Positions, gain_db: FloatArray) -> IntArray:
    """The cell of each client [clients].

    Args:
        association: the rule; cells are in the order in which the clients were given.
        where: positions of base stations and clients.
        gain_db: [clients, cells], mean gains.

    Raises:
        ValueError: the rule is unknown, a cell does not exist, or one has no client.
    """
    if isinstance(association, str):
        if association not in RULES:
            near = most_similar(association, RULES)
            remedy = f'Do you mean "{near}"?' if near else f"Choose one of {', '.join(RULES)}."
            raise ValueError(
                f"association is {association!r}: {remedy} Or give the cell of each client."
            )
        cells = RULES[association](where, gain_db)
    elif callable(association):
        cells = _checked(association(gain_db), *gain_db.shape)
    else:
        cells = _checked(association, *gain_db.shape)
        if where.given_as is not None:
            cells = cells[where.given_as]
    sizes = np.bincount(cells, minlength=gain_db.shape[1])
    if not sizes.all():
        rule = f'"{association}"' if isinstance(association, str) else "your own"
        raise ValueError(
            f"association is {rule}, and cell {int(sizes.argmin())} has no client: remove its base "
            "station, or give each cell a client."
        )
    return cells


def _checked(values: Any, clients: int, cells: int) -> IntArray:
    """The cell of each client, as integers."""
    array = as_array("association", values)
    if array.shape != (clients,) or array.dtype.kind not in "iuf":
        raise ValueError(
            f"association is {shown(values)}: give the cell of each of the {clients} clients, "
            "[clients]."
        )
    wrong = ~((array >= 0) & (array < cells) & (array == np.floor(array)))
    if wrong.any():
        client = int(wrong.argmax())
        raise ValueError(
            f"association[{client}] is {array[client]:g}: give a cell, 0 to {cells - 1}."
        )
    return array.astype(np.int64)
