"""The closed loop: its decisions by the formula, what it learns from a run, and stored loops."""

import json
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest

import wirelessfl
from wirelessfl import ClosedLoop, Pilot, RoundSettings, fit_rounds
from wirelessfl.cli import main
from wirelessfl.codesign.grid_costs import Grid
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.redesign import Cost, Decision, SoFar

TARGETS = (0.5, 0.7, 0.8)
STEPS, EDGES = (1, 4, 16), (1, 2)


def accuracy(rounds, steps, edges, speed=0.05):
    """0.1 for the initial model, then a hyperbola; more steps help like their square root."""
    x = speed * np.asarray(rounds) * (steps * edges) ** 0.5
    return 1 - 0.9 / (1 + x)


def pilots(speed=0.05):
    rounds = np.arange(1, 120)
    return [Pilot(h, e, 6, rounds, accuracy(rounds, h, e, speed)) for h in STEPS for e in EDGES]


@pytest.fixture(scope="module")
def curve():
    return fit_rounds(pilots(), TARGETS, form="diminishing", bootstrap=20)


@dataclass(frozen=True)
class Known(ClosedLoop):
    """A closed loop that is told the cost of a round, by H and E."""

    price: tuple = (1.0, 0.1)

    def _costs(self, run, way, grid):
        base, each = self.price
        steps, edges = np.array(grid.local_steps)[:, None], np.array(grid.edge_rounds)
        seconds = base + each * steps * edges
        return seconds, 2 * seconds, np.ones(seconds.shape)


def so_far(decided, rounds, scores):
    """A run with these decisions, and a row after each round."""
    rows = []
    for number, score in enumerate(scores):
        now = [s for start, s in decided if start < max(number, 1)][-1]
        rows.append(
            {
                "round": number,
                "local_steps": now.local_steps,
                "edge_rounds": now.edge_rounds,
                "clients_per_round": 6,
                "validation_accuracy": float(score),
            }
        )
    decisions = [Decision(start, settings) for start, settings in decided]
    nothing = Cost(1.0, 1.0)
    return SoFar(rounds, rows, decisions, 6, True, lambda _: nothing, lambda _: None, {})


def loop_of(curve, **options):
    made = ClosedLoop.of(curve, 0.8, local_steps=STEPS, edge_rounds=EDGES)
    given = {each.name: getattr(made, each.name) for each in fields(made)}
    return Known(**given | {"error": 0.4} | options)


@pytest.mark.parametrize("price", [(1.0, 0.1), (0.1, 1.0), (5.0, 0.1)])
@pytest.mark.parametrize("objective", [(1.0, 0.0), (1.0, 3.0)])
def test_decisions_minimise_the_remaining_cost(curve, price, objective):
    """The formula written out, with the rounds of ``RoundsCurve``."""
    start = RoundSettings(4, 2)
    run = so_far([(0, start)], 8, accuracy(range(9), 4, 2))
    reached = run.rows[-1]["validation_accuracy"]
    assert 0.5 < reached < 0.8
    found = loop_of(curve, price=price, objective=objective, learn="none").decide(run)
    share = 1 - curve.rounds(reached, 4, 2) / curve.rounds(0.8, 4, 2)
    scores = {}
    for steps in STEPS:
        for edges in EDGES:
            left = share * curve.rounds(0.8, steps, edges)
            seconds = price[0] + price[1] * steps * edges
            scores[steps, edges] = left * (objective[0] * seconds + objective[1] * 2 * seconds)
    best = min(scores, key=scores.get)
    if scores[best] > 0.98 * scores[4, 2]:
        best = (4, 2)
    assert (found.settings.local_steps, found.settings.edge_rounds) == best
    seconds = price[0] + price[1] * best[0] * best[1]
    left = share * curve.rounds(0.8, *best)
    expected = {"rounds": left, "seconds": left * seconds, "joules": 2 * left * seconds}
    assert found.expected == pytest.approx(expected)


def test_before_the_first_target_rounds_grow_linearly_with_accuracy(curve):
    run = so_far([(0, RoundSettings(4, 2))], 1, [0.1, 0.3])
    found = loop_of(curve, learn="none", least_gain=0.9).decide(run)
    left = curve.rounds(0.8, 4, 2) - (0.3 - 0.1) / (0.5 - 0.1) * curve.rounds(0.5, 4, 2)
    assert found.expected["rounds"] == pytest.approx(float(left))


def test_a_run_that_is_slower_only_with_its_settings_leaves_them(curve):
    """Most steps are best by 6 %, until the run shows them to be four times as slow."""
    start, price = RoundSettings(16, 2), (1.0, 1 / 32)
    run = so_far([(0, start)], 40, accuracy(range(41), 16, 2, speed=0.01))
    stays = {
        learn: loop_of(curve, price=price, learn=learn).decide(run).settings == start
        for learn in ("none", "common", "local")
    }
    assert stays == {"none": True, "common": True, "local": False}


@pytest.mark.parametrize("speed", [0.02, 0.1])
def test_learning_improves_predictions(curve, speed):
    """The rounds that the run needs with its settings follow from its learning curve."""
    start, target = RoundSettings(4, 2), 0.8
    whole = (0.9 / (1 - target) - 1) / (speed * 8**0.5)
    done = int(whole / 2)
    run = so_far([(0, start)], done, accuracy(range(done + 1), 4, 2, speed))
    error = {}
    for learn in ("none", "common", "local"):
        found = loop_of(curve, learn=learn, least_gain=0.999).decide(run)
        error[learn] = abs(np.log(found.expected["rounds"] / (whole - done)))
    assert error["local"] == pytest.approx(error["common"])
    assert error["local"] < 0.7 * error["none"]


@pytest.mark.parametrize("learn", ["common", "local"])
def test_factors_are_those_of_the_gaussian_process(curve, learn):
    """Its posterior mean for two parts of a run, by the formula of two observations."""
    first, other = RoundSettings(4, 2), RoundSettings(16, 1)
    scores = [*accuracy(range(7), 4, 2), *accuracy(range(7, 19), 16, 1, speed=0.04)]
    loop = loop_of(curve, learn=learn)
    run = so_far([(0, first), (6, other)], 18, scores)
    variance, places = loop.error**2, np.log([[4, 2], [16, 1]])
    share = {"common": 0.0, "local": 0.5}[learn]

    def covariance(one, two):
        return variance * (1 - share + share * np.exp(-((one - two) ** 2).sum() / 2))

    def rounds(reached, *settings):
        if reached < 0.5:
            return (reached - 0.1) / 0.4 * curve.rounds(0.5, *settings)
        return curve.rounds(reached, *settings)

    ratios = [
        np.log(6 / (rounds(scores[6], 4, 2) - rounds(0.1, 4, 2))),
        np.log(12 / (rounds(scores[18], 16, 1) - rounds(scores[6], 16, 1))),
    ]
    shares = [6 / curve.rounds(0.8, 4, 2), 12 / curve.rounds(0.8, 16, 1)]
    noise = [0.25 / n + 0.04 * (1 / f - 1) for n, f in zip((6, 12), shares, strict=True)]
    a = covariance(places[0], places[0]) + noise[0]
    b = covariance(places[0], places[1])
    d = covariance(places[1], places[1]) + noise[1]
    weights = np.array([d * ratios[0] - b * ratios[1], a * ratios[1] - b * ratios[0]])
    weights /= a * d - b * b
    point = np.array([[1.0, 2.0, 6.0, 1.0, 0.0]])
    here = np.log([1, 2])
    expected = np.exp(sum(w * covariance(here, p) for w, p in zip(weights, places, strict=True)))
    found, _ = loop._factors(loop._segments(run), 0.1, point, point[0])
    assert found == pytest.approx([expected])


def test_segments_are_parts_with_equal_settings(curve):
    first, other = RoundSettings(4, 2), RoundSettings(16, 1)
    bands = replace(other, uplink={"allocation": "optimal"})
    scores = np.linspace(0.1, 0.7, 9)
    run = so_far([(0, first), (2, first), (4, other), (6, bands)], 8, scores)
    parts = loop_of(curve)._segments(run)
    assert [part.rounds.tolist() for part in parts] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8]]
    assert [part.settings[:2].tolist() for part in parts] == [[4, 2], [16, 1]]
    assert [part.reached for part in parts] == [scores[0], scores[4]]


def test_settings_stay_for_small_gains_and_at_the_target(curve):
    run = so_far([(0, RoundSettings(4, 2))], 8, accuracy(range(9), 4, 2))
    price = (5.0, 0.1)
    assert loop_of(curve, price=price, least_gain=0.0).decide(run).settings != run.settings
    assert loop_of(curve, price=price, least_gain=0.99).decide(run).settings == run.settings
    done = so_far([(0, RoundSettings(4, 2))], 2, [0.1, 0.9, 0.7])
    found = loop_of(curve).decide(done)
    assert (found.settings, found.expected["rounds"]) == (done.settings, 0.0)


def test_one_short_round_is_not_as_good_as_a_long_one_near_the_target(curve):
    """Just below the target, a difference of rounds is near 0 for all settings."""
    start = RoundSettings(16, 2)
    run = so_far([(0, start)], 8, [*accuracy(range(8), 16, 2), 0.7999])
    assert loop_of(curve, price=(1.0, 0.001), learn="none").decide(run).settings == start


def test_costs_are_those_of_planned_rounds(config, toy, curve):
    """Arrays over the grid, against rounds planned one by one; all draws are equal."""
    seen = []

    @dataclass(frozen=True)
    class Looks(ClosedLoop):
        def decide(self, run):
            grid, way = Grid([2, 5], [1, 3]), replace(run.settings, uplink={"order": "ready"})
            costs = self._costs(run, way, grid)
            planned = [
                run.cost(replace(way, local_steps=h, edge_rounds=e)) for h in (2, 5) for e in (1, 3)
            ]
            seen.extend([costs, planned])
            return run.settings

    made = ClosedLoop.of(curve, 0.8, local_steps=STEPS, objective=(1, 1), every=1)
    loop = Looks(**{each.name: getattr(made, each.name) for each in fields(made)})
    flags = {"rounds": 2, "fading": "rician", "rician_k_db": 90, "validation_fraction": 0.2}
    wirelessfl.run(config("hfedavg", **flags), data=toy, redesign=loop)
    (seconds, joules, largest), planned = seen[:2]
    assert seconds.ravel() == pytest.approx([cost.seconds for cost in planned], rel=1e-3)
    assert joules.ravel() == pytest.approx([cost.joules for cost in planned], rel=1e-3)
    assert (largest == 1).all()


def test_a_resumed_loop_needs_no_object_and_equals_an_uninterrupted_one(
    config, toy, same, halt_at, curve
):
    loop = ClosedLoop.of(
        curve,
        0.8,
        local_steps=STEPS,
        edge_rounds=EDGES,
        uplinks=[{}, {"name": "ofdma", "allocation": "optimal"}],
        every=2,
    )
    assert json.loads(json.dumps(loop.stored())) == json.loads(
        json.dumps(ClosedLoop.restored(json.loads(json.dumps(loop.stored()))).stored())
    )
    flags = {"rounds": 6, "edge_rounds": 2, "validation_fraction": 0.2, "lr": 0.02}
    whole = wirelessfl.run(config("hfedavg", **flags), data=toy, redesign=loop)
    assert len({(row["local_steps"], row["edge_rounds"]) for row in whole.rows}) > 1
    settings = config("hfedavg", **flags, checkpoint_seconds=0)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, redesign=loop, on_row=halt_at(3))
    same(wirelessfl.resume(settings.run.out, data=toy), whole)


def test_a_design_gives_its_loop(config, toy, curve):
    base = config("hfedavg", validation_fraction=0.2)
    found = wirelessfl.design(
        base, data=toy, target=0.8, curve=curve, local_steps=STEPS, edge_rounds=EDGES, draws=2
    ).value
    loop = found.closed_loop(2, learn="common")
    assert (loop.local_steps, loop.edge_rounds, loop.target) == (STEPS, EDGES, 0.8)
    assert {"name": "ofdma", "allocation": "optimal"} in loop.uplinks
    result = wirelessfl.run(found.config, data=toy, redesign=loop)
    assert result.config.given.redesign == loop.title


def test_the_loop_of_a_design_with_bands_powers_and_clocks_is_trained(config, toy, curve):
    """OFDMA with the least seconds: no other bands are sooner, and their settings conflict."""
    base = config("hfedavg", validation_fraction=0.2)
    found = wirelessfl.design(
        base, data=toy, target=0.8, curve=curve, uplinks=["ofdma"], local_steps=STEPS, draws=2
    ).value
    assert found.choice.way.saves
    loop = found.closed_loop(1)
    assert loop.uplinks == ({},)
    flags = found.config.given_tables()
    flags["training"] = dict(flags["training"]) | {"rounds": 2}
    assert len(wirelessfl.run(flags, data=toy, redesign=loop).rows) > 1


@pytest.mark.parametrize("learn", ["none", "common", "local"])
def test_a_run_as_predicted_stays_where_the_design_has_put_it(curve, learn):
    """The share of rounds that remains is common: it does not change what is the soonest."""
    price = (1.0, 0.1)
    whole = {
        (h, e): curve.rounds(0.8, h, e) * (price[0] + price[1] * h * e)
        for h in STEPS
        for e in EDGES
    }
    start = RoundSettings(*min(whole, key=whole.get))
    for rounds in (2, 6, 10):
        scores = accuracy(range(rounds + 1), start.local_steps, start.edge_rounds)
        run = so_far([(0, start)], rounds, scores)
        found = loop_of(curve, price=price, learn=learn, least_gain=0.0).decide(run)
        assert found.settings == start


def test_errors_of_savings_are_those_of_the_gaussian_process(curve):
    """Variance of the difference of two factors given a third: by the inverse of all covariances.

    The posterior precision of two values is their block of the inverse covariance.
    """
    loop = loop_of(curve)
    run = so_far([(0, RoundSettings(4, 2))], 6, accuracy(range(7), 4, 2))
    places = np.array([[16.0, 2.0, 6, 1, 0], [1.0, 2.0, 6, 1, 0], [4.0, 2.0, 6, 1, 0]])
    distance = np.log(places[:, None, 0] / places[None, :, 0])
    every = loop.error**2 * (0.5 + 0.5 * np.exp(-(distance**2) / 2))
    every[2, 2] += 0.25 / 6 + 0.04 * (curve.rounds(0.8, 4, 2) / 6 - 1)
    posterior = np.linalg.inv(np.linalg.inv(every)[:2, :2])
    wanted = np.sqrt(posterior[0, 0] + posterior[1, 1] - 2 * posterior[0, 1])
    _, error = loop._factors(loop._segments(run), 0.1, places, places[1])
    assert error[0] == pytest.approx(wanted)
    assert error[1] == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--redesign-every", "3", "--target", "0.8"], "redesign_every=3 needs --run"),
        (["--redesign-every", "0", "--run"], "redesign_every is '0'"),
        (["--redesign-every", "2", "--run", "--max-seconds", "9"], "max_seconds=9"),
    ],
)
def test_the_command_refuses_before_it_trains(capsys, flags, words):
    assert main(["design", "hist", *flags]) == 2
    assert words in capsys.readouterr().err


def test_it_reads_validation_data(config, toy, curve):
    loop = ClosedLoop.of(curve, 0.8, local_steps=STEPS)
    with pytest.raises(ConfigError, match="set validation_fraction"):
        wirelessfl.run(config("hfedavg"), data=toy, redesign=loop)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": 0.9}, "target is 0.9, and the curve was fitted from 0.5 to 0.8"),
        ({"local_steps": []}, r"local_steps is \(\)"),
        ({"edge_rounds": [0]}, r"edge_rounds is \(0,\)"),
        ({"objective": (0, 0)}, "one > 0"),
        ({"learn": "all"}, "learn is 'all': choose local, common, none"),
        ({"least_gain": 1.0}, r"least_gain is 1.0"),
    ],
)
def test_wrong_arguments_are_named(curve, options, words):
    given = {"target": 0.8, "local_steps": STEPS} | options
    with pytest.raises(ConfigError, match=words):
        ClosedLoop.of(curve, given.pop("target"), **given)


def test_redesigned_runs_are_no_pilots():
    run = so_far([(0, RoundSettings(4, 2)), (1, RoundSettings(8, 2))], 2, [0.1, 0.5, 0.6])

    @dataclass(frozen=True)
    class Run:
        rows: list
        settings: dict = field(default_factory=dict)

    with pytest.raises(ConfigError, match="whose local_steps was redesigned"):
        Pilot.of(Run(run.rows, {"local_steps": 4, "clients": 4}))
