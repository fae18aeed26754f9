"""``python -m experiments.allocation``: gaps of baselines to certified optima; table and figure."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from experiments import records
from experiments.allocation import resource_blocks
from experiments.allocation.networks import NETWORKS
from experiments.allocation.resource_blocks import Blocks
from experiments.allocation.study import FILE, GROUP, PROBLEMS, Gap, load, measure
from experiments.paper import exit_code
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import line_look, new_figure, save_figure, style, use_style
from wirelessfl.cli.parser import Parser
from wirelessfl.data import load_dataset
from wirelessfl.results.costs import markdown
from wirelessfl.results.panels import same_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "results" / "allocation.md"
PICTURE = DOCS / "figures" / "allocation.png"
GAPS = "<!-- gaps -->\n", "<!-- end of gaps -->"
BLOCKS = "<!-- resource blocks -->\n", "<!-- end of resource blocks -->"
LEAST = 1e-3
"""Smallest gap that the table shows, in percent."""
LINEAR = 0.1
"""Gaps below this are on a linear part of the axis, which is the same in all panels."""
TITLES = {
    "least seconds": "round time",
    "least seconds of a quarter": "round time with a quarter of the clients",
    "least seconds of four cells": "round time of four cells that split a model",
    "least joules": "energy of a round before a deadline",
    "seconds and joules": "weighted sum of round time and energy",
}
"""What is minimised, in the table and in titles of panels."""
NAMES = {
    "equal bands": "equal bandwidth",
    "equal slots": "equal time slots",
    "one by one": "sequential uplink",
    "random, equal bands": "random, equal bandwidth",
    "best channels, equal bands": "best channels, equal bandwidth",
    "best channels, best bands": "best channels, optimal bandwidth",
    "equal sizes, equal bands": "equal sizes, equal bandwidth",
    "best sizes, equal bands": "optimal sizes, equal bandwidth",
    "equal sizes, best bands": "equal sizes, optimal bandwidth",
    "equal bands, full power": "equal bandwidth, full power",
    "equal bands, best power": "equal bandwidth, optimal power",
    "equal bands, half power": "equal bandwidth, half power",
}
"""Baselines in the table and the figure, where they differ from the names in the stored gaps."""


def table(gaps: Sequence[Gap]) -> str:
    """One row per quantity and baseline, with the gaps in each network."""
    rows = []
    for quantity, baseline in dict.fromkeys((gap.quantity, gap.baseline) for gap in gaps):
        row = [TITLES[quantity], NAMES.get(baseline, baseline)]
        for network in NETWORKS:
            (gap,) = (
                one
                for one in gaps
                if (one.network, one.quantity, one.baseline) == (network, quantity, baseline)
            )
            row.append(f"{shown(gap.median)} ({shown(gap.low)} to {shown(gap.high)})")
        rows.append(row)
    return markdown(["minimised", "heuristic", *NETWORKS], rows)


def shown(percent: float) -> str:
    """A gap with two digits, or 0 below a thousandth of a percent."""
    if percent < LEAST:
        return "0"
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def draw(gaps: Sequence[Gap]) -> Figure:
    """One panel per quantity: the median gap of each baseline, and 90 % of the cells."""
    quantities = list(dict.fromkeys(gap.quantity for gap in gaps))
    figure, axes = new_figure(2, 2.4, rows=-(-len(quantities) // 2))
    for panel, quantity in zip(axes, quantities, strict=False):
        _panel(panel, [gap for gap in gaps if gap.quantity == quantity])
        panel.set_title(TITLES[quantity])
    for panel in axes[: len(quantities) : 2]:
        panel.set_ylabel("excess over the minimum (%)")
    same_limits(axes[: len(quantities)])
    for panel in axes[len(quantities) :]:
        panel.axis("off")
    axes[-1].legend(
        *axes[0].get_legend_handles_labels(),
        loc="center",
        frameon=False,
        fontsize=style().text,
        title="median, and 5th to 95th\npercentile of the cells",
        title_fontsize=style().text,
    )
    return figure


def _panel(panel: Axes, gaps: Sequence[Gap]) -> None:
    baselines = list(dict.fromkeys(gap.baseline for gap in gaps))
    for i, network in enumerate(NETWORKS):
        mine = [gap for gap in gaps if gap.network == network]
        places = [baselines.index(gap.baseline) + 0.13 * (i - 1) for gap in mine]
        middle = [gap.median for gap in mine]
        below = [gap.median - gap.low for gap in mine]
        above = [gap.high - gap.median for gap in mine]
        look = line_look(i) | {"linestyle": "none"}
        panel.errorbar(places, middle, [below, above], label=network, capsize=2, **look)
    panel.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
    ticks = [
        NAMES.get(one, one).replace(", ", ",\n").replace(" bandwidth", "\nbandwidth")
        for one in baselines
    ]
    panel.set_xticks(range(len(baselines)), ticks)
    panel.set_xlim(-0.5, len(baselines) - 0.5)
    panel.tick_params(axis="x", labelsize=style().small)


def page(gaps: Sequence[Gap], blocks: list[Blocks], text: str) -> str:
    """The text of the page with both tables."""
    for (begin, end), rows in ((GAPS, table(gaps)), (BLOCKS, resource_blocks.table(blocks))):
        before, first, rest = text.partition(begin)
        _, last, after = rest.partition(end)
        if not first or not last:
            raise ConfigError(f"{PAGE} needs a line {begin.strip()} and a line {end}.")
        text = f"{before}{begin}\n{rows}\n{end}{after}"
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Print the tables; with ``--make``, measure first and write file, page and figure."""
    parser = Parser(
        prog="python -m experiments.allocation",
        description="Print how far common rules of allocation are from the certified optimum.",
    )
    parser.add_argument(
        "--make", action="store_true", help="solve all cells again; write page and figure"
    )
    parser.add_argument(
        "--cells", type=int, default=PROBLEMS, metavar="N", help=f"cells per network ({PROBLEMS})"
    )
    parser.add_argument(
        "--blocks", action="store_true", help="train again with resource blocks; write the page"
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of MNIST's folder")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the figure")
    arguments = parser.parse_args(words)

    def act() -> int:
        if arguments.cells < GROUP:
            raise ConfigError(f"cells is {arguments.cells}: give {GROUP} or more.")
        whole = arguments.cells == PROBLEMS
        if arguments.blocks and not whole:
            raise ConfigError(
                f"cells is {arguments.cells}, and --blocks writes the page, which has {PROBLEMS}: "
                "leave out --cells or --blocks."
            )
        data = load_dataset("mnist", arguments.data_dir) if arguments.blocks else None
        console = Console(stderr=True)
        if arguments.make or not whole:
            with console.status("solving") if console.is_terminal else console:
                gaps = measure(arguments.cells)
        else:
            gaps = load()
        print(table(gaps))
        blocks = resource_blocks.load()
        if data is not None:
            with console.status("training") if console.is_terminal else console:
                blocks = resource_blocks.measure(data)
            records.save((one._asdict() for one in blocks), resource_blocks.FILE)
        print(resource_blocks.table(blocks))
        if (arguments.make and whole) or arguments.blocks:
            records.save((one._asdict() for one in gaps), FILE)
            text = page(gaps, blocks, PAGE.read_text(encoding="utf-8"))
            PAGE.write_text(text, encoding="utf-8")
        if arguments.out is not None or (arguments.make and whole):
            target = PICTURE if arguments.out is None else arguments.out / PICTURE.name
            with use_style("ieee"):
                for file in save_figure(draw(gaps), target):
                    if arguments.out is None and file.suffix == ".pdf":
                        file.unlink()
                    else:
                        print(f"drawn: {file}")
        return 0

    return exit_code(act)


if __name__ == "__main__":
    sys.exit(main())
