"""Draw the layers of the package to docs/figures/architecture.png: ``python -m tests.imports``."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tests.imports.graph import LAYERS, ROOT

PURPOSE = {
    "experiments": "one folder for each paper: settings, tables, figures",
    "benchmarks": "what is timed against what; not installed",
    "wirelessfl.cli": "commands, flags, help",
    "wirelessfl.results": "stored runs: compare, tables, figures",
    "wirelessfl.designs": "pilots, learning curves, designs",
    "wirelessfl.theory": "the papers' bounds",
    "wirelessfl.bridges": "clients and partitions of Flower",
    "wirelessfl.runs": "from settings to rows: build, price, run, resume, sweep, observe, check",
    "wirelessfl.config": "all settings, resolved once",
    "wirelessfl.engine": "clock, schedules, selection, sessions, servers, rounds, requests",
    "wirelessfl.air": "uplinks, radio, compression, price of a round",
    "wirelessfl.algorithms": "rules of clients and servers, assigners, warm starts",
    "wirelessfl.training": "executors, batches, evaluation, workers",
    "wirelessfl.models": "models, losses, metrics, flat parameters, submodels",
    "wirelessfl.data": "data sets, your own, splits",
    "wirelessfl.base": "errors, choices, checks, files, figure kit",
    "solvers": "a problem in, a Solution out",
    "channels": "networks, path loss, fading, loads and accesses, over-the-air sums",
}
COLOURS = {
    "wirelessfl.algorithms": "#cfe3f5",
    "wirelessfl.engine": "#fde0c8",
    "wirelessfl.air": "#cdeadf",
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
