"""Picture of a split: the share of each label in the samples of every client."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from channels.arrays import IntArray
from wirelessfl.base.errors import DataError
from wirelessfl.base.figures.curves import new_figure, style
from wirelessfl.data.labels import cells_of_clients, checked_indices, checked_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".pdf", ".svg")
FEW = 40
"""Maximum number of clients whose bars are separated by gaps."""


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
    """Plot the share of each label in each client's samples, and the numbers of samples as bars.

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
        The figure: an image with a line per client and a column per label, beside the sizes.

    Raises:
        DataError: there are fewer clients than cells, ``cell_of`` has another length, a label is
            negative or not below ``classes``, an index is outside the labels, or the file's suffix
            is unknown.
    """
    members = cells_of_clients(len(client_samples), cells, cell_of)
    if path is not None and Path(path).suffix.lower() not in _SUFFIXES:
        raise DataError(f"path is {path}: give a file name that ends in {', '.join(_SUFFIXES)}.")
    names: list[str] = []
    if classes is not None and not isinstance(classes, int | np.integer):
        names = list(classes)
        classes = len(names)
    counts = label_counts(client_samples, labels, classes)
    figure = draw_shares(counts.T, len(client_samples), cell_of=members, names=names, title=title)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def draw_shares(
    counts: NDArray[Any],
    clients: int,
    *,
    cell_of: IntArray | None = None,
    names: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """Draw the share of each label in each client's samples, beside the numbers of samples.

    Args:
        counts: number of samples of each label, [clients, classes], perhaps of the first clients.
        clients: number of all clients.
        cell_of: [clients], sorted, the cell of each client; None for one cell.
        names: names of the labels; none for their numbers.
        title: title of the figure; None for no title.
    """
    from matplotlib import colormaps

    count, sizes = len(counts), counts.sum(1)
    shares = counts / np.maximum(sizes, 1)[:, None]
    figure, (panel, side) = new_figure(
        columns=2, height=float(np.clip(1.1 + 0.11 * count, 2.4, 5.2))
    )
    figure.set_figwidth(style().column * 1.25)
    grid = panel.get_gridspec()
    assert grid is not None
    grid.set_width_ratios([3.2, 1])
    image = panel.imshow(
        np.where(shares > 0, shares, np.nan),  # absent labels are white
        cmap=colormaps["viridis_r"],
        vmin=0,
        aspect="auto",
        interpolation="nearest",
    )
    bar = figure.colorbar(image, ax=panel, location="top", aspect=30, pad=0.02)
    bar.set_label("share of the client's samples", fontsize=style().small)
    panel.set_xlabel("label", fontsize=style().text)
    first = "" if count == clients else f" (first {count} of {clients})"
    panel.set_ylabel(f"client{first}", fontsize=style().text)
    if names:
        panel.set_xticks(range(len(names)), names, rotation=90)
    else:
        panel.locator_params(axis="x", integer=True, nbins=8)
    panel.locator_params(axis="y", integer=True)
    height = 0.8 if count <= FEW else 1.0  # bars of many clients touch each other
    side.barh(np.arange(count), sizes, height=height, color="0.55", linewidth=0)
    side.set_xlabel("samples", fontsize=style().text)
    side.set_yticks([])
    side.locator_params(axis="x", nbins=3)
    side.set_ylim(count - 0.5, -0.5)
    panel.grid(visible=False)
    side.grid(visible=False, axis="y")
    for axes in (panel, side, bar.ax):
        axes.tick_params(labelsize=style().small)
    if cell_of is not None and cell_of[-1] > 0:
        for cell in range(int(cell_of[-1]) + 1):
            members = np.flatnonzero(cell_of == cell)
            if cell:
                for axes in (panel, side):
                    axes.axhline(members[0] - 0.5, color="black", linewidth=0.8)
            side.text(
                1.02,
                members.mean(),
                f"cell {cell}",
                va="center",
                fontsize=style().small,
                transform=side.get_yaxis_transform(),
            )
    if title:
        figure.suptitle(title, fontsize=style().text)
    return figure
