"""Draw the layers of the package to docs/figures/architecture.png: ``python -m tests.imports``."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tests.imports.graph import LAYERS, ROOT

PURPOSE = {
    "experiments": "one folder for each paper: settings, tables, figures",
    "benchmarks": "what is timed against what; not installed",
    "wirelessfl.cli": "commands",
    "wirelessfl.checking": "contract tests of users' classes",
    "wirelessfl.results": "read, compare, tabulate and plot stored runs",
    "wirelessfl.codesign": "pilots, learning curves, designs",
    "wirelessfl.runs": "run folders, rows, resume, sweeps",
    "wirelessfl.pricing": "prices and timelines, without training",
    "wirelessfl.observers": "hooks of a run: console, early stopping, trackers",
    "wirelessfl.setup": "creates all parts of a run from its settings",
    "wirelessfl.config": "all settings, resolved once",
    "wirelessfl.sessions": "sessions of changing clients",
    "wirelessfl.tasks": "async requests, several models",
    "wirelessfl.rounds": "rounds and cells of one model",
    "wirelessfl.selection": "clients of a round",
    "wirelessfl.server": "one model's server, for all regimes",
    "wirelessfl.schedules": "when",
    "wirelessfl.assignment": "clients of tasks",
    "wirelessfl.algorithms": "what",
    "wirelessfl.assigners": "which neurons",
    "wirelessfl.uplinks": "how",
    "wirelessfl.warm_starts": "initial models",
    "wirelessfl.theory": "bounds",
    "wirelessfl.training": "where: executors, objective, client rule",
    "wirelessfl.submodels": "neuron masks",
    "wirelessfl.models": "modules",
    "wirelessfl.data": "data sets, splits",
    "wirelessfl.failures": "lost uploads",
    "wirelessfl.losses": "loss functions",
    "wirelessfl.metrics": "test metrics",
    "solvers": "a problem in, a Solution out",
    "channels": "networks, path loss, fading, loads and accesses, over-the-air sums",
}
COLOURS = {
    "wirelessfl.algorithms": "#cfe3f5",
    "wirelessfl.schedules": "#fde0c8",
    "wirelessfl.uplinks": "#cdeadf",
    "wirelessfl.training": "#f3d9e8",
}
WIDTH, ROW, HEIGHT = 10.0, 0.52, 0.42


def draw() -> Figure:
    """Draw one row per layer and one box per folder."""
    rows = [[name for name in names if name in PURPOSE] for names in LAYERS]
    rows = [names for names in rows if names]
    figure = Figure(figsize=(WIDTH, ROW * len(rows) + 0.3))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, ROW * len(rows) + 0.3)
    axes.set_axis_off()
    for row, names in enumerate(rows):
        y = ROW * (len(rows) - 1 - row) + 0.2
        wide = (WIDTH - 0.7 - 0.1 * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            x = 0.15 + place * (wide + 0.1)
            colour = COLOURS.get(name, "#f4f4f4")
            shape = FancyBboxPatch(
                (x, y), wide, HEIGHT, "round,pad=0,rounding_size=0.06", fc=colour, ec="0.6", lw=0.7
            )
            axes.add_patch(shape)
            title, middle = f"{name.removeprefix('wirelessfl.')}/", x + wide / 2
            axes.text(middle, y + 0.28, title, ha="center", va="center", fontsize=8, weight="bold")
            axes.text(middle, y + 0.12, PURPOSE[name], ha="center", va="center", fontsize=7)
    right = WIDTH - 0.28
    axes.annotate(
        "",
        (right, 0.25),
        (right, ROW * len(rows)),
        arrowprops={"arrowstyle": "-|>", "color": "0.4"},
    )
    axes.text(right + 0.12, ROW * len(rows) / 2, "depends on", rotation=90, va="center", fontsize=8)
    return figure


if __name__ == "__main__":
    path = ROOT / "docs" / "figures" / "architecture.png"
    draw().savefig(path, dpi=160)
    print(f"drawn: {path.relative_to(ROOT)}")
