"""Cost of coverage: duration of the fastest rounds with a given minimum coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from experiments.ra_fed.methods import setting_of
from experiments.studies import Case
from solvers import coverage_frontier
from wirelessfl.air.participants import draw_participants
from wirelessfl.base.figures.curves import COLOURS, new_figure
from wirelessfl.config import Config
from wirelessfl.models.submodels.budgets import levels_of
from wirelessfl.results.costs import markdown
from wirelessfl.results.panels import legend, room
from wirelessfl.runs.build.planners import planner_without_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDS = 100
RANGE = (10, 90)
"""Percentiles of the rounds, drawn as a shaded range."""
ABOUT = (
    "{rounds} rounds; with the full model {full:.2f} s on average. If the error falls with "
    "1 / sqrt(Γ* T Q), the number of rounds is proportional to 1 / Γ*, and the time is "
    "proportional to the last column.\n\n"
)


class Frontier(NamedTuple):
    """Durations of rounds in seconds.

    Args:
        seconds: [rounds, S], duration of the fastest round with coverage Gamma* = 1, ..., S.
        full: [rounds], duration with full models.
    """

    seconds: FloatArray
    full: FloatArray


def frontier(config: Config, rounds: int = ROUNDS) -> Frontier:
    """The frontier of each of a run's first rounds, for its channels and clients; no training."""
    planner = planner_without_data(config)
    levels, size = levels_of(planner.model.neurons()), planner.participation
    seconds, full = [], []
    for number in range(rounds):
        stream = planner.stream.child("round", number)
        who = draw_participants(planner.network, size.per_round, size.tracking, stream)
        draws = planner.network.draws(planner.stream.child("channel"), [number], who.clients)
        by_level = planner.pricing.client_seconds(draws, who, levels.parameters)
        seconds.append(np.asarray(coverage_frontier(by_level, levels.widths.T).value))
        full.append(by_level[:, -1].max())
    return Frontier(np.array(seconds), np.array(full))


def frontier_table(curve: Frontier) -> str:
    """One row per Gamma*. Seconds / Gamma* is proportional to the time implied by RA-Fed's rate."""
    mean, full = curve.seconds.mean(0), curve.full.mean()
    low, high = np.percentile(curve.seconds, RANGE, axis=0)
    head = ["Γ*", "mean seconds per round", f"{RANGE[0]}th to {RANGE[1]}th percentile"]
    head += ["relative to full model", "seconds / Γ*"]
    rows = [
        [
            str(i + 1),
            f"{mean[i]:.2f}",
            f"{low[i]:.2f} to {high[i]:.2f}",
            f"{100 * mean[i] / full:.0f} %",
            f"{mean[i] / (i + 1):.3f}",
        ]
        for i in range(len(mean))
    ]
    return ABOUT.format(rounds=len(curve.full), full=full) + markdown(head, rows)


def draw_frontier(curve: Frontier, case: Case) -> Figure:
    """Seconds per round against Gamma*: mean, shaded range, and the full model as a line."""
    figure, (panel,) = new_figure()
    coverage = np.arange(1, curve.seconds.shape[1] + 1)
    low, high = np.percentile(curve.seconds, RANGE, axis=0)
    panel.fill_between(coverage, low, high, color=COLOURS[0], alpha=0.2, linewidth=0)
    mean = curve.seconds.mean(0)
    panel.plot(coverage, mean, marker="o", color=COLOURS[0], label="fastest widths")
    full = curve.full.mean()
    panel.axhline(full, linestyle="--", color="black", linewidth=1, label="full model")
    panel.set_yscale("log")
    panel.set_xticks(coverage)
    room(panel)
    panel.yaxis.set_major_formatter("{x:g}")
    panel.set_xlabel("minimum coverage Γ* (clients)")
    panel.set_ylabel("seconds per round")
    rounds = f"mean, {RANGE[0]}th to {RANGE[1]}th percentile of {len(curve.seconds)} rounds"
    legend(figure, [panel], setting_of(case), f"{len(coverage)} clients per round", "TDMA", rounds)
    return figure
