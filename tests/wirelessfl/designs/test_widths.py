"""Designs keep the widths of clients' submodels: costs of their rounds, and their curves."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels.streams import Stream
from tests.wirelessfl.designs.known import Known
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.designs.sampled_rounds import SampledRounds
from wirelessfl.models.submodels import dealt_capacities, mean_reciprocal
from wirelessfl.runs.build.planners import planner_without_data

SMALL = {"clients": 4, "hidden": (16,), "batch_size": 8, "threads": 1, "cpu_hz": (2e8, 4e9)}
FEW = {"local_steps": [2, 8], "draws": 3, "uplinks": ["ofdma"]}
WIDTHS = (1.0, 0.5, 0.25, 0.75)
ACCESSES = {
    "slots": {"uplink": "tdma"},
    "ready": {"uplink": "tdma", "order": "ready"},
    "optimal": {"uplink": "ofdma", "allocation": "optimal"},
}


def config(algorithm="ra-fed", **flags):
    return Config.from_flags(algorithm, **(SMALL | flags))


def costs_of(settings, draws=3):
    planner = planner_without_data(settings)
    return SampledRounds(replace(planner, stream=Stream(5).child("sample")), draws)


def test_each_client_trains_its_width():
    """Client i keeps floor(w_i W) neurons in every round, also if some clients take part."""
    planner = planner_without_data(config(widths=WIDTHS, clients_per_round=3))
    for number in range(3):
        plan = planner.plan(number)
        kept = [int(16 * WIDTHS[client]) for client in plan.clients]
        assert plan.client_submodels.widths[:, 0].tolist() == kept
    with pytest.raises(ConfigError, match="widths has 2 entries, and there are 4 clients: give"):
        config(widths=(1.0, 0.5))


@pytest.mark.parametrize("further", [{"clients_per_round": 3}, {"downlink_mbps": 20.0}], ids=str)
@pytest.mark.parametrize("access", ACCESSES)
def test_costs_are_those_of_the_plans(access, further):
    """Served together, they equal the prices of rounds that are planned one by one."""
    costs = costs_of(config(widths=WIDTHS, **ACCESSES[access], **further), draws=2)
    planner = costs.planner
    assert costs.batched
    found = costs.of(planner.links.uplink, [1, 6], [1])
    for number, h in np.ndindex(2, 2):
        steps = replace(planner.settings, local_steps=[1, 6][h])
        price = replace(planner, settings=steps).plan(number).price
        assert found.seconds[number, h, 0] == pytest.approx(price.seconds.max(), rel=1e-12)
        assert found.joules[number, h, 0] == pytest.approx(price.joules, rel=1e-12)
    assert found.largest == pytest.approx(np.mean([1 / width for width in WIDTHS]))


def test_mean_reciprocal_is_that_of_dealt_widths():
    for clients in (1, 5, 12):
        dealt = dealt_capacities(WIDTHS, clients, Stream(3))
        assert mean_reciprocal(WIDTHS, clients) == pytest.approx((1 / dealt).mean())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "flags", [{"capacities": (1.0,)}, {"widths": WIDTHS}, {"min_coverage": 1}, {}]
)
def test_stated_widths_are_kept(flags):
    design = wirelessfl.design(config(**flags), target=0.5, curve=Known(), **FEW).value
    assert design.choice.masks == ""
    for name, value in flags.items():
        assert design.config.tables["algorithm"][name] == value


class AsTrained:
    """A run with these settings, and one row."""

    def __init__(self, settings):
        self.settings = dict(settings.used_tables())
        self.rows = [{"round": 1, "validation_accuracy": 0.5, "wall_seconds": 0.0}]


def test_curves_of_runs_with_widths_from_the_channels_need_their_mean():
    with pytest.raises(ConfigError, match=r"budget=fastest .* give Pilot.of\(run, largest="):
        wirelessfl.Pilot.of(AsTrained(config(budget="fastest", min_coverage=1)))
    given = AsTrained(config(budget="fastest", min_coverage=1))
    assert wirelessfl.Pilot.of(given, largest=2.0).largest == 2.0
