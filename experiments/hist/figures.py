"""The paper's figures, drawn from the rows of finished runs."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.studies import NAMES, Case, Results, first_reaching
from wirelessfl.figures import COLOURS, draw_bars, draw_curves, new_figure, save_figure
from wirelessfl.setup import build

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPLITS = {"noniid": "fully non-i.i.d.", "cell-iid": "cells i.i.d."}
MASKS = {"uniform": "uniform masks", "optimized": "optimized masks"}
TARGET = 0.8
FLOOR = 0.6  # lowest accuracy shown


def fig3(results: Results, out: Path) -> list[Path]:
    """Accuracy against transmitted MiB per client, one panel per split and learning rate."""
    shown = [case for case in results.where() if case["cells"] <= 6]
    panels = [pair for pair in _panels(results) if pair in {(c["split"], c["lr"]) for c in shown}]
    if not panels:
        return []
    figure, axes = new_figure(columns=len(panels), height=2.8)
    styles = sorted({case.label for case in shown})
    for place, (panel, (split, lr)) in enumerate(zip(axes, panels, strict=True)):
        cases = {c.label: results.rows(c) for c in shown if (c["split"], c["lr"]) == (split, lr)}
        curves = {label: cases[label] for label in styles if label in cases}
        draw_curves(
            panel,
            curves,
            "uplink_mib",
            floor=_floor(curves),
            target=TARGET,
            common=True,
            legend=place == 0,
            styles=styles,
        )
        panel.set_title(f"{SPLITS[split]}, learning rate {lr:g}", fontsize=9)
    return save_figure(figure, out / "fig3")


def fig4(results: Results, out: Path) -> list[Path]:
    """MiB per client to 80 % against the number of cells; no bar if the target is not reached."""
    panels = _panels(results)
    figure, axes = new_figure(columns=len(panels), height=2.4)
    for panel, (split, lr) in zip(axes, panels, strict=True):
        bars = {
            NAMES[algorithm]: {
                f"N = {case['cells']}": to_target(results, case, "uplink_mib")
                for case in results.where(split=split, lr=lr, algorithm=algorithm)
            }
            for algorithm in results.values("algorithm")
        }
        draw_bars(panel, bars, f"MiB per client to {TARGET:.0%}")
        panel.set_title(f"{SPLITS[split]}, learning rate {lr:g}", fontsize=9)
    return save_figure(figure, out / "fig4")


def fig5(results: Results, out: Path) -> list[Path]:
    """HIST with N = 3 against global rounds for several E and H, one panel per split."""
    splits = results.values("split")
    figure, axes = new_figure(columns=len(splits), height=2.8)
    for panel, split in zip(axes, splits, strict=True):
        cases = results.where(split=split)
        curves = {f"E = {c['edge_rounds']}, H = {c['local_steps']}": results.rows(c) for c in cases}
        draw_curves(panel, curves, "round", floor=_floor(curves))
        panel.set_title(SPLITS[split], fontsize=9)
    return save_figure(figure, out / "fig5")


def fig6(results: Results, out: Path) -> list[Path]:
    """Optimized and uniform masks against rounds and simulated seconds, and seconds to 80 %."""
    figure, axes = new_figure(columns=3, height=2.8)
    cells = 4 if results.where(cells=4) else results.values("cells")[0]
    shown = results.where(cells=cells)
    for panel, against in zip(axes, ("round", "sim_seconds"), strict=False):
        curves = {_mask_label(case): results.rows(case) for case in shown}
        draw_curves(
            panel,
            curves,
            against,  # type: ignore[arg-type]
            floor=_floor(curves),
            common=against == "round",
            target=TARGET,
            legend=against == "round",
        )
        panel.set_title(f"N = {cells}", fontsize=9)
    bars: dict[str, dict[str, Any]] = {}
    for case in sorted(results.where(), key=lambda case: case["cells"]):
        by_cells = bars.setdefault(_mask_label(case), {})
        by_cells[f"N = {case['cells']}"] = to_target(results, case, "sim_seconds")
    draw_bars(axes[2], bars, f"simulated seconds to {TARGET:.0%}")
    return save_figure(figure, out / "fig6")


def fig8(results: Results, out: Path) -> list[Path]:
    """Both partition schemes, drawn from the masks of a run, and the training curves of each."""
    schemes = {"alternate": "every second hidden layer: 1/N", "all": "all hidden layers: 1/N²"}
    # Masks need no training, so both are drawn even if runs are missing.
    cases = {c["partition"]: c for c in results.study.cases if c["cells"] == 4}
    drawn = [cases[scheme] for scheme in schemes]
    figure, axes = new_figure(columns=4, height=3.0)
    for panel, case, title in zip(axes, drawn, schemes.values(), strict=False):
        draw_owners(panel, owners(case))
        panel.set_title(title, fontsize=9)
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
    # The upper left is free: the curves start low.
    axes[3].legend(fontsize=8, frameon=False, loc="upper left", ncols=2)
    return save_figure(figure, out / "fig8")


def owners(case: Case) -> list[np.ndarray]:
    """The cell that trains each weight of the fully connected layers in the first global round.

    Returns:
        For each layer, [outputs, inputs]: the index of the cell; -1 if no cell trains the weight,
        -2 if several cells do.
    """
    parts = build(case.config(case.seeds[0]))
    submodels = parts.planner.plan(0).submodels
    assert submodels.index is not None
    owner = np.full(parts.model.objective.spec.size, -1)
    for cell, index in enumerate(submodels.index.numpy()):
        mine = index[index >= 0]
        owner[mine] = np.where(owner[mine] == -1, cell, -2)
    layers = []
    for name, shape in parts.model.objective.spec.shapes.items():
        if len(shape) == 2:
            start = parts.model.objective.spec.offsets[name]
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
        axes.text(left + 0.5, -0.08, f"layer {number}", ha="center", va="top", fontsize=7)
        left += 1 + gap
    axes.set_xlim(-0.05, left - gap + 0.05)
    axes.set_ylim(-0.25, 1.05)


def _frame(left: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((left, 0), 1, 1, fill=False, edgecolor="0.3", linewidth=0.6)


def _rank(layer: np.ndarray, axis: int) -> np.ndarray:
    """The cell of each neuron; constant over a layer that is not partitioned."""
    return np.asarray(layer.max(axis=axis))


def to_target(results: Results, case: Case, quantity: str) -> list[float]:
    """``quantity`` when 80 % accuracy is first reached, for each seed that reaches it."""
    hits = [first_reaching(rows, TARGET) for rows in results.rows(case)]
    return [hit[quantity] for hit in hits if hit is not None]


def _panels(results: Results) -> list[tuple[str, float]]:
    """Splits and learning rates with finished runs."""
    pairs = [(split, lr) for split in results.values("split") for lr in results.values("lr")]
    return [(split, lr) for split, lr in pairs if results.where(split=split, lr=lr)]


def _floor(curves: dict[str, list[list[dict[str, Any]]]]) -> float | None:
    """Lower end of the accuracy axis: ``FLOOR`` if the curves end well above it."""
    best = statistics.median(rows[-1]["accuracy"] for seeds in curves.values() for rows in seeds)
    return FLOOR if best > FLOOR + 0.05 else None


def _mask_label(case: Case) -> str:
    if case["algorithm"] == "hfedavg":
        return "HFedAvg"
    return f"HIST, {MASKS[case['mask_sizes']]}"
