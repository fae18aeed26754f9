"""Plot of a split: the number of samples of each label that every client has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike

from channels.arrays import IntArray
from wirelessfl.data.labels import cells_of_clients, checked_indices, checked_labels
from wirelessfl.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".pdf", ".svg")


def label_counts(
    client_samples: Sequence[ArrayLike],
    labels: ArrayLike | torch.Tensor,
    classes: int | None = None,
) -> IntArray:
    """Count the samples of each label that each client has.

    Args:
        client_samples: for each client its indices into ``labels``, as returned by ``split``.
        labels: [n], integers >= 0.
        classes: number of labels; None for one more than the largest label.

    Returns:
        Counts [classes, clients].

    Raises:
        DataError: labels are not integers >= 0, a label is not below ``classes``, or an index is
            no integer or outside the labels.
    """
    labels = checked_labels(labels)
    largest = int(labels.max()) if labels.size else -1
    classes = largest + 1 if classes is None else classes
    if largest >= classes:
        raise DataError(f"labels contains {largest}, but classes is {classes}: increase classes.")
    held = []
    for client, samples in enumerate(client_samples):
        rows = checked_indices(f"client_samples[{client}]", samples, labels.size)
        held.append(np.bincount(labels[rows], minlength=classes))
    return np.stack(held, axis=1).astype(np.int64)


def draw_split(
    client_samples: Sequence[ArrayLike],
    labels: ArrayLike | torch.Tensor,
    path: str | os.PathLike[str] | None = None,
    *,
    cells: int = 1,
    cell_of: ArrayLike | None = None,
    classes: Sequence[str] | int | None = None,
    title: str | None = None,
) -> Figure:
    """Plot the samples per client as bars, above the samples per label and client as an image.

    >>> from channels import Stream
    >>> from wirelessfl.data import draw_split, split
    >>> labels = [0, 1, 2, 3] * 10
    >>> parts = split(labels, 4, kind="dirichlet", stream=Stream(1))
    >>> figure = draw_split(parts, labels)  # with a path, it is also written
    >>> len(figure.axes) >= 2
    True

    Args:
        client_samples: for each client its indices into ``labels``, as returned by ``split``.
        labels: [n], integers >= 0.
        path: output file, .png, .pdf or .svg; None for no file.
        cells: number of equal cells; their boundaries are marked.
        cell_of: [clients], sorted, the cell of each client; overrides ``cells``.
        classes: names of the labels, or their number; None for one more than the largest label.
        title: title of the figure; None for no title.

    Returns:
        The figure: bars of sizes above an image of ``label_counts``.

    Raises:
        DataError: there are fewer clients than cells, ``cell_of`` has another length, a label is
            negative or not below ``classes``, an index is outside the labels, or the file's suffix
            is unknown.
    """
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    members = cells_of_clients(len(client_samples), cells, cell_of)
    if path is not None and Path(path).suffix.lower() not in _SUFFIXES:
        raise DataError(f"path is {path}: give a file name that ends in {', '.join(_SUFFIXES)}.")
    names: list[str] = []
    if classes is not None and not isinstance(classes, int | np.integer):
        names = list(classes)
        classes = len(names)
    counts = label_counts(client_samples, labels, classes)
    labels_shown, clients = counts.shape

    width = float(np.clip(2.5 + 0.13 * clients, 6, 14))
    height = float(np.clip(1.9 + 0.22 * labels_shown, 3.2, 9))
    figure = Figure(figsize=(width, height), layout="constrained")
    sizes_axes, matrix_axes = figure.subplots(2, 1, sharex=True, height_ratios=[0.9, height - 1.6])
    sizes_axes.bar(np.arange(clients), counts.sum(axis=0), width=0.85, color="#4c72b0")
    sizes_axes.set_ylabel("samples")
    sizes_axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    sizes_axes.spines[["top", "right"]].set_visible(False)
    sizes_axes.tick_params(bottom=False)

    # Absent labels are white; even a single sample is visible.
    blues = LinearSegmentedColormap.from_list("samples", ["#cfe1f2", "#3787c0", "#08306b"])
    shades = blues.with_extremes(under="white")
    image = matrix_axes.imshow(
        counts,
        cmap=shades,
        vmin=1,
        vmax=max(2, counts.max()),
        aspect="auto",
        interpolation="nearest",
    )
    matrix_axes.set_xlabel("client")
    matrix_axes.set_ylabel("label")
    matrix_axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    if names:
        matrix_axes.set_yticks(range(len(names)), names)
    else:
        matrix_axes.yaxis.set_major_locator(MaxNLocator(11, integer=True))
    _mark_cells(sizes_axes, matrix_axes, members)
    figure.colorbar(image, ax=matrix_axes, label="samples", pad=0.01, extend="min", aspect=30)
    if title:
        figure.suptitle(title)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _mark_cells(sizes_axes: Axes, matrix_axes: Axes, cell_of: IntArray) -> None:
    """Draw a line between neighbouring cells, and each cell's number above its clients."""
    cells = int(cell_of[-1]) + 1
    if cells == 1:
        return
    for cell in range(cells):
        members = np.flatnonzero(cell_of == cell)
        if cell:
            for axes in (sizes_axes, matrix_axes):
                axes.axvline(members[0] - 0.5, color="#c44e52", linewidth=1.2)
        sizes_axes.text(
            members.mean(),
            1.02,
            f"cell {cell}",
            ha="center",
            va="bottom",
            fontsize="small",
            transform=sizes_axes.get_xaxis_transform(),
        )
