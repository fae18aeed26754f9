"""How clients are split over cells."""

from __future__ import annotations

import numpy as np

from channels.arguments import checked
from channels.arrays import IntArray
from channels.validation import whole_number


@checked()
def even_cells(clients: int, cells: int) -> IntArray:
    """Split clients evenly over cells; sizes differ by at most one, and larger cells come first.

    Args:
        clients: total number of clients, >= ``cells``.
        cells: number of cells, >= 1.

    Returns:
        cell_of [clients], sorted.

    Raises:
        ValueError: some cell would be empty.
        TypeError: an argument is not an integer.
    """
    clients, cells = whole_number("clients", clients), whole_number("cells", cells)
    if cells < 1 or clients < cells:
        raise ValueError(
            f"clients is {clients} and cells is {cells}: give at least one cell, and at least one "
            "client per cell."
        )
    sizes = [len(part) for part in np.array_split(np.empty(clients, dtype=np.bool_), cells)]
    return np.repeat(np.arange(cells), sizes)
