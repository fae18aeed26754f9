"""A hexagonal grid of base stations, and the reuse of bands on it."""

from __future__ import annotations

import math

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.layouts.base import checked_reuse


def axial(cells: int) -> IntArray:
    """Axial coordinates [cells, 2] of the first sites of a spiral: the centre, then its rings."""
    sites, ring = [(0, 0)], 0
    while len(sites) < cells:
        ring += 1
        q, s = ring, 0
        # A ring starts to the right of the centre; each of its sides has ``ring`` sites.
        for step in ((-1, 1), (-1, 0), (0, -1), (1, -1), (1, 0), (0, 1)):
            for _ in range(ring):
                sites.append((q, s))
                q, s = q + step[0], s + step[1]
    return np.array(sites[:cells])


def centres(cells: int, spacing_m: float) -> FloatArray:
    """Positions [cells, 2] of base stations; neighbours are ``spacing_m`` apart."""
    q, s = axial(cells).T
    return np.stack([q + s / 2, s * (math.sqrt(3) / 2)], axis=1) * spacing_m


def hexagonal_bands(cells: int, reuse_factor: int) -> IntArray:
    """Band of each cell [cells] in the regular reuse pattern (MacDonald, 1979).

    With r = i^2 + ij + j^2 bands, the cells of a band form the lattice that is spanned by (i, j)
    and the same step turned by 60 degrees, (-j, i + j), in axial coordinates.

    Args:
        cells: number of cells.
        reuse_factor: r.

    Raises:
        ValueError: r is not of that form.
    """
    r = checked_reuse(reuse_factor)
    limit = math.isqrt(r) + 1
    found = [(i, j) for i in range(limit) for j in range(i + 1) if i * i + i * j + j * j == r]
    if not found:
        raise ValueError(
            f"reuse_factor is {r}: a hexagonal grid has regular patterns of 1, 3, 4, 7, 9, 12, "
            "13, ... bands (i^2 + ij + j^2)."
        )
    i, j = found[0]
    q, s = axial(cells).T
    # Two sites are in the same band where their coordinates in that lattice, times r, agree mod r.
    place = ((i + j) * q + j * s) % r * r + (i * s - j * q) % r
    # Bands are numbered in the order of the cells.
    _, first, band = np.unique(place, return_index=True, return_inverse=True)
    return np.asarray(first.argsort().argsort()[band], dtype=np.int64)
