"""Figure of a partition: the share of each label in each client's samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wirelessfl.figures import new_figure, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = 10
"""Maximum number of labels that have a colour each."""
FEW = 40
"""Maximum number of clients whose bars are separated by gaps."""


def draw_counts(counts: NDArray[Any], clients: int, path: Path) -> list[Path]:
    """Draw the labels of clients; a line of the figure is a client.

    Args:
        counts: number of samples of each label, [clients, classes], perhaps of the first clients.
        clients: number of all clients.
        path: path of the figure; a .png and a .pdf file are written.

    Returns:
        The two files.
    """
    sizes = counts.sum(1)
    shares = counts / np.maximum(sizes, 1)[:, None]
    height = float(np.clip(1.1 + 0.11 * len(counts), 2.4, 5.2))
    figure, (panel, side) = new_figure(columns=2, height=height)
    figure.set_figwidth(style().column * 1.25)
    grid = panel.get_gridspec()
    if grid is not None:
        grid.set_width_ratios([3.2, 1])
    if counts.shape[1] <= BARS:
        _bars(panel, shares)
    else:
        _image(panel, shares)
    panel.set_ylabel(_axis(len(counts), clients), fontsize=style().text)
    places = np.arange(len(counts))
    side.barh(places, sizes, height=_thickness(len(counts)), color="0.55", linewidth=0)
    side.set_xlabel("samples", fontsize=style().text)
    side.set_yticks([])
    side.locator_params(axis="x", nbins=3)
    side.grid(visible=False, axis="y")
    side.set_ylim(len(counts) - 0.5, -0.5)
    for axes in (panel, side):
        axes.tick_params(labelsize=style().small)
    return save_figure(figure, path)


def _axis(drawn: int, clients: int) -> str:
    return "client" if drawn == clients else f"client (first {drawn} of {clients})"


def _thickness(clients: int) -> float:
    """Height of a bar; bars of many clients touch each other."""
    return 0.8 if clients <= FEW else 1.0


def _bars(panel: Axes, shares: NDArray[Any]) -> None:
    """One bar per client, divided among the labels."""
    from matplotlib import colormaps

    places, left = np.arange(len(shares)), np.zeros(len(shares))
    colours = colormaps["tab10"].colors  # type: ignore[attr-defined]
    for label, share in enumerate(shares.T):
        panel.barh(
            places,
            share,
            left=left,
            height=_thickness(len(shares)),
            color=colours[label],
            linewidth=0,
            label=str(label),
        )
        left = left + share
    panel.set_xlim(0, 1)
    panel.set_ylim(len(shares) - 0.5, -0.5)
    panel.set_xlabel("share of the client's samples", fontsize=style().text)
    panel.grid(visible=False)
    panel.legend(
        title="label",
        title_fontsize=style().small,
        fontsize=style().small,
        frameon=False,
        ncols=min(5, shares.shape[1]),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        handlelength=0.9,
        columnspacing=0.9,
    )


def _image(panel: Axes, shares: NDArray[Any]) -> None:
    """One line of an image per client, one column per label."""
    from matplotlib import colormaps

    found = panel.imshow(
        np.where(shares > 0, shares, np.nan),  # absent labels are white
        cmap=colormaps["viridis_r"],
        vmin=0,
        aspect="auto",
        interpolation="nearest",
    )
    panel.set_xlabel("label", fontsize=style().text)
    panel.grid(visible=False)
    panel.locator_params(axis="x", integer=True, nbins=8)
    bar = panel.figure.colorbar(found, ax=panel, location="top", aspect=30, pad=0.02)
    bar.set_label("share of the client's samples", fontsize=style().small)
    bar.ax.tick_params(labelsize=style().small)
