"""Costs of rounds for other H and E: they are those of the run, however they are computed."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels.streams import Stream
from solvers import OverTheAir
from tests.wirelessfl.designs.known import config
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.designs.search import fixed_shares
from wirelessfl.runs.build.planners import planner_without_data

UPLINKS = {
    "slots": {"uplink": "tdma"},
    "ready": {"uplink": "tdma", "order": "ready"},
    "optimal": {"uplink": "ofdma", "allocation": "optimal"},
    "weighted": {"uplink": "ofdma", "energy_weight": 3.0},
    "deadline": {"uplink": "ofdma", "round_deadline": 2.0},
    "truncated": {"uplink": "aircomp", "threshold": 0.5, "antennas": 1},
}
LINKS = {"downlink_mbps": 20.0, "backhaul_mbps": 5.0}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("further", [{}, {"clients_per_round": 3}, LINKS], ids=str)
@pytest.mark.parametrize("uplink", UPLINKS)
def test_costs_are_those_of_the_plans(uplink, further):
    """Served together, in arrays, they equal the prices of rounds that are planned one by one."""
    settings = config(**UPLINKS[uplink], **further)
    planner = planner_without_data(settings)
    planner = replace(planner, stream=Stream(5).child("sample"))
    found = SampledRounds(planner, 2).of(planner.links.uplink, [1, 6], [1, 3])
    for number, h, e in np.ndindex(2, 2, 2):
        steps = replace(planner.settings, local_steps=[1, 6][h], edge_rounds=[1, 3][e])
        price = replace(planner, settings=steps).plan(number).price
        assert found.seconds[number, h, e] == pytest.approx(price.seconds.max(), rel=1e-12)
        assert found.joules[number, h, e] == pytest.approx(price.joules, rel=1e-12)
    assert (found.largest == 1).all()


@pytest.mark.parametrize(
    ("further", "draws"),
    [
        ({}, 7),
        ({"clients_per_round": 3}, 7),
        ({"select": "age", "clients_per_round": 3}, 7),
        ({"size_cap": 2.0, "mask_sizes": "optimized"}, 7),
        ({"uplink": "aircomp", "coherence": "round"}, 2),
    ],
    ids=str,
)
def test_more_rounds_start_with_those_of_the_sample(further, draws):
    """Also where participants or masks differ; not where each round needs beamformers."""
    planner = planner_without_data(config(**{"uplink": "tdma"} | further))
    uplink = planner.links.uplink
    sample = SampledRounds(planner, 2)
    few, many = (each.of(uplink, [2], [1]) for each in (sample, sample.wider(7, uplink)))
    assert len(np.unique(many.joules)) == draws
    np.testing.assert_allclose(many.seconds[:2], few.seconds, rtol=1e-12)
    np.testing.assert_allclose(many.joules[:2], few.joules, rtol=1e-12)


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_beamformers_are_found_once_for_each_draw(threshold, monkeypatch):
    """Also where rounds are planned one by one, for all H and E, and with other masks."""
    settings = config("hist", uplink="aircomp", threshold=threshold, antennas=2, coherence="round")
    planner = planner_without_data(settings)
    found, original = [], OverTheAir._beamformers

    def counted(access, draw, scales):
        found.append(len(draw.h))
        return original(access, draw, scales)

    monkeypatch.setattr(OverTheAir, "_beamformers", counted)
    costs = SampledRounds(planner, 2)
    first = costs.of(planner.links.uplink, [1, 6], [1, 3])
    same = costs.of(planner.links.uplink, [6], [3])
    other = costs.with_assigner(planner.assigner.design_sizes.fixed((0.75, 0.25)))
    other.of(planner.links.uplink, [1], [1, 2])
    assert sum(found) == 2
    np.testing.assert_array_equal(first.joules[:, 1:, 1:], same.joules)


@pytest.mark.parametrize("algorithm", ["hist", "hfedavg", "fedavg"])
def test_costs_times_rounds_are_those_of_the_run(algorithm, tmp_path):
    """With the draws of the run instead of a sample of their own."""
    flags = {"local_steps": 3, "rounds": 2, "uplink": "ofdma", "allocation": "optimal"}
    if algorithm == "fedavg":
        flags["cells"] = None
    else:
        flags["edge_rounds"] = 2
    settings = config(algorithm, **flags, out=tmp_path / "run")
    last = wirelessfl.run(settings).rows[-1]
    planner = planner_without_data(settings)
    edges = flags.get("edge_rounds", 1)
    found = SampledRounds(planner, 2).of(planner.links.uplink, [1, 3, 9], [1, edges])
    seconds, joules = found.means
    assert 2 * seconds[1, 1] == pytest.approx(last["sim_seconds"], rel=1e-9)
    assert 2 * joules[1, 1] == pytest.approx(last["joules"], rel=1e-9)


def test_missed_deadlines_take_forever():
    planner = planner_without_data(config(uplink="ofdma", round_deadline=2.0))
    limits = np.array([[2.0, 1e-5], [1e-5, 3.0]])
    found = SampledRounds(planner, 2).of(planner.links.uplink, [1, 4], [1, 2], deadline=limits)
    assert np.isinf(found.seconds[:, limits < 1]).all()
    np.testing.assert_allclose(found.seconds[0][limits > 1], limits[limits > 1], rtol=1e-9)


def test_fixed_masks_end_the_slowest_cell_soonest():
    """No other split of the neurons takes fewer seconds in the mean, by trying all of them."""
    settings = config(uplink="ofdma", allocation="optimal", size_cap=2.0, mask_sizes="optimized")
    planner = planner_without_data(settings)
    costs = SampledRounds(replace(planner, stream=Stream(7)), 3)
    costs = costs.with_assigner(planner.assigner.design_sizes.fixed(None))
    shares = fixed_shares(costs, planner.links.uplink, 400, 1)
    slowest = {}
    for first in range(1, 8):
        split = first / 8, 1 - first / 8
        sized = costs.with_assigner(planner.assigner.design_sizes.fixed(split))
        (who, draws), *_ = sized.rounds
        lengths = sized.submodels.lengths.astype(float)
        pricing = replace(
            sized.planner.pricing, settings=replace(planner.settings, local_steps=400)
        )
        pricing = replace(pricing, settings=replace(pricing.settings, edge_rounds=1))
        slowest[split] = pricing.node_seconds(draws, who, lengths[None]).max()
    assert shares != (0.5, 0.5)
    assert slowest[shares] == min(slowest.values())
