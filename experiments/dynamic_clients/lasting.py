"""How long the gains of Proposed last: accuracy differences against rounds after a transition."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.axes import difference_scale, difference_ticks
from experiments.dynamic_clients.measures import pairs, session_of
from experiments.dynamic_clients.methods import ALGORITHMS, SHOWN
from experiments.labels import data_name, seeds_text
from experiments.studies import Results
from wirelessfl.base.figures.curves import new_figure
from wirelessfl.base.rows import as_mean_value
from wirelessfl.results.costs import markdown, spread
from wirelessfl.results.panels import draw_points, legend, same_limits
from wirelessfl.results.selection import NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUMBERS = (1, 2, 3)
"""Transitions over which gains are averaged."""
SHOWN_AT = (0, 1, 2, 3, 5, 10, 20, 30, 50)
"""Rounds after a transition that are drawn."""
GAIN = (
    "Gain of Proposed in percentage points by round after a change of clients, mean over settings "
    "and transitions, ± the sample standard deviation over the seeds.\n\n"
)
BASELINES = ("previous", "average")


def points(results: Results) -> Figure:
    """Gain of Proposed against rounds after a transition, one panel per other warm start."""
    figure, axes = new_figure(len(BASELINES), height=2.4)
    for panel, over in zip(axes, BASELINES, strict=True):
        for place, algorithm in enumerate(ALGORITHMS):
            values = by_round(results, over, algorithm=algorithm)
            if values:
                places = {float(SHOWN_AT.index(t)): seeds for t, seeds in values.items()}
                draw_points(panel, places, NAMES[algorithm], place)
        difference_scale(panel, "y")
        difference_ticks(panel, "y", (-1, 0, 1, 3, 10, 30, 100))
        panel.set_xticks(range(len(SHOWN_AT)), [str(one) for one in SHOWN_AT])
        panel.set_xlabel("round after a change of clients")
        panel.set_ylabel("gain of Proposed (pp)")
        panel.set_title(f"over {SHOWN[over]}")
    same_limits(axes)
    for panel in axes:
        panel.set_ylim(-1, 100)
    cases = results.where()
    legend(figure, axes, data_name(cases), seeds_text(results, cases))
    return figure


def table(results: Results) -> str:
    """One row per algorithm and other warm start, one column per round."""
    rows = [
        [NAMES[algorithm], SHOWN[over], *(spread(seeds, places=2) for seeds in values.values())]
        for algorithm in ALGORITHMS
        for over in BASELINES
        if (values := by_round(results, over, algorithm=algorithm))
    ]
    head = ["algorithm", "gain over", *(f"round {t}" for t in SHOWN_AT)]
    return GAIN + markdown(head, rows)


def by_round(results: Results, over: str, **settings: Any) -> dict[int, list[float]]:
    """Gain of Proposed in points, by round of a session and seed: means over all transitions.

    Seeds that lack a run of a setting are left out.
    """
    gains: dict[int, dict[int, list[float]]] = {}
    both = pairs(results, over, **settings)
    for mine, theirs in both:
        others = {run.seed: run for run in results.of(theirs)}
        for run in results.of(mine):
            if run.seed not in others:
                continue
            for number in NUMBERS:
                ours, base = (_session(r.rows, session_of(number)) for r in (run, others[run.seed]))
                for t in SHOWN_AT:
                    if t in ours and t in base:
                        at = gains.setdefault(t, {}).setdefault(run.seed, [])
                        at.append(ours[t] - base[t])
    return {
        t: [statistics.mean(v) for v in by.values() if len(v) == len(both) * len(NUMBERS)]
        for t, by in gains.items()
    }


def _session(rows: Sequence[dict[str, Any]], session: int) -> dict[int, float]:
    """Accuracy in percent by round of a session."""
    return {r["session_round"]: 100 * as_mean_value(r) for r in rows if r["session"] == session}
