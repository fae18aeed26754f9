"""Figure 6: submodels whose sizes minimise the latency of a round, and caps on these sizes."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from experiments.evidence import differences, final_by_seed
from experiments.hist.figures import (
    CELLS,
    QUANTITIES,
    TARGET,
    Lines,
    draw_by_place,
    draw_cases,
    facts,
)
from experiments.hist.measures import throughout
from experiments.hist.tables import costs
from experiments.labels import SPREAD, costs_of
from experiments.studies import Case, Results
from experiments.tables import table_of
from wirelessfl.base.figures.curves import new_figure
from wirelessfl.results.costs import spread
from wirelessfl.results.panels import legend
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = {"uniform": "equal sizes", "optimized": "latency-optimised sizes"}
COSTS = ("sim_seconds", "joules")
FEW = 4
"""Number of cells of Figures 6a and 6b."""
EQUAL = 1.0
"""Cap with which all submodels are equally large."""


def convergence(results: Results, against: str) -> Figure:
    """Figures 6a and 6b: accuracy with four cells against rounds or seconds."""
    cases = {label(case): case for case in results.study.cases if case["cells"] == FEW}
    figure, (panel,) = new_figure(height=2.4)
    draw_cases(panel, results, cases, against, TARGET)
    legend(figure, [panel], *facts(results, [*cases.values()], spread=SPREAD))
    return figure


def fig6c(results: Results) -> Figure:
    """Seconds and joules to 80 % against the number of cells, for both sizes and HFedAvg."""
    figure, axes = new_figure(len(COSTS), 2.2)
    for panel, quantity in zip(axes, COSTS, strict=True):
        lines: Lines = {}
        for case in sorted(results.where(), key=lambda case: case["cells"]):
            line = lines.setdefault(label(case), {})
            line[case["cells"]] = costs_of(results, case, quantity, TARGET)
        axis = QUANTITIES[quantity]
        draw_by_place(panel, dict(sorted(lines.items())), CELLS, axis, log=True)
    legend(figure, axes, *facts(results, results.where()))
    return figure


def cap(results: Results) -> Figure:
    """Seconds, joules and accuracy against the cap on the sizes, one line per slowdown."""
    cases = by_slowdown(results)
    figure, axes = new_figure(len(COSTS) + 1, 2.2)
    about = "largest over equal size (cap)"
    for panel, quantity in zip(axes, COSTS, strict=False):
        lines = {
            text: {at: costs_of(results, case, quantity, TARGET) for at, case in line.items()}
            for text, line in cases.items()
        }
        draw_by_place(panel, lines, about, QUANTITIES[quantity])
        panel.set_ylim(bottom=0)
    lost = {
        text: {at: losses(results, case, line.get(EQUAL)) for at, case in line.items()}
        for text, line in cases.items()
    }
    draw_by_place(axes[-1], lost, about, "final accuracy minus\nthat of equal sizes (pp)")
    axes[-1].axhline(0, color="0.5", linewidth=0.8)
    legend(figure, axes, *facts(results, results.where()))
    return figure


def by_slowdown(results: Results) -> dict[str, dict[float, Case]]:
    """Cases by slowdown of half of the cells and by cap, in order."""
    lines: dict[str, dict[float, Case]] = {}
    for case in sorted(results.where(), key=_cap):
        lines.setdefault(f"HIST, slowdown {case['slowdown']:g}", {})[_cap(case)] = case
    return dict(sorted(lines.items()))


def losses(results: Results, case: Case, equal: Case | None) -> list[float | None] | None:
    """Final accuracies minus those with equal sizes, in points; None without a common seed."""
    reference = {} if equal is None else final_by_seed(results, equal)
    return [*differences(final_by_seed(results, case), reference).values()] or None


def cells_table(results: Results) -> str:
    """Figure 6c: simulated seconds per round, and costs to 80 %."""
    return table_of(
        sorted(results.where(), key=lambda case: case["cells"]),
        {
            "N": lambda case: str(case["cells"]),
            "run": label,
            "seeds": lambda case: str(len(results.of(case))),
            "simulated s per round": lambda case: f"{round_seconds(results, case):.2f}",
            **costs(results, TARGET),
        },
    )


def round_seconds(results: Results, case: Case) -> float:
    """Mean simulated seconds of a round."""
    ends = [rows[-1] for rows in results.rows(case)]
    return statistics.mean(end["sim_seconds"] / end["round"] for end in ends)


def caps_table(results: Results) -> str:
    """Caps: costs to 80 %, and accuracies at the end, over all rounds and minus equal sizes."""
    lines = by_slowdown(results)
    equal = {case.key: line.get(EQUAL) for line in lines.values() for case in line.values()}

    def lost(case: Case) -> list[float]:
        return [one for one in losses(results, case, equal[case.key]) or () if one is not None]

    return table_of(
        [case for line in lines.values() for case in line.values()],
        {
            "slowdown": lambda case: f"{case['slowdown']:g}",
            "sizes": lambda case: SIZES[case["mask_sizes"]],
            "cap": lambda case: f"{_cap(case):g}",
            "seeds": lambda case: str(len(results.of(case))),
            **costs(results, TARGET),
            "final accuracy (%)": lambda case: spread(results.finals(case)),
            "minus equal sizes (pp)": lambda case: spread(lost(case), 2),
            "mean accuracy over the rounds (%)": lambda case: spread(
                [throughout(run) for run in results.of(case)], 2
            ),
        },
    )


def label(case: Case) -> str:
    """The method, and how the sizes of submodels are chosen."""
    sizes = f", {SIZES[case['mask_sizes']]}" if case["mask_sizes"] else ""
    return NAMES[case["algorithm"]] + sizes


def _cap(case: Case) -> float:
    return EQUAL if case["mask_sizes"] == "uniform" else float(case["size_cap"])
