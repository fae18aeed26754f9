"""Optimized masks over optimal OMA, beside uniform masks and HFedAvg with the same bands."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from experiments.decided import oma
from experiments.decided.uplinks import OPTIMAL, SLOTS
from experiments.look import data_name
from experiments.report import markdown, reached, spread
from experiments.studies import Results
from wirelessfl.figures import draw_bars, save_figure
from wirelessfl.results.names import NAMES
from wirelessfl.results.panels import grid, legend, same_limits

OPTIMIZED = "HIST, optimized masks"


def table(results: Results) -> str:
    """Seconds to 80 % with optimal bands: optimized masks, uniform masks and HFedAvg."""
    figure = oma.beside(results, "fig6")
    return _table(results, oma.load() if figure.where() else [], figure)


def _table(results: Results, priced: Sequence[oma.Point], figure: Results) -> str:
    head = ["N", "run", "s per round, optimal bands", "s to 80 %, optimal bands"]
    head += ["s to 80 %, equal slots"]
    rows = []
    for cells in sorted({case["cells"] for case in results.study.cases}):
        for algorithm in ("hfedavg", "hist"):
            mine = oma.of(priced, study="fig6", algorithm=algorithm, cells=cells)
            found = {
                one: [p.seconds for p in oma.of(mine, uplink=one) if p.seconds is not None]
                for one in (SLOTS, OPTIMAL)
            }
            rounds = [
                p.seconds / p.rounds
                for p in oma.of(mine, uplink=OPTIMAL)
                if p.seconds is not None and p.rounds
            ]
            name = "HIST, uniform masks" if algorithm == "hist" else NAMES[algorithm]
            rows.append([str(cells), name, spread(rounds, 2) if rounds else "not run"])
            rows[-1].append(_shown(found[OPTIMAL]))
            rows[-1].append(_shown(found[SLOTS]))
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


def _shown(values: Sequence[float]) -> str:
    if not values:
        return "not run"
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ({min(values):.1f} to {max(values):.1f})"


def draw(results: Results, out: Path) -> list[Path]:
    """Seconds to 80 % by N: with optimal bands, and with equal slots as in the paper."""
    figure = oma.beside(results, "fig6")
    return _draw(results, oma.load() if figure.where() else [], figure, out)


def _draw(results: Results, priced: Sequence[oma.Point], figure: Results, out: Path) -> list[Path]:
    picture, axes = grid(2)
    groups = [f"N = {n}" for n in sorted({case["cells"] for case in results.study.cases})]
    for panel, uplink in zip(axes, (SLOTS, OPTIMAL), strict=True):
        bars: dict[str, dict[str, list[float | None]]] = {}
        for algorithm, name in (("hfedavg", "HFedAvg"), ("hist", "HIST, uniform masks")):
            mine = oma.of(priced, study="fig6", algorithm=algorithm, uplink=uplink)
            bars[name] = {
                group: [p.seconds for p in mine if f"N = {p.cells}" == group] for group in groups
            }
            bars[name] = {group: values for group, values in bars[name].items() if values}
        source = figure if uplink == SLOTS else results
        bars[OPTIMIZED] = {
            f"N = {case['cells']}": source.costs(case, "sim_seconds", oma.TARGET)
            for case in source.where(mask_sizes="optimized")
        }
        draw_bars(panel, bars, f"simulated seconds to {100 * oma.TARGET:g} %", groups)
        panel.set_title(uplink)
        panel.margins(y=0.1)
    same_limits(axes)
    legend(picture, axes, data_name(results.study.cases), "mean and range of the seeds")
    return save_figure(picture, out / "masks")
