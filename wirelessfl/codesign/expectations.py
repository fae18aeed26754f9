"""What the run of a design should take, by other draws of channels than those of the design."""

from __future__ import annotations

from typing import Any

import numpy as np

from wirelessfl.codesign.curves import RoundsCurve
from wirelessfl.codesign.design_choices import DesignChoice
from wirelessfl.codesign.goals import SLACK, Curve, Goal
from wirelessfl.codesign.merge_search import cell_rounds
from wirelessfl.codesign.merges import MOST, Merges
from wirelessfl.codesign.predicted import Interval, Prediction

EVALUATED = 4
"""Number of draws of the evaluation, relative to those of the design."""
STREAM = "design evaluation"


def predicted(goal: Goal, best: DesignChoice, draws: int) -> Prediction:
    """What the run of a design should take, by other draws than those of the design."""
    merges = None if best.buffer is None else _merges(best, draws)
    if merges is None:
        costs = best.family.sample(best.clients, EVALUATED * draws, STREAM)
        (seconds,), (joules,) = (mean.ravel() for mean in best.costs(costs).means)
    where = best.where(best.family.planner.network.clients)
    rounds = best.rounds
    low = high = rounds
    accuracy, curve = goal.target, best.family.curve
    if accuracy is None:
        if merges is None:
            rounds = float(goal.rounds(curve, np.array(seconds), np.array(joules), **where))
        else:
            rounds = merges.within(goal.max_seconds, goal.max_client_joules).item()
        low = high = rounds = max(float(np.floor(SLACK * rounds)), 1.0)
        accuracy = float(curve.accuracy(rounds, **where))
    else:
        low, high = (float(goal.whole(end)) for end in _ends(curve, accuracy, rounds, **where))
    ends = rounds, low, high
    if merges is None:
        times, energies = ([float(n * each) for n in ends] for each in (seconds, joules))
    else:
        found = [merges.totals(np.array(n)) for n in ends]
        times, energies = ([each[i].item() for each in found] for i in (0, 1))
    if goal.target is None and goal.max_seconds is not None:
        times = [goal.max_seconds] * 3  # the run ends in the middle of a round
    return Prediction(
        Interval(*ends),
        Interval(*times),
        Interval(*energies),
        accuracy,
        best.rounds * best.seconds,
        best.rounds * best.joules,
    )


def _merges(best: DesignChoice, draws: int) -> Merges:
    """The first merges of a design with asynchronous cells."""
    assert best.buffer is not None
    sample = cell_rounds(best.family, EVALUATED * draws, STREAM)
    costs = sample.of(best.way.uplink, [best.local_steps], [best.edge_rounds])
    return sample.merges(costs, best.buffer, MOST)


def _ends(curve: Curve, target: float, rounds: float, **where: Any) -> tuple[float, float]:
    """Ends of the curve's interval; the rounds themselves if it has none."""
    interval = getattr(curve, "interval", None)
    if interval is None or (isinstance(curve, RoundsCurve) and not curve.replicates):
        return rounds, rounds
    low, high = interval(target, **where)
    return float(low), float(high)
