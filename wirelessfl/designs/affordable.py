"""Rounds within a budget: pilots without a target need no more of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from wirelessfl.designs.curves.pilot import Pilot
from wirelessfl.designs.curves.fit import spread_targets
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.pilots.pilot_plan import FEWEST
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.designs.ways import Way
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.runs.result import RunResult

DRAWS = 4
"""Rounds of the sample, of which the means are taken."""
MARGIN = 1.5
"""Rounds of a pilot over those of the cheapest uplink, whose rounds with other masks cost less."""


def affordable_rounds(
    planner: Planner, goal: Goal, ways: Sequence[Way], clients: Sequence[int | None]
) -> Callable[[int, int], float] | None:
    """The rounds of H local steps and E edge rounds that a budget allows, and some more.

    They are those of the cheapest uplink with equal masks, times ``MARGIN``, rounded up to a power
    of 2, so that budgets that differ little have the same pilots.

    Args:
        planner: plans the rounds of an algorithm.
        goal: the goal.
        ways: the uplinks to choose from.
        clients: numbers of clients per round to choose from; None for all.

    Returns:
        A function of H and E; None if pilots end at a target, or if there is no budget.
    """
    if goal.target is not None:
        return None
    joules = goal.max_seconds is None  # otherwise clocks below the largest may save them
    limit = goal.max_client_joules if joules else goal.max_seconds
    if limit is None:
        return None
    assigner = planner.assigner
    if assigner.sized == "cells":
        planner = replace(planner, chosen=assigner.with_sizes(None))
    samples = []
    for count in clients:
        participation = replace(planner.participation, per_round=count)
        stream = planner.stream.child("affordable")
        samples.append(
            SampledRounds(
                replace(planner, stream=stream, participation=participation),
                DRAWS,
            )
        )

    def rounds(local_steps: int, edge_rounds: int) -> float:
        found = []
        for sample in samples:
            for way in ways:
                if way.deadline:
                    continue
                costs = sample.of(way.uplink, (local_steps,), (edge_rounds,), joules=joules)
                found.append(float(costs.means[1 if joules else 0].item()))
        least = float(np.nanmin(found))
        most = MARGIN * limit / least if least > 0 else math.inf
        return 2.0 ** math.ceil(math.log2(most)) if 0 < most < math.inf else most

    return rounds


def targets_within(runs: Sequence[RunResult]) -> list[float]:
    """Targets of the curve of such pilots, in increasing order.

    The highest one is reached by half of the pilots, and by three at least. More of them would
    reach only what the worst H and E reach within the budget, and all better designs would tie.

    Args:
        runs: the pilots.
    """
    pilots = [Pilot.of(run) for run in runs]
    low = float(np.median([pilot.best[pilot.rounds > 0][0] for pilot in pilots]))
    reached = sorted(float(pilot.best[-1]) for pilot in pilots)
    high = min(reached[-max(math.ceil(len(pilots) / 2), FEWEST)], 0.999)
    low = min(low, high - 0.5 * (high - min(pilot.best[0] for pilot in pilots)))
    return [float(target) for target in spread_targets(low, high)]
