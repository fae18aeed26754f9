"""Designs: the best of all candidates, their bound, and their configuration."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import wirelessfl
from channels import Network, Recorded
from channels.streams import Stream
from solvers import Status
from tests.wirelessfl.designs.known import FEW, Known, config
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.designs import certified, prediction
from wirelessfl.designs.design import design
from wirelessfl.designs.prediction import quantiles, totals
from wirelessfl.runs.build.planners import planner_without_data

GRID = list(itertools.product(FEW["local_steps"], FEW["edge_rounds"]))
UPLINKS = {
    "tdma, equal slots": {"uplink": "tdma"},
    "tdma, ready first": {"uplink": "tdma", "order": "ready"},
    "ofdma, equal bands": {"uplink": "ofdma"},
    "ofdma, optimal bands": {"uplink": "ofdma", "allocation": "optimal"},
}


def costs(settings: Config, name="design", draws=FEW["draws"], numbers=None):
    """Mean seconds and joules of a round of a configuration, from plans one by one."""
    planner = planner_without_data(settings)
    planner = replace(planner, stream=Stream(settings.run.seed).child(name))
    prices = [planner.plan(number).price for number in numbers or range(draws)]
    return np.mean([p.seconds.max() for p in prices]), np.mean([p.joules for p in prices])


def enumerated(algorithm, uplinks, **flags):
    """Mean seconds and joules of a round, by uplink, H and E."""
    return {
        (title, h, e): costs(config(algorithm, **uplink, **flags, local_steps=h, edge_rounds=e))
        for title, uplink in uplinks.items()
        for h, e in GRID
    }


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("further", [{}, {"backhaul_mbps": 5.0, "downlink_mbps": 9.0}], ids=str)
def test_the_soonest_design_is_that_of_an_enumeration(further):
    curve = Known()
    settings = config("hfedavg", **further)
    solution = design(settings, target=0.5, curve=curve, **FEW)
    seconds = {
        key: np.ceil(curve.rounds(0.5, *key[1:])) * cost[0]
        for key, cost in enumerated("hfedavg", UPLINKS, **further).items()
    }
    found, best = solution.value, min(seconds, key=seconds.get)
    assert (found.choice.local_steps, found.choice.edge_rounds) == best[1:]
    assert solution.objective == pytest.approx(seconds[best], rel=1e-6)
    assert solution.bound <= solution.objective * (1 + 1e-12)
    assert solution.status is Status.OPTIMAL
    alone = design(settings, target=0.5, curve=curve, uplinks=["ofdma"], **FEW)
    assert solution.bound <= alone.bound <= alone.objective
    assert alone.status is Status.OPTIMAL
    steps, edges, heat = found.reports.heat
    for h, e in GRID:
        least = min(value for key, value in seconds.items() if key[1:] == (h, e))
        assert heat[steps.index(h), edges.index(e)] == pytest.approx(least, rel=1e-6)


@pytest.mark.thorough(every=8)
def test_the_cheapest_design_is_that_of_an_enumeration():
    """Weighted seconds and joules: the bands, powers and clocks of each round serve them."""
    curve, weights = Known(), (1.0, 30.0)
    uplinks = UPLINKS | {"weighted": {"uplink": "ofdma", "energy_weight": 30.0 / 4}}
    solution = design(config("hfedavg"), target=0.5, objective=weights, curve=curve, **FEW)
    score = {
        key: np.ceil(curve.rounds(0.5, *key[1:])) * np.dot(weights, cost)
        for key, cost in enumerated("hfedavg", uplinks).items()
    }
    found, best = solution.value, min(score, key=score.get)
    assert ("weighted", found.choice.local_steps, found.choice.edge_rounds) == best
    assert solution.objective == pytest.approx(score[best], rel=1e-6)
    assert solution.status is Status.OPTIMAL
    assert found.config.uplink.energy_weight == 7.5


def test_bounds_hold_between_the_sizes_that_are_told_apart(monkeypatch):
    """With fewer of them, the bound is lower, but not above the design with all of them."""
    curve, flags = Known(mask=5.0), {"cycles_per_step": 1e8, "size_cap": 1.75}
    settings = config(**flags, mask_sizes="optimized", hidden=(24,))
    whole = design(settings, target=0.5, curve=curve, **FEW)
    monkeypatch.setattr(certified, "MOST", 3)
    few = design(settings, target=0.5, curve=curve, **FEW)
    assert whole.gap <= 1e-4
    assert few.bound < whole.bound


def test_masks_are_chosen_with_a_bound():
    """At least as good as all splits of the neurons, if these take the best bands."""
    curve = Known(mask=0.5)
    flags = {"cycles_per_step": 1e8, "size_cap": 1.75, "mask_sizes": "optimized"}
    flags |= {"backhaul_mbps": 5.0, "downlink_mbps": 1.0}  # both in proportion to the masks
    solution = design(config(**flags), target=0.5, curve=curve, **FEW)
    del flags["mask_sizes"], flags["size_cap"]
    splits = [(k / 8, 1 - k / 8) for k in range(1, 8)]
    found = {
        (split, h, e): costs(
            config(
                **flags,
                **UPLINKS["ofdma, optimal bands"],
                mask_sizes="fixed",
                mask_shares=split,
                local_steps=h,
                edge_rounds=e,
            )
        )[0]
        * np.ceil(curve.rounds(0.5, h, e, largest=2 * max(split)))
        for split, h, e in [(split, *point) for split in splits for point in GRID]
    }
    assert solution.objective <= min(found.values()) * (1 + 1e-9)
    assert solution.bound <= min(found.values()) * (1 + 1e-9)
    assert solution.gap <= 1e-4
    chosen = solution.value.choice
    assert chosen.shares is not None
    assert solution.objective == pytest.approx(
        found[chosen.shares, chosen.local_steps, chosen.edge_rounds], rel=1e-6
    )


def test_predictions_are_costs_of_other_draws():
    curve = Known()
    found = design(config("hfedavg"), target=0.5, curve=curve, **FEW).value
    run = found.config
    seconds, joules = costs(run, "design evaluation", 4 * FEW["draws"])
    rounds = np.ceil(curve.rounds(0.5, run.training.local_steps, run.training.edge_rounds))
    assert found.predicted.rounds.value == pytest.approx(rounds)
    assert found.predicted.seconds.value == pytest.approx(rounds * seconds, rel=1e-9)
    assert found.predicted.joules.value == pytest.approx(rounds * joules, rel=1e-9)
    assert run.run.predicted == found.predicted.numbers
    assert run.data.validation_fraction == 0.1
    assert (run.evaluation.target, run.evaluation.stop_at_target) == (0.5, True)
    assert Config.from_toml(found.save("design.toml")) == run


@pytest.mark.parametrize("bootstrap", [0, 10])
def test_predictions_have_intervals_if_the_curve_has(bootstrap):
    rounds = np.arange(1, 80)
    runs = [
        wirelessfl.Pilot(h, e, 4, rounds, 1 - 1 / (1 + rounds * (h * e) ** 0.5 / (4 + h % 3)))
        for h, e in GRID
    ]
    curve = wirelessfl.fit_rounds(runs, [0.8], form="diminishing", bootstrap=bootstrap)
    found = design(config("hfedavg"), target=0.8, curve=curve, **FEW).value
    low, value, high = (getattr(found.predicted.rounds, end) for end in ("low", "value", "high"))
    where = found.config.training.local_steps, found.config.training.edge_rounds
    assert value == math.ceil(curve.rounds(0.8, *where))
    if bootstrap:
        assert (low, high) == tuple(np.ceil(curve.interval(0.8, *where)))
        assert low < high
    else:
        assert low == value == high
        assert " to " not in found.table().partition("90 % interval")[2].partition("pilot")[0]


class Certain(Known):
    """A known curve whose intervals have no width."""

    def draws(self, target, **where):
        return np.full(10, self.rounds(target, **where))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("goal", [{"target": 0.1}, {"max_client_joules": 0.2}], ids=str)
def test_intervals_and_quantiles_cover_the_channels(goal, monkeypatch):
    """Runs with other channels are within; heavy tails of one antenna make them wide."""
    settings = config("hfedavg", antennas=1, layout="disc", radius_m=400)
    few = {"local_steps": [12], "edge_rounds": [1], "draws": 8}
    curve = Certain(work=10.0)
    found = design(settings, curve=curve, uplinks=["tdma"], **goal, **few).value
    number = int(found.predicted.rounds.value)
    sample = found.choice.family.sample(None, 2, "others")
    sample = sample.wider(200 * number, found.choice.way.uplink)
    costs = found.choice.costs(sample)
    seconds, joules = (each.reshape(200, number).sum(1) for each in (costs.seconds, costs.joules))
    monkeypatch.setattr(prediction, "MOST_ROUNDS", 100)
    assert len(prediction._rounds(found.choice, sample.first(2), 10**6, costs)) == 100
    for (_, low, high), runs in zip(found.predicted[1:3], (seconds, joules), strict=True):
        assert np.mean((low <= runs) & (runs <= high)) == pytest.approx(0.9, abs=0.08)
        assert high > 1.5 * low
    parts = [np.mean(seconds <= value) for value in found.predicted.quantiles]
    assert parts == pytest.approx([0.1, 0.5, 0.9], abs=0.12)
    assert found.facts()["predicted"]["seconds_quantiles"] == [*found.predicted.quantiles]
    assert f"50 % {found.predicted.quantiles[1]:.4g}" in found.table()


@pytest.mark.thorough
def test_a_fade_that_dominates_the_mean_is_named():
    """Client 2 in draw 5 of 8: the block that all samples of these channels have."""
    gain_db = np.full((8, 4), -90.0)
    gain_db[5, 2] = -150.0
    few = {"local_steps": [12], "edge_rounds": [1], "draws": 8, "uplinks": ["ofdma"]}
    links = Recorded(10 ** (gain_db / 20)[..., None] + 0j).links
    network = Network([0, 0, 1, 1], cpu_hz=1e9, bandwidth_hz=1e6, **links)
    settings = Config.from_flags("hfedavg", hidden=(8,), batch_size=8, threads=1)
    few |= {"target": 0.5, "curve": Known()}
    told = []
    found = design(settings, objective=(1.0, 1.0), network=network, on_note=told.append, **few)
    seconds, joules = found.value.predicted.dominant
    choice = found.value.choice
    for one, cost in ((seconds, choice.seconds), (joules, choice.joules)):
        assert (one.sample, one.client, one.draw, one.draws) == ("the design", 2, 5, 8)
        assert one.value == pytest.approx(cost)
        assert one.share == pytest.approx(1 - one.without / one.value)
        assert one.share > 0.5
        assert str(one) in found.value.table()
        assert str(one) in told
    assert found.value.facts()["predicted"]["dominant_draws"][0]["client"] == 2
    few["uplinks"] = ["tdma"]
    late = settings.changed(cutoff_seconds=0.1)
    cut = design(late, network=network, on_note=told.append, **few).value
    whole = design(settings, network=network, on_note=told.append, **few).value
    assert cut.predicted.seconds.value < whole.predicted.seconds.value / 2
    assert whole.predicted.dominant
    network = replace(network, **Recorded(np.full((8, 4, 1), 10**-4.5 + 0j)).links)
    assert not design(settings, network=network, **few).value.predicted.dominant


@pytest.mark.parametrize("statistic", ["median", 0.9])
def test_the_least_quantile_is_that_of_an_enumeration(statistic):
    """Of the total of R rounds, each of which is one of the sampled ones."""
    part = {"median": 0.5}.get(statistic, statistic)
    settings = config("hfedavg", antennas=1, layout="disc", radius_m=400)
    few = FEW | {"uplinks": ["tdma"], "draws": 2}
    solution = design(settings, target=0.5, curve=Known(), statistic=statistic, **few)
    assert (solution.status, solution.backend) == (Status.FEASIBLE, "enumeration")
    exact = {}
    for uplink in ({"uplink": "tdma"}, {"uplink": "tdma", "order": "ready"}):
        for h, e in GRID:
            run = config(
                "hfedavg",
                antennas=1,
                layout="disc",
                radius_m=400,
                local_steps=h,
                edge_rounds=e,
                **uplink,
            )
            one, two = (costs(run, draws=2, numbers=[n])[0] for n in range(2))
            rounds = int(np.ceil(Known().rounds(0.5, h, e)))
            second = stats.binom.ppf(part, rounds, 0.5)  # rounds of the slower kind
            exact[uplink.get("order"), h, e] = (rounds - second) * min(one, two) + second * max(
                one, two
            )
    choice = solution.value.choice
    chosen = choice.way.settings.get("order"), choice.local_steps, choice.edge_rounds
    assert solution.objective == pytest.approx(exact[chosen], rel=0.03)
    assert exact[chosen] <= min(exact.values()) * 1.05
    expected = solution.value.predicted
    assert expected.seconds.value == expected.quantiles[{0.5: 1, 0.9: 2}[part]]
    number = int(choice.rounds)
    sample = choice.family.sample(None, 2, prediction.STREAM).wider(2 * 64, choice.way.uplink)
    joules = choice.costs(sample).joules.ravel()
    runs = Stream(3).generator().choice(joules, (4000, number)).sum(1)
    assert expected.joules.value == pytest.approx(np.quantile(runs, part), rel=0.03)
    name = "median" if part == 0.5 else "90 % quantile"
    assert f"least seconds to 0.5, {name} over draws" in solution.value.table()


def test_totals_are_sums_of_draws():
    """Of 1 and 3 in two rounds: 2, 4 and 6 with probabilities 1/4, 1/2, 1/4."""
    costs = np.array([[1.0, 10.0], [3.0, 30.0]])
    found = totals(np.full(4000, 2.0), costs, Stream(1))
    values, counts = np.unique(found, axis=0, return_counts=True)
    assert values.tolist() == [[2, 20], [4, 40], [6, 60]]
    assert counts / 4000 == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    wide = totals(np.full(4000, 100.0), costs, Stream(1), uncertain=True)
    assert wide[:, 0].std() > 5 * totals(np.full(4000, 100.0), costs, Stream(1))[:, 0].std()
    never = totals(np.array([2.0, np.inf]), np.array([[1.0], [np.inf]]), Stream(2))
    assert never[1] == np.inf
    assert not np.isnan(never).any()
    most = quantiles(
        np.array([[2.0, np.inf]]),
        costs[:, :, None].swapaxes(1, 2)[..., :1].repeat(2, 2),
        0.9,
        Stream(1),
    )
    assert most.tolist() == [[6.0, np.inf]]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.thorough
def test_least_joules_end_in_time():
    """The joules of a limit fall as it grows, and the limit is used up."""
    spent = []
    few = FEW | {"local_steps": [2, 5], "edge_rounds": [1], "draws": 2}
    for limit in (0.3, 0.6):
        goal = {"target": 0.5, "objective": "joules", "max_seconds": limit}
        solution = design(config("hfedavg"), **goal, curve=Known(), **few)
        found = solution.value
        assert 0.98 * limit < found.predicted.design_seconds <= limit * (1 + 1e-9)
        assert found.predicted.design_joules == pytest.approx(solution.objective)
        spent.append(solution.objective)
    assert spent[1] < spent[0] / 2


def test_the_most_accuracy_within_seconds_is_that_of_an_enumeration():
    curve = Known()
    solution = design(config("hfedavg"), max_seconds=0.5, curve=curve, **FEW)
    score = {
        key: curve.accuracy(np.floor(0.5 / cost[0]), *key[1:])
        for key, cost in enumerated("hfedavg", UPLINKS).items()
    }
    best = max(score, key=score.get)
    found = solution.value
    assert (found.choice.local_steps, found.choice.edge_rounds) == best[1:]
    assert solution.objective == pytest.approx(score[best], rel=1e-9)
    assert found.config.training.max_seconds == 0.5
    assert found.config.evaluation.target is None
    assert "accuracy" in found.table()


def test_designs_that_all_reach_the_highest_accuracy_differ_in_what_they_need_for_it():
    curve = Known(targets=(0.1, 0.2))
    settings = config("hfedavg")
    found = design(settings, max_seconds=2.0, curve=curve, **FEW).value
    seconds = {
        key: np.ceil(curve.rounds(0.2, *key[1:])) * cost[0]
        for key, cost in enumerated("hfedavg", {n: UPLINKS[n] for n in [*UPLINKS][:2]}).items()
    }
    assert max(seconds.values()) < 2.0
    slots = design(settings, max_seconds=2.0, curve=curve, uplinks=["tdma"], **FEW).value
    for each in (found, slots):
        assert each.predicted.seconds.value == 2.0
        assert "0.2 is the highest accuracy of the learning curve" in each.table()
    chosen = slots.choice
    assert chosen.tie == pytest.approx(min(seconds.values()) / 2.0, rel=1e-9)
    assert found.choice.tie <= chosen.tie


@pytest.mark.parametrize("every", [1, 4])
def test_rounds_are_whole_and_evaluated(every):
    """The bound is that of the rounds after which the run can end."""
    curve, settings = Known(), config("hfedavg", eval_every=every)
    solution = design(settings, target=0.5, curve=curve, uplinks="ofdma", **FEW)
    choice = solution.value.choice
    needed = curve.rounds(0.5, choice.local_steps, choice.edge_rounds)
    assert choice.rounds == solution.value.predicted.rounds.value == every * -(-needed // every)
    assert choice.rounds > needed
    assert solution.objective == pytest.approx(choice.rounds * choice.seconds, rel=1e-12)
    assert solution.status is Status.OPTIMAL


@pytest.mark.thorough
def test_both_limits_are_kept():
    limits = {"max_seconds": 0.5, "max_client_joules": 0.01}
    few = FEW | {"local_steps": [2, 5], "edge_rounds": [1], "draws": 2}
    both = design(config("hfedavg"), **limits, curve=Known(), **few)
    alone = design(config("hfedavg"), max_seconds=0.5, curve=Known(), **few)
    assert both.objective <= alone.objective + 1e-9
    costs = both.value.choice
    assert costs.rounds * costs.seconds <= 0.5 * (1 + 1e-9)
    assert costs.rounds * costs.joules <= 0.01 * (1 + 1e-9)


def test_the_better_algorithm_and_number_of_clients_are_chosen():
    curves = {"hist": Known(), "hfedavg": Known(work=1000.0)}
    found = design(
        config(),
        target=0.5,
        curve=curves,
        among=["hfedavg", "hist"],
        clients=[2, 4],
        local_steps=[2, 5],
        edge_rounds=[1, 2],
        draws=2,
    ).value
    assert found.choice.family.algorithm == "hist"
    names = [name for name, _ in found.reports.runners_up]
    assert {"algorithm", "clients", "H or E"} <= set(names)
    assert found.config.named("algorithm") == "hist"
    table = found.table()
    assert "clients per round" in table
    assert len(found.plot().axes) == 3
    front = [(c.rounds * c.seconds, c.rounds * c.joules) for c in found.reports.front]
    assert front == sorted(front)
    assert all(a[1] > b[1] for a, b in itertools.pairwise(front))
    assert found.facts()["bought"]["all"]["algorithm"] == "hist"


FOUR_BITS = "hfedavg+uplink-compression=quantisation+uplink_compression_bits=4"


@pytest.mark.parametrize(("work", "chosen"), [(1.0, FOUR_BITS), (1e4, "hfedavg")])
def test_bits_of_uploads_are_chosen_by_what_they_save_and_cost(work, chosen):
    """With equal curves few bits are faster, and with a much slower one they are not."""
    curves = {"hfedavg": Known(), FOUR_BITS: Known(work=work * Known().work)}
    given = {"local_steps": [2, 5], "edge_rounds": [1], "draws": 2, "uplinks": ["tdma"]}
    slow = config("hfedavg", bandwidth_hz=1e4)
    found = design(slow, target=0.5, curve=curves, among=[*curves], **given).value
    assert found.choice.family.algorithm == chosen
    few = found.config.uplink_compression
    assert (few.compression_bits if few else 32) == (4 if chosen == FOUR_BITS else 32)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("flags", "arguments", "message"),
    [
        ({}, {"target": 0.5, "among": ["hfedavg+sign"]}, "'sign' is not a setting with a value"),
        ({}, {}, "no target and no budget"),
        ({}, {"target": 0.5, "objective": "joules"}, "joules alone"),
        ({}, {"target": 0.95}, "the largest accuracy that the pilots have reached is 0.9"),
        ({}, {"target": "0.8"}, r"target is '0\.8', a string: give a number, such as 0\.8"),
        ({}, {"target": 1.5}, "give an accuracy > 0 and <= 1"),
        ({}, {"target": 0.5, "objective": "watts"}, "two weights"),
        ({}, {"target": 0.5, "objective": (0, 0)}, "not both 0"),
        ({}, {"max_seconds": 5.0, "objective": "seconds"}, "needs a target"),
        ({}, {"target": 0.5, "max_seconds": 1e-6}, "no design reaches 0.5 within 1e-06 s"),
        ({}, {"max_seconds": -1.0}, "max_seconds is -1"),
        ({}, {"target": 0.5, "local_steps": [0]}, "local_steps is"),
        ({}, {"target": 0.5, "clients": [9]}, "the network has 4 clients"),
        ({}, {"target": 0.5, "among": ["fedbuff"]}, "no rounds of H local steps"),
        ({}, {"target": 0.5, "among": ["hfedavg", "hist"]}, "one for each"),
        ({}, {"target": 0.5, "uplinks": ["fixed"]}, "not one that a design chooses"),
        ({}, {"target": 0.5, "air_snr_db": [5.0]}, "no effect without uplink 'aircomp'"),
        (
            {},
            {"target": 0.5, "uplinks": ["aircomp"], "air_snr_db": [5.0]},
            r"air_snr_db=\[5.0\] conflicts with curve",
        ),
        ({}, {"target": 0.5, "draws": 1}, "draws is 1"),
        ({}, {"target": 0.5, "statistic": "mode"}, "statistic is 'mode': give mean, median, or"),
        ({}, {"target": 0.5, "statistic": 1.0}, "statistic is 1.0: give"),
        ({}, {"target": 0.5, "statistic": True}, "statistic is True: give"),
        ({}, {"max_seconds": 1.0, "statistic": 0.9}, "statistic=0.9 needs a target"),
        (
            {"schedule": "buffered", "buffer": 1},
            {"target": 0.5},
            "compare buffers by wirelessfl sweep --buffer",
        ),
        ({"local_epochs": 1.0}, {"target": 0.5}, "local_epochs"),
        ({"validation_fraction": 0.0}, {"target": 0.5}, "never to test data"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(flags, arguments, message):
    among = arguments.get("among")
    curve = Known() if among != ["fedbuff"] else {"fedbuff": Known()}
    with pytest.raises(ConfigError, match=message) as error:
        design(config("hfedavg", **flags), **{**FEW, **arguments}, curve=curve)
    assert "\n" not in str(error.value)


def test_runs_without_rounds_are_refused():
    with pytest.raises(ConfigError, match="has no common rounds"):
        wirelessfl.design(Config.from_flags("fedast"), target=0.5)


def test_a_curve_without_masks_and_intervals_serves_cells_that_neurons_do_not_divide():
    scores = [1 - 1 / (1 + number / 9) for number in range(1, 40)]
    runs = [
        wirelessfl.Pilot(h, e, 6, range(1, 40), scores) for h, e in ((2, 1), (2, 3), (8, 1), (8, 3))
    ]
    curve = wirelessfl.fit_rounds(runs, [0.5, 0.7], form="power", bootstrap=0)
    settings = config("hist", cells=3, clients=6)
    found = design(settings, target=0.6, curve=curve, uplinks="tdma", **FEW).value
    assert (found.choice.masks, found.choice.largest) == ("equal", 1.0)
    assert found.predicted.rounds.low == found.predicted.rounds.high == found.choice.rounds


def test_a_design_of_channels_that_differ_over_the_band_takes_equal_shares():
    """The best of those uplinks by enumeration; sums over the air are refused."""
    wide = {"delay_spread_ns": 300.0, "subcarriers": 8}
    settings, curve = config("hfedavg", **wide), Known()
    best = design(settings, target=0.5, curve=curve, **FEW).value
    equal = {title: flags for title, flags in UPLINKS.items() if "optimal" not in title}
    seconds = {
        key: np.ceil(curve.rounds(0.5, *key[1:])) * cost[0]
        for key, cost in enumerated("hfedavg", equal, **wide).items()
    }
    fastest = min(seconds, key=seconds.get)
    assert (best.choice.local_steps, best.choice.edge_rounds) == fastest[1:]
    with pytest.raises(ConfigError, match='uplink "aircomp" as set needs channels that are flat'):
        design(settings, target=0.5, curve=curve, uplinks=["tdma", "aircomp"], **FEW)
    for name, value in (("power_loading", "water-filling"), ("rates", "mcs")):
        filled = config("hfedavg", uplink="tdma", **wide, **{name: value})
        with pytest.raises(ConfigError, match=f'{name}="{value}" conflicts with a design, whose'):
            design(filled, target=0.5, curve=curve, **FEW)
