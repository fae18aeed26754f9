"""Figures of the study of predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.axes import log_axes
from experiments.codesign.curves import LUO
from experiments.codesign.networks import NETWORKS
from experiments.codesign.samples import (
    BEST_PILOT,
    DESIGN,
    FEDTUNE,
    FIXED,
    FIXED_PAIR,
    JOULES,
    SECONDS,
    Sample,
    median,
    samples,
)
from experiments.codesign.searches import GUIDED, TPE
from experiments.codesign.stored import Found
from experiments.codesign.sweep import reached
from experiments.codesign.tables import excess
from experiments.labels import seeds_of
from wirelessfl.base.figures.curves import (
    COLOURS,
    NOT_REACHED,
    draw_bars,
    line_look,
    mark,
    new_figure,
)
from wirelessfl.base.figures.marks import AtLeast
from wirelessfl.results.panels import grid, legend
from wirelessfl.results.selection import DATA

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNITS = {SECONDS: "seconds", JOULES: "joules per client"}
SHORT = {
    DESIGN: "design",
    BEST_PILOT: "best pilot",
    LUO: "Luo et al.",
    GUIDED: "TPE, guided",
    TPE: "TPE",
    FEDTUNE: "FedTune",
    FIXED_PAIR: "H = 20, E = 5",
}


def scatter(record: Found) -> Figure | None:
    """Realised against predicted seconds and joules, one marker per design and sample."""
    every = samples(record)
    if not every:
        return None
    figure, axes = grid(2, height=2.9)
    for panel, objective in zip(axes, UNITS, strict=True):
        log_axes(panel)
        ends: list[float] = []
        for number, dataset in enumerate(dict.fromkeys(one.dataset for one in every)):
            made = [one.design(objective) for one in every if one.dataset == dataset]
            x = [getattr(d.predicted, objective) for d in made]
            y = [getattr(d.realised, objective) for d in made]
            look = line_look(number) | {"linestyle": "none"}
            panel.plot(x, y, label=DATA[dataset], **look)
            for predicted, real in zip(x, y, strict=True):
                if math.isinf(real):
                    mark(panel, predicted, NOT_REACHED, look["color"])
            ends += [one for one in (*x, *y) if math.isfinite(one)]
        line = [min(ends) / 1.3, max(ends) * 1.3]
        for ratio, dashes in ((1.0, "-"), (1.15, "--"), (0.85, "--")):
            ends_at = [end / ratio for end in line]
            panel.plot(line, ends_at, dashes, color="0.5", linewidth=0.8, zorder=1)
        panel.set_xlim(*line)
        panel.set_ylim(*line)
        panel.set_xlabel(f"predicted {UNITS[objective]}")
        panel.set_ylabel(f"realised {UNITS[objective]}")
        panel.set_title(f"designs for least {objective}")
    legend(figure, axes, _about(every), "between the dashes: predicted within 15 % of realised")
    return figure


def _about(every: Sequence[Sample]) -> str:
    seeds = seeds_of([len({one.seed for one in every})])
    return f"{len({one.network for one in every})} networks, {seeds}"


def regrets(record: Found) -> Figure | None:
    """Seconds above the best of the sweep, by method: all samples and their median."""
    by_method = {m: v for m, v in excess(record).items() if m in SHORT}
    if not by_method:
        return None
    figure, (panel,) = new_figure(height=2.6)
    most = 100 * max(v for values in by_method.values() for v in values if math.isfinite(v))
    for place, values in enumerate(by_method.values()):
        percent = sorted(min(100 * one, 1.6 * most) for one in values)
        y = [place - 0.3 + 0.6 * at / max(len(percent) - 1, 1) for at in range(len(percent))]
        panel.plot(percent, y, ".", color=COLOURS[0], markersize=3, alpha=0.7)
        panel.plot([median(percent)] * 2, [place - 0.4, place + 0.4], color="black", linewidth=1.5)
    panel.axvspan(1.3 * most, 2 * most, color="0.9", linewidth=0, zorder=0)
    panel.set_yticks(range(len(by_method)), [SHORT[method] for method in by_method])
    panel.invert_yaxis()
    panel.set_xscale("symlog", linthresh=10, linscale=1)
    panel.set_xticks([0, 5, 10, 30, 100])
    panel.xaxis.set_major_formatter("{x:g}")
    panel.set_xlim(-0.5, 2 * most)
    panel.set_xlabel("seconds above the best pair of the sweep (%)")
    every = samples(record)
    facts = f"{len(every)} samples", "line: median", "grey: target not reached"
    legend(figure, [panel], _about(every), *facts)
    return figure


def seconds(record: Found) -> Figure | None:
    """Seconds to the target of designs, of others' choices, and of the papers' fixed settings."""
    every = samples(record)
    sets = list(dict.fromkeys(one.dataset for one in every))
    if not sets:
        return None
    figure, axes = grid(len(sets))
    for panel, dataset in zip(axes, sets, strict=True):
        bars: dict[str, dict[str, list[float | None]]] = {}
        for network in NETWORKS:
            mine = [o for o in every if (o.dataset, o.network) == (dataset, network)]
            for one in mine:
                best = min(reached(one.design().sweep.seconds))
                for name, value in {
                    "best fixed setting": min(one.fixed().values()),
                    "H = 20, E = 5, design's uplink": _spent(one, FIXED),
                    "design": _spent(one, one.design().place),
                    "best of the sweep": best,
                }.items():
                    bars.setdefault(name, {}).setdefault(network, []).append(
                        value if math.isfinite(value) else None
                    )
        draw_bars(panel, bars, f"s to {DATA[dataset]}", [*NETWORKS])
        panel.set_title(DATA[dataset])
        panel.set_ylabel("")
    axes[0].set_ylabel("simulated seconds to the target")
    legend(figure, axes, _about(every))
    return figure


def _spent(sample: Sample, place: int) -> float:
    """Seconds of a pair over the design's uplink; a bound if its run ends before the target."""
    sweep = sample.design().sweep
    seconds = reached(sweep.seconds)[place]
    if math.isfinite(seconds):
        return seconds
    length = sample.trained[sweep.algorithm].lengths[place] or 0
    return AtLeast(length * reached(sweep.round_seconds)[place])
