"""Why no design meets a goal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wirelessfl.codesign.design_choices import Alternatives, Family
from wirelessfl.codesign.goals import Curve, Goal


def unreachable(goal: Goal, families: Sequence[Family], found: Sequence[Alternatives]) -> str:
    """Why no design meets the goal."""
    if goal.target is None:
        return f"no design trains a round within {goal.limits}: raise the limit."
    reached = [each for each in found if np.isfinite(each.rounds).any()]
    if reached:
        return (
            f"no design reaches {goal.target:g} within {goal.limits}: the soonest takes "
            f"{min(_least(each.rounds * each.seconds) for each in reached):.4g} s, and the most "
            f"frugal {min(_least(each.rounds * each.joules) for each in reached):.4g} J per "
            "client. Raise the limit, or lower the target."
        )
    largest = max(_largest(family.curve) for family in families)
    return (
        f"target={goal.target:g} is not reached by any design: the largest accuracy that the "
        f"pilots have reached is {largest:.4g}. Lower target, or train longer pilots."
    )


def _least(values: Any) -> float:
    return float(np.nanmin(np.where(np.isfinite(values), values, np.inf)))


def _largest(curve: Curve) -> float:
    return float(max(getattr(curve, "targets", [0.0])))
