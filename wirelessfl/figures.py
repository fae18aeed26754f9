"""Figures of runs: accuracy or loss against rounds, MiB or simulated seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Against = Literal["round", "uplink_mib", "sim_seconds"]
What = Literal["accuracy", "loss", "validation_accuracy", "validation_loss"]

LABELS: dict[Against, str] = {
    "round": "global round",
    "uplink_mib": "uplink traffic per client (MiB)",
    "sim_seconds": "simulated time (s)",
}
# Okabe-Ito palette, for colour-blind readers; dashes distinguish curves in greyscale prints.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
DASHES: list[Any] = ["-", (0, (5, 2)), (0, (3, 1, 1, 1)), (0, (1, 1))]
COLUMN_INCHES = 3.5  # column width of IEEE journals


def new_figure(columns: int = 1, height: float = 2.6) -> tuple[Figure, list[Axes]]:
    """Create a figure with ``columns`` panels side by side, each as wide as a journal column."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN_INCHES * columns, height), layout="constrained")
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for panel in axes:
        panel.grid(color="0.9", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
    return figure, axes


def draw_curves(
    axes: Axes,
    runs: Mapping[str, Sequence[Sequence[Row]]],
    against: Against,
    *,
    target: float | None = None,
    floor: float | None = None,
    common: bool = False,
    legend: bool = True,
    styles: Sequence[str] = (),
    median: bool = False,
    what: What = "accuracy",
) -> None:
    """Plot accuracy in percent, or loss, with one curve per label.

    Args:
        axes: axes to draw on.
        runs: by label, the rows of each seed's run; a curve shows the mean over the seeds, and the
            shaded area their range.
        against: field of the rows on the horizontal axis (mean over the seeds).
        target: accuracy in [0, 1] to mark with a horizontal line.
        floor: lowest accuracy shown, in [0, 1].
        common: whether the horizontal axis ends shortly after the end of the shortest curve.
        legend: whether to draw a legend.
        median: whether to draw only the median over the seeds, for figures with many curves.
        styles: all labels in a fixed order, so that a label has the same colour and dashes in
            all panels.
        what: field of the rows on the vertical axis.
    """
    ends = []
    accuracy = what.endswith("accuracy")
    order = list(styles) or list(runs)
    for label, seeds in runs.items():
        i = order.index(label)
        length = min(len(rows) for rows in seeds)
        x = np.mean([[row[against] for row in rows[:length]] for rows in seeds], axis=0)
        y = np.array([[row[what] for row in rows[:length]] for rows in seeds], dtype=float)
        y *= 100 if accuracy else 1
        ends.append(x[-1])
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        middle = np.median(y, axis=0) if median else y.mean(0)
        axes.plot(x, middle, color=colour, linestyle=dash, linewidth=1.4, label=label)
        if len(seeds) > 1 and not median:
            axes.fill_between(x, y.min(0), y.max(0), color=colour, alpha=0.15, linewidth=0)
    if target is not None:
        axes.axhline(100 * target, color="0.5", linewidth=0.8, linestyle=":")
    if common:
        axes.set_xlim(0, 1.2 * min(ends))
    if floor is not None:
        axes.set_ylim(bottom=100 * floor)
    axes.set_xlabel(LABELS[against], fontsize=9)
    shown = what.replace("_", " ") if what.startswith("validation") else f"test {what}"
    axes.set_ylabel(f"{shown} (%)" if accuracy else shown, fontsize=9)
    if legend:
        axes.legend(fontsize=8, frameon=False, loc="lower right" if accuracy else "upper right")


def save_figure(figure: Figure, path: Path) -> list[Path]:
    """Save a figure as .png and .pdf; return the two paths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = [path.with_suffix(suffix) for suffix in (".png", ".pdf")]
    for file in files:
        figure.savefig(file, dpi=200)
    return files


def draw_bars(axes: Axes, bars: Mapping[str, Mapping[str, Sequence[float]]], label: str) -> None:
    """Draw grouped bars: a bar shows the mean over the seeds, and a line the range.

    Args:
        axes: axes to draw on.
        bars: the seeds' values by series and group; an empty list is labelled "not reached".
        label: label of the vertical axis.
    """
    groups = list(dict.fromkeys(group for series in bars.values() for group in series))
    width = 0.8 / len(bars)
    for i, (series, by_group) in enumerate(bars.items()):
        for j, group in enumerate(groups):
            values = by_group.get(group, ())
            x = j + (i - (len(bars) - 1) / 2) * width
            named = series if j == 0 else None
            height = float(np.mean(values)) if values else 0.0
            axes.bar(x, height, width, color=COLOURS[i % len(COLOURS)], label=named)
            if len(values) > 1:
                axes.plot([x, x], [min(values), max(values)], color="0.2", linewidth=1)
            if group in by_group and not values:
                axes.text(x, 0, "not\nreached", rotation=90, fontsize=6, ha="center", va="bottom")
    axes.set_xticks(range(len(groups)), groups, fontsize=8)
    axes.set_ylabel(label, fontsize=9)
    axes.grid(visible=False, axis="x")
    axes.set_axisbelow(True)
    axes.margins(y=0.35)  # room for the legend
    axes.legend(fontsize=8, frameon=False)
