"""Pilots of a budget: as many rounds as it allows, and targets that tell designs apart."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.wirelessfl.designs.known import config
from wirelessfl.config import Config
from wirelessfl.designs import design
from wirelessfl.designs.design import MARGIN, affordable_rounds, targets_within
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.observed import Pilot
from wirelessfl.designs.pilot_plan import PilotRequest, planned
from wirelessfl.designs.ways import ways
from wirelessfl.runs.build.planners import planner_without_data

UPLINKS = [
    {"uplink": "tdma"},
    {"uplink": "ofdma"},
    {"uplink": "ofdma", "allocation": "optimal"},
    {"uplink": "ofdma", "energy_weight": 0.0},
]


def costs(uplink, steps, edges, count=4):
    """Mean seconds and joules of rounds that are planned one by one."""
    settings = config("hfedavg", **uplink, local_steps=steps, edge_rounds=edges)
    planner = planner_without_data(settings)
    prices = [planner.plan(number).price for number in range(count)]
    return np.mean([p.seconds.max() for p in prices]), np.mean([p.joules for p in prices])


@pytest.mark.parametrize("limit", [{"max_seconds": 3.0}, {"max_client_joules": 0.02}], ids=str)
def test_they_have_somewhat_more_rounds_than_the_cheapest_uplink_allows(limit):
    goal = Goal.of(None, None, limit.get("max_seconds"), limit.get("max_client_joules"))
    planner = planner_without_data(config("hfedavg"))
    rounds = affordable_rounds(
        planner, goal, ways(["tdma", "ofdma"], goal, planner.network), [None]
    )
    for steps, edges in ((1, 1), (8, 3)):
        each = np.array([costs(uplink, steps, edges) for uplink in UPLINKS])
        needed = next(iter(limit.values())) / each[:, int("max_client_joules" in limit)].min()
        found = rounds(steps, edges)
        assert math.log2(found).is_integer()
        assert needed < found < 2.5 * MARGIN * needed  # draws differ


def test_no_limit_applies_to_pilots_with_a_target():
    planner = planner_without_data(config("hfedavg"))
    goal = Goal.of(0.5, None, 2.0, None)
    assert affordable_rounds(planner, goal, ways(["tdma"], goal, planner.network), [None]) is None


def test_pilots_have_at_most_these_rounds_and_at_least_five():
    few = {"local_steps": [1, 4], "edge_rounds": [1, 2], "steps": 80}
    settings = Config.from_flags("hfedavg", cells=2, clients=4, hidden=(6,))
    found = planned(
        settings, PilotRequest(**few, most_rounds=lambda steps, edges: 32.0 / (steps * edges))
    )
    rounds = {
        (p.local_steps, p.edge_rounds): c.training.rounds
        for p, c in zip(found.points, found.configs, strict=True)
    }
    assert rounds == {(1, 1): 32, (1, 2): 16, (4, 1): 8, (4, 2): 5}


@pytest.mark.parametrize("count", [3, 4, 9])
def test_half_of_the_pilots_reach_the_highest_target_and_three_at_least(count, monkeypatch):
    scores = [np.linspace(0.1, 0.5 + 0.05 * k, 10) for k in range(count)]
    pilots = [Pilot(1, 1, 4, range(10), each) for each in scores]
    monkeypatch.setattr(design, "Pilot", SimpleNamespace(of=lambda run: run))
    targets = targets_within(pilots)
    assert np.all(np.diff(targets) > 0)
    assert sum(each[-1] >= targets[-1] - 1e-12 for each in scores) == max(3, (count + 1) // 2)
