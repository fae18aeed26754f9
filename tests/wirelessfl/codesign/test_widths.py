"""Designs choose the widths of clients' submodels, and state them in their configuration."""

from dataclasses import replace

import numpy as np
import pytest

import wirelessfl
from channels.streams import Stream
from solvers import Status
from tests.wirelessfl.codesign.known import Known
from wirelessfl.codesign.fixed_widths import WidthLimits, client_widths, ratios_of
from wirelessfl.codesign.pilots import PilotChoices, chosen_points, planned
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.setup.planners import plan_without_data
from wirelessfl.submodels import dealt_capacities, mean_reciprocal
from wirelessfl.uplinks import UPLINKS

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
    planner = plan_without_data(settings).planner
    return SampledRounds(replace(planner, stream=Stream(5).child("sample")), draws)


def test_each_client_trains_its_width():
    """Client i keeps floor(w_i W) neurons in every round, also if some clients take part."""
    planner = plan_without_data(config(widths=WIDTHS, clients_per_round=3)).planner
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


def test_clients_are_as_fast_as_the_slowest():
    """Each is the widest that ends when the slowest client does, who has one of the widths."""
    costs = costs_of(config())
    uplink = UPLINKS.find("ofdma")()
    alone = {}
    limits = WidthLimits(0.125, np.inf)
    for ratio in ratios_of(costs, limits):
        narrow = costs.with_assigner(replace(costs.planner.assigner, capacities=(ratio,)))
        planner = replace(narrow.planner, links=replace(narrow.planner.links, uplink=uplink))
        settings = replace(planner.settings, local_steps=8)
        plans = [replace(planner, settings=settings).plan(number) for number in range(3)]
        alone[ratio] = np.mean([plan.price.served.service.seconds for plan in plans], axis=(0, 1))
    found = client_widths(costs, uplink, 8, limits)
    assert found
    for widths in found:
        ends = np.array([alone[width][client] for client, width in enumerate(widths)])
        last = ends.max()
        assert any(last == pytest.approx(seconds.max()) for seconds in alone.values())
        for client, width in enumerate(widths):
            wider = [ratio for ratio in alone if ratio > width]
            assert all(alone[ratio][client] > last for ratio in wider)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["ra-fed", "heterofl"])
def test_a_design_is_as_good_as_all_common_widths(algorithm):
    """No common width is better by its plans, and its run costs what the design says."""
    curve = Known(mask=4.0)
    found = wirelessfl.design(config(algorithm), target=0.5, curve=curve, **FEW)
    design = found.value
    table = design.config.tables["algorithm"]
    settings = design.config

    def score(given, widths, h):
        planner = plan_without_data(given).planner
        stream = Stream(given.run.seed).child("design")
        run = planner.run_stream or planner.stream
        planner = replace(planner, stream=stream, run_stream=run)
        seconds = np.mean([planner.plan(n).price.seconds.max() for n in range(FEW["draws"])])
        rounds = curve.rounds(0.5, h, 1, largest=np.mean(1 / np.array(widths)))
        return seconds * float(np.ceil(rounds))

    widths = table["widths"] or table["capacities"]
    own = score(settings, widths, settings.training.local_steps)
    assert found.objective == pytest.approx(own, rel=1e-9)
    assert found.status is Status.FEASIBLE
    common = (1.0,) if algorithm == "heterofl" else (1.0, 0.5, 0.125)
    for width in common:
        for h in FEW["local_steps"]:
            other = config(
                algorithm, capacities=(width,), local_steps=h, uplink="ofdma", allocation="optimal"
            )
            assert own <= score(other, (width,), h) * (1 + 1e-9)
    if algorithm == "heterofl":
        assert max(widths) == 1
    else:
        assert min(widths) < 1
        titles = [bought.chosen for bought in design.reports.bought]
        assert titles[-2:] == ["all but widths", "all"]
    assert "widths" in design.table()


def test_stated_widths_are_kept():
    curve = Known()
    for flags in ({"capacities": (1.0,)}, {"widths": WIDTHS}, {"min_coverage": 1}):
        found = wirelessfl.design(config(**flags), target=0.5, curve=curve, **FEW).value
        assert found.choice.masks == ""
        for name, value in flags.items():
            assert found.config.tables["algorithm"][name] == value


def test_pilots_with_narrower_widths_add_to_full_ones():
    settings = config(hidden=(8,))
    points = chosen_points(PilotChoices((1, 4, 9), (1,), widths=((0.125,), (1.0, 0.25))), 8)
    assert [point.widths for point in points] == [(1.0,)] * 3 + [(0.125,), (1.0, 0.25)]
    assert [point.largest for point in points[-2:]] == [8.0, 2.5]
    plan = planned(settings, local_steps=[1, 4, 9], widths=True)
    narrow = [wirelessfl.Pilot.of(AsTrained(each)).largest for each in plan.configs]
    assert narrow == [1.0] * 3 + [8.0, 3.75]
    for flags, why in (
        ({"budget": "flops"}, "budget=flops"),
        ({"masks": "partition"}, "partition"),
    ):
        with pytest.raises(ConfigError, match=f"narrower widths conflict with .*{why}"):
            planned(config(**flags), local_steps=[1, 4, 9], widths=True)
    with pytest.raises(ConfigError, match='conflict with algorithm "fedavg", in which no client'):
        planned(config("fedavg"), local_steps=[1, 4, 9], widths=True)


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


def test_no_width_is_below_the_narrowest():
    curve = Known(mask=0.0)  # narrower is always sooner
    found = wirelessfl.design(config(), target=0.5, curve=curve, narrowest=0.25, **FEW).value
    assert min(found.choice.shares) == 0.25
    for given, message in ((1.0, "narrowest is 1.0: give a width"), (0.0, "narrowest is 0.0")):
        with pytest.raises(ConfigError, match=message):
            wirelessfl.design(config(), target=0.5, curve=curve, narrowest=given, **FEW)
    stated = config(capacities=(1.0,))
    with pytest.raises(ConfigError, match=r"narrowest=0.25 has no effect: .* state them"):
        wirelessfl.design(stated, target=0.5, curve=curve, narrowest=0.25, **FEW)
