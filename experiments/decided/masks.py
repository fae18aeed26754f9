"""Optimized masks over optimal OMA, beside uniform masks and HFedAvg with the same bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.decided import oma
from experiments.decided.uplinks import OPTIMAL, SLOTS
from experiments.labels import data_name
from experiments.studies import Results
from wirelessfl.results.costs import cost_text, markdown, reached, spread
from wirelessfl.results.panels import draw_points, grid, legend
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.targets import cost_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIMIZED = "HIST, optimized masks"


def table(results: Results) -> str:
    """Seconds to 80 % with optimal bands: optimized masks, uniform masks and HFedAvg."""
    figure = oma.beside(results, "fig6")
    return _table(results, oma.load() if figure.where() else [], figure)


def _table(results: Results, priced: Sequence[oma.Point], figure: Results) -> str:
    head = ["N", "run", "s per round, optimal bandwidth", "s to 80 %, optimal bandwidth"]
    head += ["s to 80 %, equal time slots"]
    rows = []
    for cells in sorted({case["cells"] for case in results.study.cases}):
        for algorithm in ("hfedavg", "hist"):
            mine = oma.of(priced, study="fig6", algorithm=algorithm, cells=cells)
            times = {one: [p.seconds for p in oma.of(mine, uplink=one)] for one in (SLOTS, OPTIMAL)}
            rounds = [
                p.seconds / p.rounds
                for p in oma.of(mine, uplink=OPTIMAL)
                if p.seconds is not None and p.rounds
            ]
            name = "HIST, uniform masks" if algorithm == "hist" else NAMES[algorithm]
            rows.append([str(cells), name, spread(rounds, 2) if rounds else "not run"])
            for one in (OPTIMAL, SLOTS):
                rows[-1].append(cost_text(times[one]) if times[one] else "not run")
        new = [rows_ for case in results.where(cells=cells) for rows_ in results.rows(case)]
        old = [r for c in figure.where(cells=cells, mask_sizes="optimized") for r in figure.rows(c)]
        second = [run[-1]["sim_seconds"] / run[-1]["round"] for run in new]
        rows.append(
            [
                str(cells),
                OPTIMIZED,
                spread(second, 2) if new else "not run",
                reached(new, oma.TARGET, "sim_seconds") if new else "not run",
                reached(old, oma.TARGET, "sim_seconds") if old else "not run",
            ]
        )
    return markdown(head, rows)


def draw(results: Results) -> Figure:
    """Seconds to 80 % relative to uniform masks and equal slots with the same seed, by N."""
    figure = oma.beside(results, "fig6")
    return _draw(results, oma.load() if figure.where() else [], figure)


def _draw(results: Results, priced: Sequence[oma.Point], figure: Results) -> Figure:
    picture, (panel,) = grid(1, height=2.6)
    every = sorted({case["cells"] for case in results.study.cases})
    for number, (name, seconds) in enumerate(_relative(results, priced, figure).items()):
        shift = 0.12 * (number - 1)
        draw_points(panel, {n: seconds.get(n) for n in every}, name, number, shift=shift)
    panel.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    panel.set_xticks(every, [f"N = {n}" for n in every])
    panel.set_ylabel(f"seconds to {100 * oma.TARGET:g} %, relative")
    about = "HIST", "1: uniform sizes, equal time slots"
    legend(picture, [panel], data_name(results.study.cases), *about)
    return picture


def _relative(
    results: Results, priced: Sequence[oma.Point], figure: Results
) -> dict[str, dict[int, list[float | None]]]:
    """By what is optimised and N, the seeds' seconds relative to uniform masks and equal slots."""
    ratios: dict[str, dict[int, list[float | None]]] = {
        name: {} for name in ("sizes", "bandwidth", "sizes and bandwidth")
    }
    sources = (figure, "sizes"), (results, "sizes and bandwidth")
    for cells in sorted({case["cells"] for case in results.study.cases}):
        mine = oma.of(priced, study="fig6", algorithm="hist", cells=cells)
        before = {p.seed: p.seconds for p in oma.of(mine, uplink=SLOTS) if p.seconds is not None}
        ratios["bandwidth"][cells] = [
            None if p.seconds is None else p.seconds / before[p.seed]
            for p in oma.of(mine, uplink=OPTIMAL)
            if p.seed in before
        ]
        for source, name in sources:
            for case in source.where(cells=cells, mask_sizes="optimized"):
                for run in source.of(case):
                    until = cost_to(run.rows, oma.TARGET).of("sim_seconds")
                    if run.seed in before:
                        value = until.cost / before[run.seed] if until.reached else None
                        ratios[name].setdefault(cells, []).append(value)
    return {name: {n: some for n, some in by.items() if some} for name, by in ratios.items()}
