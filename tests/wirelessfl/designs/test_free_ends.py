"""Bounds on joules within a limit on mean seconds, against a search over the rounds' ends."""

import numpy as np
import pytest

from tests.solvers.training_rounds.networks import (
    drawn,
    least_joules,
    least_seconds,
    rounds,
    solved,
    splits,
)
from tests.wirelessfl.designs.known import FEW, Known, config
from wirelessfl.designs.design import design
from wirelessfl.designs.free_ends import FreeEnds

LOCAL, EDGE, TOTAL = [1, 3], [2], 3


def least_within(network, limit, weights, sizes, h, e, points=24):
    """Least cost with ends of two draws whose mean just keeps the limit, or is below it."""
    reached = float(rounds([h], [e])[0, 0])
    soonest = least_seconds(network, sizes, h).max(-1)
    second, joule = weights
    best = np.inf
    for part in (1.0,) if not second else (0.95, 1.0):
        mean = part * limit / reached / e
        low, high = soonest[0], 2 * mean - soonest[1]
        if high < low:
            continue
        for _ in range(4):  # the first draw's end; the second has the rest
            first = np.linspace(low, high, points)
            ends = np.maximum(np.stack([first, 2 * mean - first], -1), soonest * (1 + 1e-15))
            joules = e * least_joules(network, sizes, h, ends[..., None].repeat(2, -1))
            cost = reached * (second * e * mean + joule * joules.mean(-1))
            at = int(cost.argmin())
            low, high = first[max(at - 1, 0)], first[min(at + 1, points - 1)]
        best = min(best, float(cost.min()))
    return best


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("weights", "slack"), [((0.0, 1.0), 2.0), ((1.0, 200.0), 1.1)])
def test_the_least_joules_within_mean_seconds(weights, slack):
    network, reached = drawn(3), rounds(LOCAL, EDGE)
    network["gain_per_noise"] = network["gain_per_noise"] * np.array([1.0, 0.1])[:, None, None]

    def solve(second, at=None, sizes=None, limit=None):
        h, e = (slice(None),) * 2 if at is None else (slice(i, i + 1) for i in at)
        some = {} if sizes is None else {"cap": sizes, "lower": sizes}
        return solved(
            reached[h, e], **network, total=TOTAL, local_steps=LOCAL[h], edge_rounds=EDGE[e],
            weights=(second, weights[1]), max_seconds=limit, **some,
        )  # fmt: skip

    limit = slack * solved(
        reached, **network, total=TOTAL, local_steps=LOCAL, edge_rounds=EDGE
    ).objective  # fmt: skip
    strict = np.inf if weights[0] else solve(0.0, limit=limit).objective
    found = FreeEnds(solve, weights, limit, strict, np.full((2, 1), -np.inf))
    found.search(1e-2 * weights[1])
    least = min(
        least_within(network, limit, weights, sizes, h, e)
        for h in LOCAL for e in EDGE for sizes in splits(TOTAL, 2)
    )  # fmt: skip
    assert found.bound <= least * (1 + 1e-6)
    assert found.bound >= least * (1 - 1e-4)
    assert least * (1 - 1e-5) <= found.least <= least * (1 + 1e-4)
    assert found.plan.total_seconds == pytest.approx(limit, rel=1e-4)
    assert found.least < 0.99 * strict


@pytest.mark.thorough
def test_designs_with_a_limit_say_what_other_ends_could_save():
    few = FEW | {"local_steps": [5], "edge_rounds": [1], "uplinks": "ofdma"}
    goal = {"target": 0.5, "objective": (1.0, 500.0), "max_seconds": 0.5}
    solution = design(config("hfedavg"), **goal, curve=Known(), **few)
    choice = solution.value.choice
    assert solution.gap <= 1e-4
    assert 0.999 * 0.5 < choice.rounds * choice.seconds <= 0.5
    assert "one deadline" not in solution.message
