"""Plot of masks: the neurons that each client has in each round."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels.masks import Dealing, Masks, coverage, deal_masks
from wirelessfl.models.submodels.neurons import Neurons

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".pdf", ".svg")
_NOTE = "blue: neurons of a client; Γ: clients that cover a neuron (darker: more, cross: none)"


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
    """Plot masks of one layer, clients by neurons: one column per kind, one row per round.

    A strip below each panel shows Gamma^i, the number of clients that cover each neuron; darker
    means more clients, and uncovered neurons are crossed out.

    Args:
        counts: [clients], number of neurons of each client.
        width: number of neurons of the layer.
        path: output file, .png, .pdf or .svg; None to save nothing.
        kinds: kinds of masks, see ``wirelessfl.models.submodels.masks``.
        rounds: number of rounds.
        overlap: overlap of ``partition`` masks.
        seed: seed of the masks.

    Returns:
        The figure.

    Raises:
        ConfigError: the file's suffix is unknown.
        ValueError: a count is not from 1 to ``width``, or a kind is unknown.
    """
    from matplotlib.figure import Figure

    if path is not None and not os.fspath(path).endswith(_SUFFIXES):
        raise ConfigError(
            f"path is {os.fspath(path)!r}: give a file name that ends in {', '.join(_SUFFIXES)}."
        )
    layers = [Neurons("hidden", width, ())]
    figure = Figure(figsize=(1.55 * len(kinds), 1.2 * rounds + 0.5), layout="constrained")
    grid = figure.add_gridspec(2 * rounds, len(kinds), height_ratios=[6, 1] * rounds)
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
            above = figure.add_subplot(grid[2 * number, column])
            below = figure.add_subplot(grid[2 * number + 1, column])
            times = coverage(chosen, layers)[0]
            above.imshow(held, aspect="auto", cmap="Blues", vmin=0, vmax=1.4)
            below.imshow(times[None], aspect="auto", cmap="Greens", vmin=0, vmax=len(counts))
            uncovered = np.flatnonzero(times == 0)
            below.plot(uncovered, 0 * uncovered, "x", color="#D55E00", markersize=3, mew=0.8)
            for axes in (above, below):
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set(color="0.6", linewidth=0.5)
            if number == 0:
                above.set_title(kind, fontsize=8)
            if column == 0:
                above.set_ylabel(f"round {number + 1}\nclients", fontsize=7)
                below.set_ylabel("Γ", fontsize=7, rotation=0, labelpad=7, va="center")
            if number == rounds - 1:
                below.set_xlabel("neurons", fontsize=7)
    figure.supxlabel(textwrap.fill(_NOTE, int(18 * figure.get_figwidth())), fontsize=7)
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure
