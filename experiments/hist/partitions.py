"""Figure 8: two partitions of three hidden layers, their masks and their training curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.hist.figures import TARGET, facts, floor
from experiments.labels import SPREAD
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import COLOURS, draw_curves, new_figure, style
from wirelessfl.results.panels import legend, same_limits
from wirelessfl.runs.build.planners import planner_without_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARES = {"alternate": "1/N", "all": "1/N²"}
SCHEMES = {
    "alternate": f"every second hidden layer: {SHARES['alternate']}",
    "all": f"all hidden layers: {SHARES['all']}",
}


def fig8(results: Results) -> Figure:
    """Both partition schemes, drawn from the masks of a run, and the training curves of each."""
    # Masks need no training, so both are drawn even if runs are missing.
    cases = {c["partition"]: c for c in results.study.cases if c["cells"] == 4}
    drawn = [cases[scheme] for scheme in SCHEMES]
    figure, axes = new_figure(columns=2, height=2.1, rows=2)
    layers = [owners(case) for case in drawn]
    for panel, owner, title in zip(axes, layers, SCHEMES.values(), strict=False):
        draw_owners(panel, owner)
        panel.set_title(title)
    shared = any((layer == -2).any() for owner in layers for layer in owner)
    _owners_legend(axes[0], int(drawn[0]["cells"]), shared=shared)
    curves = {
        "HFedAvg"
        if case["algorithm"] == "hfedavg"
        else f"HIST, {SHARES[case['partition']]}, N = {case['cells']}": (results.rows(case))
        for case in results.where()
    }
    for panel, against in zip(axes[2:], ("round", "uplink_mib"), strict=True):
        draw_curves(
            panel,
            curves,
            against,  # type: ignore[arg-type]
            target=TARGET,
            floor=floor(curves),
            common=against == "uplink_mib",
            legend=False,
        )
    same_limits(axes[2:])
    legend(figure, axes[2:], *facts(results, results.where(), spread=SPREAD))
    return figure


def owners(case: Case) -> list[np.ndarray]:
    """The cell that trains each weight of the fully connected layers in the first global round.

    Returns:
        For each layer, [outputs, inputs]: the index of the cell; -1 if no cell trains the weight,
        -2 if several cells do.
    """
    planner = planner_without_data(case.config(case.seeds[0]))
    submodels, spec = planner.plan(0).submodels, planner.model.spec
    assert submodels.index is not None
    owner = np.full(spec.size, -1)
    for cell, index in enumerate(submodels.index.numpy()):
        mine = index[index >= 0]
        owner[mine] = np.where(owner[mine] == -1, cell, -2)
    layers = []
    for name, shape in spec.shapes.items():
        if len(shape) == 2:
            start = spec.offsets[name]
            layers.append(owner[start : start + shape[0] * shape[1]].reshape(shape))
    return layers


def draw_owners(axes: Axes, layers: list[np.ndarray]) -> None:
    """Draw each layer's weights, one colour per cell; white is untrained, grey is shared."""
    from matplotlib.colors import to_rgb

    palette = np.array([to_rgb(colour) for colour in (*COLOURS, "0.75", "white")])
    axes.grid(visible=False)
    axes.set_axis_off()
    gap, left = 0.3, 0.0
    for number, layer in enumerate(layers, start=1):
        # Neurons are sorted by the cell that owns them, so that blocks are visible.
        rows = np.argsort(_rank(layer, axis=1), kind="stable")
        columns = np.argsort(_rank(layer, axis=0), kind="stable")
        picture = palette[layer[rows][:, columns]]
        axes.imshow(
            picture,
            extent=(left, left + 1, 0, 1),
            aspect="auto",
            interpolation="nearest",
            origin="lower",
        )
        axes.add_patch(_frame(left))
        text = f"layer {number}"
        axes.text(left + 0.5, -0.08, text, ha="center", va="top", fontsize=style().small)
        left += 1 + gap
    axes.set_xlim(-0.05, left - gap + 0.05)
    axes.set_ylim(-0.5, 1.05)


def _owners_legend(axes: Axes, cells: int, *, shared: bool) -> None:
    """Name the colours of the masks below them; ``shared``: whether some are of several cells."""
    from matplotlib.patches import Patch

    colours = {f"cell {i + 1}": COLOURS[i] for i in range(cells)}
    colours |= {"several cells": "0.75"} if shared else {}
    colours |= {"no cell": "white"}
    handles = [Patch(facecolor=c, edgecolor="0.3", label=t) for t, c in colours.items()]
    legend = axes.legend(
        handles=[Patch(alpha=0, label="weight trained by"), *handles],
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        fontsize=style().small,
        frameon=False,
        handlelength=1,
        ncols=len(handles) + 1,
    )
    legend.set_in_layout(False)  # it is as wide as both panels


def _frame(left: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((left, 0), 1, 1, fill=False, edgecolor="0.3", linewidth=0.6)


def _rank(layer: np.ndarray, axis: int) -> np.ndarray:
    """The cell of each neuron; constant over a layer that is not partitioned."""
    return np.asarray(layer.max(axis=axis))
