"""A picture of masks: which neurons each client holds, round after round."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.submodels.masks import Dealing, Masks, coverage, deal_masks
from wirelessfl.submodels.neurons import Neurons

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".pdf", ".svg")


def draw_masks(
    counts: Sequence[int],
    width: int,
    path: str | os.PathLike[str] | None = None,
    *,
    kinds: Sequence[Masks] = ("ordered", "rolling", "random", "static", "covered", "partition"),
    rounds: int = 3,
    overlap: float = 0.0,
    seed: int = 1,
) -> Figure:
    """Masks of one layer: clients by neurons, a column of panels for each kind, a row a round.

    Under each panel stands how many clients cover each neuron, Gamma^i, darker for more; neurons
    that nobody covers are crossed out.

    Args:
        counts: [clients], neurons that each holds.
        width: neurons of the layer.
        path: file to save to, .png, .pdf or .svg; None to save nothing.
        kinds: of masks, see ``wirelessfl.submodels.masks``.
        rounds: rows of panels.
        overlap: of ``partition``.
        seed: of the randomness.

    Returns:
        The figure.

    Raises:
        ConfigError: another suffix.
        ValueError: a count is not within 1 and ``width``, or a kind is unknown.
    """
    from matplotlib.figure import Figure

    if path is not None and not os.fspath(path).endswith(_SUFFIXES):
        raise ConfigError(f"path is {os.fspath(path)!r}: give a name in {', '.join(_SUFFIXES)}.")
    layers = [Neurons("hidden", width, ())]
    figure = Figure(figsize=(1.55 * len(kinds), 1.2 * rounds + 0.2), layout="constrained")
    grid = figure.add_gridspec(rounds, len(kinds))
    stream = Stream(seed)
    for column, kind in enumerate(kinds):
        for number in range(rounds):
            dealing = Dealing(
                number=number,
                clients=np.arange(len(counts)),
                round=stream.child("round", number),
                run=stream,
                overlap=overlap,
            )
            chosen = deal_masks(kind, layers, np.array(counts)[:, None], dealing)
            held = np.zeros((len(counts), width), dtype=bool)
            for row, layers_of_client in zip(held, chosen, strict=True):
                row[layers_of_client[0]] = True
            panels = grid[number, column].subgridspec(2, 1, height_ratios=[6, 1], hspace=0.0)
            above, below = figure.add_subplot(panels[0]), figure.add_subplot(panels[1])
            times = coverage(chosen, layers)[0]
            above.imshow(held, aspect="auto", cmap="Blues", vmin=0, vmax=1.4)
            below.imshow(times[None], aspect="auto", cmap="Greens", vmin=0, vmax=len(counts))
            nobody = np.flatnonzero(times == 0)
            below.plot(nobody, 0 * nobody, "x", color="#D55E00", markersize=3, mew=0.8)
            for axes in (above, below):
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set(color="0.6", linewidth=0.5)
            if number == 0:
                above.set_title(kind, fontsize=8)
            if column == 0:
                above.set_ylabel(f"round {number + 1}", fontsize=7)
                below.set_ylabel(r"$\Gamma$", fontsize=7, rotation=0, labelpad=7, va="center")
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure
