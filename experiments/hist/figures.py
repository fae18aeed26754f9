"""The paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.look import data_name, save, seeds_text
from experiments.paper import Draw
from experiments.studies import Case, Results
from wirelessfl.divergence import counted
from wirelessfl.figures import COLOURS, draw_bars, draw_curves, new_figure, style
from wirelessfl.results.names import NAMES
from wirelessfl.results.panels import grid, legend, same_limits
from wirelessfl.setup.planners import plan_without_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPLITS = {
    "noniid": "random label shards",
    "cell-iid": "i.i.d. across cells",
    "cell-shards": "label shards by cell",
}
MASKS = {"uniform": "uniform masks", "optimized": "optimized masks"}
TARGET = 0.8
FLOOR = 0.6  # lowest accuracy shown
CELLS = "N: number of cells"


def fig3(results: Results, out: Path) -> list[Path]:
    """Accuracy against transmitted MiB per client, one panel per split and step size."""
    shown = [case for case in results.where() if case["cells"] <= 6]
    panels = [pair for pair in _panels(results) if pair in {(c["split"], c["lr"]) for c in shown}]
    if not panels:
        return []
    figure, axes = grid(len(panels))
    styles = sorted({case.label for case in shown})
    for panel, (split, lr) in zip(axes, panels, strict=True):
        cases = {c.label: results.rows(c) for c in shown if (c["split"], c["lr"]) == (split, lr)}
        curves = {label: cases[label] for label in styles if label in cases}
        draw_curves(
            panel,
            curves,
            "uplink_mib",
            floor=_floor(curves),
            target=TARGET,
            common=True,
            legend=False,
            styles=styles,
        )
        panel.set_title(f"{SPLITS[split]}, step size {lr:g}")
    same_limits(axes)
    legend(figure, axes, *facts(results, shown), CELLS)
    return save(figure, results, out / "fig3")


def fig4(results: Results, out: Path) -> list[Path]:
    """MiB per client to 80 % against the number of cells, one panel per split and step size."""
    panels = _panels(results)
    figure, axes = grid(len(panels), height=2.3)
    for panel, (split, lr) in zip(axes, panels, strict=True):
        bars = {
            NAMES[algorithm]: {
                f"N = {case['cells']}": results.costs(case, "uplink_mib", TARGET)
                for case in results.where(split=split, lr=lr, algorithm=algorithm)
            }
            for algorithm in results.values("algorithm")
        }
        groups = [
            f"N = {n}" for n in sorted({c["cells"] for c in results.where(split=split, lr=lr)})
        ]
        draw_bars(panel, bars, f"MiB per client to {100 * TARGET:g} %", groups)
        panel.margins(y=0.1)
        panel.set_title(f"{SPLITS[split]}, step size {lr:g}")
    same_limits(axes)
    legend(figure, axes, *facts(results, results.where(), bars=True), CELLS)
    return save(figure, results, out / "fig4")


def periods(name: str) -> Draw:
    """HIST with N = 3 against global rounds for several E and H, one panel per split (Figure 5)."""

    def draw(results: Results, out: Path) -> list[Path]:
        splits = results.values("split")
        figure, axes = grid(len(splits))
        for panel, split in zip(axes, splits, strict=True):
            curves = {
                f"E = {case['edge_rounds']}, H = {case['local_steps']}": results.rows(case)
                for case in results.where(split=split)
            }
            draw_curves(panel, curves, "round", floor=_floor(curves), target=TARGET, legend=False)
            panel.set_title(SPLITS[split])
        same_limits(axes, x=True)
        legend(figure, axes, *facts(results, results.where()))
        return save(figure, results, out / name)

    return draw


def fig6(results: Results, out: Path) -> list[Path]:
    """Optimized and uniform masks against rounds and simulated seconds, and seconds to 80 %."""
    figure, axes = new_figure(columns=3, height=2.5)
    cells = 4 if results.where(cells=4) else results.values("cells")[0]
    shown = results.where(cells=cells)
    labels = list(dict.fromkeys(map(_mask_label, results.study.cases)))
    for panel, against in zip(axes, ("round", "sim_seconds"), strict=False):
        curves = {_mask_label(case): results.rows(case) for case in shown}
        draw_curves(
            panel,
            curves,
            against,  # type: ignore[arg-type]
            floor=_floor(curves),
            common=against == "round",
            target=TARGET,
            legend=False,
            styles=labels,
        )
        panel.set_title(f"N = {cells}")
    same_limits(axes[:2])
    bars: dict[str, dict[str, Any]] = {label: {} for label in labels}
    for case in results.where():
        bars[_mask_label(case)][f"N = {case['cells']}"] = results.costs(case, "sim_seconds", TARGET)
    groups = [f"N = {n}" for n in sorted({case["cells"] for case in results.where()})]
    draw_bars(axes[2], bars, f"simulated seconds to {100 * TARGET:g} %", groups)
    axes[2].margins(y=0.1)
    legend(figure, axes[:2], *facts(results, results.where(), bars=True), CELLS)
    axes[2].get_legend().remove()
    return save(figure, results, out / "fig6")


def fig8(results: Results, out: Path) -> list[Path]:
    """Both partition schemes, drawn from the masks of a run, and the training curves of each."""
    schemes = {"alternate": "every second hidden layer: 1/N", "all": "all hidden layers: 1/N²"}
    # Masks need no training, so both are drawn even if runs are missing.
    cases = {c["partition"]: c for c in results.study.cases if c["cells"] == 4}
    drawn = [cases[scheme] for scheme in schemes]
    figure, axes = new_figure(columns=2, height=2.1, rows=2)
    for panel, case, title in zip(axes, drawn, schemes.values(), strict=False):
        draw_owners(panel, owners(case))
        panel.set_title(title)
    _owners_legend(axes[0], int(drawn[0]["cells"]))
    curves = {
        "HFedAvg"
        if case["algorithm"] == "hfedavg"
        else f"{'1/N' if case['partition'] == 'alternate' else '1/N²'}, N = {case['cells']}": (
            results.rows(case)
        )
        for case in results.where()
    }
    for panel, against in zip(axes[2:], ("round", "uplink_mib"), strict=True):
        draw_curves(
            panel,
            curves,
            against,  # type: ignore[arg-type]
            floor=_floor(curves),
            common=against == "uplink_mib",
            legend=False,
        )
    same_limits(axes[2:])
    legend(figure, axes[2:], *facts(results, results.where()))
    return save(figure, results, out / "fig8")


def facts(
    results: Results, cases: Sequence[Case], bars: bool = False, target: float = TARGET
) -> list[str]:
    """Data set, target and seeds, for the line above the panels."""
    seeds = seeds_text(results, cases)
    if bars and " to " in seeds:
        seeds += " (no line: 1 seed)"
    return [data_name(cases), f"target {100 * target:g} %", seeds]


def owners(case: Case) -> list[np.ndarray]:
    """The cell that trains each weight of the fully connected layers in the first global round.

    Returns:
        For each layer, [outputs, inputs]: the index of the cell; -1 if no cell trains the weight,
        -2 if several cells do.
    """
    planner = plan_without_data(case.config(case.seeds[0])).planner
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


def _owners_legend(axes: Axes, cells: int) -> None:
    """Name the colours of the masks below them."""
    from matplotlib.patches import Patch

    colours = {f"cell {i + 1}": COLOURS[i] for i in range(cells)}
    colours |= {"several cells": "0.75", "no cell": "white"}
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


def _panels(results: Results) -> list[tuple[str, float]]:
    """Splits and step sizes with finished runs."""
    pairs = [(split, lr) for split in results.values("split") for lr in results.values("lr")]
    return [(split, lr) for split, lr in pairs if results.where(split=split, lr=lr)]


def _floor(curves: dict[str, list[list[dict[str, Any]]]]) -> float | None:
    """Lower end of the accuracy axis: ``FLOOR`` if the curves end well above it."""
    best = statistics.median(counted(rows[-1]) for seeds in curves.values() for rows in seeds)
    return FLOOR if best > FLOOR + 0.05 else None


def _mask_label(case: Case) -> str:
    if case["algorithm"] == "hfedavg":
        return "HFedAvg"
    return f"HIST, {MASKS[case['mask_sizes']]}"
