"""Designs with asynchronous cells: simulated merges, their pilots, and the best of a grid."""

import itertools

import numpy as np
import pytest

import wirelessfl
from solvers import Status
from tests.wirelessfl.codesign.known import Known, config
from wirelessfl.codesign.curves import merges_curve
from wirelessfl.codesign.design import design
from wirelessfl.codesign.merges import CellCosts, CellRounds, Merges, merged
from wirelessfl.codesign.pilots import PilotChoices, chosen_points, planned
from wirelessfl.errors import ConfigError
from wirelessfl.pricing.price import price
from wirelessfl.runs.kept import kept_folder
from wirelessfl.setup.planners import plan_without_data

CELLS = {"cells": 3, "clients": 7, "hidden": (9,), "schedule": "buffered"}
TWO = {"cells": 2, "clients": 4}
SLOW = {"cpu_hz": (1e8, 2e9)}
STEADY = {**CELLS, **SLOW, "fading": "rician", "rician_k_db": 100.0}
"""Channels that hardly change: all rounds of a cell cost the same."""
FEW = {"local_steps": [2, 6], "edge_rounds": [1, 2], "draws": 2}
TDMA = {"slots": {"uplink": "tdma"}, "ready": {"uplink": "tdma", "order": "ready"}}


class Merging(Known):
    """The known curve, with rounds in proportion to 1 + 5/K."""

    def shape(self, *args, clients=None, **where):
        return super().shape(*args, **where) * (1 + 5 / np.asarray(clients))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("algorithm", "buffer", "radio"),
    [
        ("hfedavg", 1, {"coherence": "edge-round"}),
        ("hist", 2, {"uplink": "ofdma", "allocation": "optimal", "cpu_hz": (1e8, 2e9)}),
        ("hist", 3, {"uplink": "ofdma", "backhaul_mbps": 5.0, "downlink_mbps": 9.0}),
    ],
)
def test_merges_are_those_of_the_run(algorithm, buffer, radio):
    """Seconds and joules up to each merge, from the simulation of the run itself."""
    flags = {"buffer": buffer, "local_steps": 5, "edge_rounds": 2, "rounds": 6}
    settings = config(algorithm, **CELLS, **flags, **radio)
    rows = price(settings).rows
    rounds = CellRounds(plan_without_data(settings).planner, 6)
    costs = rounds.of(settings.uplink, [2, 5], [1, 2])
    seconds, joules = merged(costs, buffer, 6, np.zeros((1, 3), dtype=int))
    np.testing.assert_allclose(seconds[0, :, 1, 1], [row["sim_seconds"] for row in rows])
    np.testing.assert_allclose(joules[0, :, 1, 1], [row["joules"] for row in rows])


def test_cells_that_finish_at_the_same_time():
    """Cells of 1, 1 and 2 s: of those that finish at 2 s, the one that started first is first."""
    costs = CellCosts(*(np.array([1.0, 1.0, 2.0]).reshape(3, 1, 1, 1),) * 2)
    seconds, joules = merged(costs, 2, 4, np.zeros((1, 3), dtype=int))
    # {0, 1} at 1; {2, 0} at 2; {1, 0} at 3: 1 has waited since 2; {2, 0} at 4.
    assert seconds.ravel().tolist() == [0, 1, 2, 3, 4]
    assert joules.ravel().tolist() == [0, 2, 5, 7, 10]


def test_totals_between_and_after_the_simulated_merges():
    values = np.array([0.0, 1, 2, 4, 6]).reshape(5, 1, 1)
    merges = Merges(values, 10 * values)
    for rounds, seconds in ((0.5, 0.5), (2.5, 3.0), (4.0, 6.0), (7.0, 12.0), (np.inf, np.inf)):
        found = merges.totals(np.array(rounds))
        assert [each.item() for each in found] == [seconds, 10 * seconds]
        assert merges.within(seconds, None).item() == rounds
        assert merges.within(100.0, 10 * seconds).item() == min(rounds, 51.0)


def test_the_soonest_design_is_that_of_an_enumeration():
    """With channels that hardly change, the price of each configuration has the same seconds."""
    curve, found = Merging(work=4.0), {}
    for (title, uplink), h, b in itertools.product(TDMA.items(), [2, 6], [1, 3]):
        rounds = float(np.ceil(curve.rounds(0.1, h, 1, clients=7 * b / 3)))
        settings = config("hfedavg", **STEADY, **uplink, local_steps=h, edge_rounds=1, buffer=b)
        times = [row["sim_seconds"] for row in price(settings, int(rounds) + 1, joules=False).rows]
        found[title, h, b] = np.interp(rounds, range(len(times)), times)
    options = {"uplinks": "tdma", "local_steps": [2, 6], "edge_rounds": 1, "buffers": [1, 3]}
    solution = design(config("hfedavg", **STEADY), target=0.1, curve=curve, draws=2, **options)
    made, best = solution.value, min(found, key=found.get)
    assert (made.choice.local_steps, made.choice.buffer) == best[1:]
    assert solution.objective == pytest.approx(found[best], rel=1e-4)
    assert made.predicted.seconds.value == pytest.approx(found[best], rel=1e-4)
    assert (solution.status, np.isnan(solution.bound)) == (Status.FEASIBLE, True)
    assert "with asynchronous cells" in solution.message
    assert made.config.tables["schedule"] == {"name": "buffered", "buffer": best[-1]}
    assert "B, cells per merge" in made.table()
    assert made.facts()["chosen"]["buffer"] == best[-1]
    for place, h in enumerate([2, 6]):
        least = min(value for key, value in found.items() if key[1] == h)
        assert made.reports.heat[2][place, 0] == pytest.approx(least, rel=1e-4)
    with pytest.raises(ConfigError, match="asynchronous cells, whose merges are not redesigned"):
        made.closed_loop()


def test_energy_and_budgets():
    """Weights of energy, a limit on seconds, and the most accuracy within limits."""
    curve, settings = Merging(work=4.0), config("hfedavg", **STEADY | TWO, buffer=2)
    options = {"curve": curve, "uplinks": "ofdma", "draws": 2, "local_steps": 2, "edge_rounds": 1}
    soonest = design(settings, target=0.1, **options).value.predicted
    limit = 3 * soonest.seconds.value
    goal = {"target": 0.1, "objective": "joules", "max_seconds": limit, "buffers": 1}
    frugal = design(settings, **goal, **options).value
    assert 0.9 * limit < frugal.predicted.seconds.value < limit * 1.001
    assert frugal.predicted.joules.value < 0.5 * soonest.joules.value
    assert frugal.choice.buffer == 1
    budget = design(settings, max_seconds=soonest.seconds.value, **options).value
    assert budget.predicted.rounds.value == soonest.rounds.value
    assert budget.predicted.accuracy >= 0.1
    assert budget.predicted.seconds.value == pytest.approx(soonest.seconds.value)


def test_pilots_keep_the_network_unless_all_cells_are_merged(tmp_path):
    few = {"local_steps": [1, 3], "edge_rounds": [1, 2], "buffers": [2, 3], "count": 4}
    here, there = (
        planned(config(**CELLS, **SLOW, bandwidth_hz=hz, uplink="ofdma"), **few)
        for hz in (1e6, 2e6)
    )
    assert [point.buffer for point in here.points] == [3, 3, 3, 3, 2, 2, 2]
    names = [[kept_folder(own, tmp_path) for own in plan.configs] for plan in (here, there)]
    same = [one == other for one, other in zip(*names, strict=True)]
    assert same == [True] * 4 + [False] * 3
    assert [own.named("uplink") for own in here.configs[3:5]] == ["tdma", "ofdma"]
    for point, own in zip(here.points, here.configs, strict=True):
        steps = point.local_steps * point.edge_rounds * point.buffer / 3
        assert own.training.rounds == np.ceil(4000 / steps)
        assert own.schedule.buffer == point.buffer
    air = planned(config(**CELLS, uplink="aircomp"), snr_db=[10.0], **few)
    assert [own.named("uplink") for own in air.configs[3:]] == ["tdma"] + ["ofdma"] * 3 + [
        "aircomp"
    ] * 2
    several = chosen_points(PilotChoices((1, 2), (1, 2), buffers=(1, 2, 4)), 4)
    assert [point.buffer for point in several] == [4] * 4 + [2] * 3 + [1] * 3


def test_each_number_of_cells_per_merge_has_a_factor():
    """Merges of 6, 3 and 2 clients: 1, 5 and 3 times those of all, the latter with errors."""

    def pilot(h, e, clients, factor):
        rounds = np.arange(1, 400)
        scores = 1 - 1 / (1 + rounds * (h * e) ** 0.5 / (10 * factor))
        return wirelessfl.Pilot(h, e, clients, rounds, scores)

    whole = [pilot(h, e, 6, 1) for h in (1, 4, 9) for e in (1, 4)]
    fewer = [pilot(4, 1, 3, 5), pilot(2, 2, 2, 3 * 1.1), pilot(2, 2, 2, 3 / 1.1)]
    curve = merges_curve([*whole, *fewer], [0.7, 0.8], bootstrap=60)
    for clients, factor in ((6, 1), (3, 5), (2, 3)):
        rounds = curve.rounds(0.8, 4, 4, clients=clients)
        assert rounds == pytest.approx(10 * factor, rel=0.01)
        assert curve.accuracy(1.05 * rounds, 4, 4, clients=clients) == pytest.approx(0.8, rel=0.01)
    widths = {k: np.divide(*curve.interval(0.8, 4, 4, clients=k)[::-1]) for k in (6, 3, 2)}
    # The standard deviation is that of the two pilots, sqrt(2) log 1.1 with one degree of freedom.
    assert widths[3] == pytest.approx(np.exp(2 * 1.645 * 2**0.5 * np.log(1.1)), rel=0.2)
    assert widths[6] < widths[2] < widths[3]
    assert "clients" in curve.varies
    assert curve.coefficients["factor at K = 3"][-1] == pytest.approx(5, rel=0.01)
    # Ridge: factors (H E)^0.3 at H E = 1 and 16, with a deviation of s = 0.1 sqrt(2) elsewhere.
    apart = [pilot(1, 1, 3, 1), pilot(4, 4, 3, 16**0.3), *fewer[1:]]
    steeper = merges_curve([*whole, *apart], [0.7, 0.8], bootstrap=0)
    spread = np.log([1, 16**0.3, 1.1, 1 / 1.1])
    variance = (2 * (spread[1] / 2) ** 2 + 2 * spread[2] ** 2) / 2
    squares = 2 * (np.log(16) / 2) ** 2
    slope = 0.3 * squares / (squares + variance / 0.2**2)
    ratio = [
        float(steeper.rounds(0.8, h, 1, clients=3) / curve.rounds(0.8, h, 1, clients=6))
        for h in (1, 9)
    ]
    assert np.log(ratio[1] / ratio[0]) / np.log(9) == pytest.approx(slope, rel=0.05)
    with pytest.raises(ConfigError, match="per merge: choose one of these"):
        curve.rounds(0.8, 4, 4, clients=4)


def test_a_run_is_a_pilot(tmp_path):
    """Its global rounds are merges of a third of the clients."""
    few = {"rounds": 2, "buffer": 1, "local_steps": 1, "edge_rounds": 2, "batch_size": 8}
    settings = config("hfedavg", **CELLS, **few, validation_fraction=0.1)
    pilot = wirelessfl.Pilot.of(wirelessfl.run(settings))
    assert (pilot.local_steps, pilot.edge_rounds, pilot.clients) == (1, 2, pytest.approx(7 / 3))
    assert pilot.rounds.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("algorithm", "flags", "options", "message"),
    [
        ("hfedavg", CELLS, {"buffers": [1, 4]}, "buffers contains 4: the network has 3 cells"),
        ("hfedavg", CELLS, {"buffers": "2"}, "give integers >= 1, e.g. 1,2,4"),
        ("hist", CELLS, {"buffers": 1}, "buffer=1 conflicts with .hist., which reassigns"),
        ("hfedavg", CELLS, {"clients": 3}, "clients=3 conflicts with schedule buffered"),
        ("hfedavg", {}, {"buffers": 2}, "buffers=2 needs asynchronous cells"),
        ("fedavg", {"cells": None, "schedule": "buffered"}, {}, "known without training"),
        ("hfedavg", CELLS, {"among": ["fedavg"]}, "conflicts with|which with schedule 'buffered'"),
        ("hfedavg", CELLS, {"air_snr_db": [1.0]}, "whose pilots keep the network"),
    ],
)
def test_refusals(algorithm, flags, options, message):
    with pytest.raises(ConfigError, match=message):
        design(config(algorithm, **flags), target=0.5, curve=Merging(), **FEW | options)


def test_a_curve_of_one_buffer_serves_that_buffer_only():
    curve = Merging()
    curve.varies = ("local_steps", "edge_rounds")
    with pytest.raises(ConfigError, match="one number of cells per merge"):
        design(config("hfedavg", **CELLS), target=0.5, curve=curve, **FEW)
    found = design(config("hfedavg", **CELLS), target=0.5, curve=curve, buffers=2, **FEW)
    assert found.value.choice.buffer == 2
