"""Designs against runs: stored numbers are those of the rows, and tables those of the numbers."""

import math
import statistics

import numpy as np
import pytest

import wirelessfl
from experiments.codesign import (
    curves,
    designs,
    figures,
    findings,
    grid,
    searches,
    stored,
    tables,
)
from experiments.codesign.__main__ import PAPER
from experiments.codesign.networks import DRAWS, NETWORKS, UPLINKS, over
from experiments.codesign.samples import (
    BEST_PILOT,
    FEDTUNE,
    FIXED_PAIR,
    SWEEP,
    chosen,
    later,
    samples,
)
from experiments.codesign.sweep import CRITERIA, PAIRS, TARGETS, GridRuns, Sweep, by_place, trained
from experiments.decided.uplinks import OPTIMAL, SLOTS
from experiments.evidence import Evidence
from experiments.studies import SCALES, Results, Study
from tests.drawn import finished, titles
from wirelessfl.base.figures.marks import AtLeast, marks_of
from wirelessfl.config import Config
from wirelessfl.designs.pilot_plan import COUNT, LARGEST, STEPS
from wirelessfl.designs.points import PilotChoices, chosen_points, ramp
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.pricing.radio import repriced


@pytest.fixture(scope="module")
def rows():
    return Evidence.of(PAPER)


@pytest.fixture(scope="module")
def runs(rows):
    return by_place(rows)


@pytest.fixture(scope="module")
def found():
    return stored.load()


def test_every_configuration_can_be_read_at_every_scale():
    for study in (one for scale in SCALES for one in PAPER.studies(scale)):
        assert study.cases or study.name == "designs"
        assert len({repr(case) for case in study.cases}) == len(study.cases)
        assert all(case.config(case.seeds[0]) for case in study.cases)


def test_the_grid_is_that_of_the_criteria():
    study = PAPER.study("grid", "small")
    for dataset, target in TARGETS.items():
        cases = [case for case in study.cases if case["dataset"] == dataset]
        assert {case["target"] for case in cases} == {target}
        assert sorted((c["local_steps"], c["edge_rounds"]) for c in cases) == sorted(2 * PAIRS)
    assert [*CRITERIA["networks"]] == [*NETWORKS]


# Numbers in the file


def test_stored_rounds_are_those_of_the_rows(rows, found):
    """If this fails after new rows: ``python -m experiments.codesign predictions --make``."""
    assert found.trained == trained(rows)
    places = {
        (*one[:3], network, uplink)
        for one in found.trained
        for network in NETWORKS
        for uplink in UPLINKS
    }
    assert {sweep.place for sweep in found.sweeps} == places
    assert len(found.sweeps) == len(places)
    known = {one[:3]: one for one in found.trained}
    for sweep in found.sweeps:
        assert sweep.rounds == known[sweep[:3]].rounds
        for numbers in (sweep.seconds, sweep.joules):
            assert [n is None for n in numbers] == [n is None for n in sweep.rounds]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("network", "uplink", "algorithm", "pair"),
    [
        ("section-vi-c", SLOTS, "hfedavg", (20, 5)),
        ("disc", OPTIMAL, "hist", (10, 10)),
        ("uma", OPTIMAL, "hfedavg", (40, 2)),
    ],
)
def test_a_stored_cost_is_a_price_of_the_run(runs, found, network, uplink, algorithm, pair):
    """The sweep prices all pairs at once; the oracle prices the rows of one run."""
    run = runs["digits", algorithm, 1][pair]
    (sweep,) = (s for s in found.sweeps if s.place == ("digits", algorithm, 1, network, uplink))
    place = PAIRS.index(pair)
    here = Config.of(run.settings)
    rows = [row for row in run.rows if row["round"] <= sweep.rounds[place]]
    end = repriced(rows, here, over(here, network, uplink)).rows[-1]
    assert sweep.seconds[place] == pytest.approx(end["sim_seconds"], rel=1e-5)
    assert sweep.joules[place] == pytest.approx(end["joules"], rel=1e-5)


def test_expected_costs_and_choices_are_those_of_a_design(runs, found):
    """The same curve, draws and pairs, over OFDMA: ``wirelessfl.design`` chooses the same pair."""
    place = "digits", "hfedavg", 1
    pilots = {
        PAIRS[p]: curves.as_pilot(runs[place][PAIRS[p]], TARGETS["digits"])
        for p in curves.designed()
    }
    curve = curves.fitted(pilots, TARGETS["digits"])
    (stored_curve,) = (c for c in found.curves if c[:4] == (*place, curves.CURVE))
    config = over(Config.of(runs[place][20, 5].settings), "uma", OPTIMAL)

    class Rounds:  # without intervals
        rounds, accuracy = curve.rounds, curve.accuracy

    design = wirelessfl.design(
        config,
        target=TARGETS["digits"],
        among="hfedavg",
        uplinks=["ofdma"],
        local_steps=sorted({h for h, _ in PAIRS}),
        edge_rounds=sorted({e for _, e in PAIRS}),
        curve=Rounds(),
        draws=DRAWS,
    ).value
    (sweep,) = (s for s in found.sweeps if s.place == (*place, "uma", OPTIMAL))
    choice = design.choice
    pair = choice.local_steps, choice.edge_rounds
    assert sweep.round_seconds[PAIRS.index(pair)] == pytest.approx(choice.seconds, rel=1e-5)
    rounds = curves.predicted(curve, TARGETS["digits"])
    assert stored_curve.rounds == pytest.approx(rounds, rel=1e-5)
    assert stored_curve.form == curve.form
    smooth = [curve.rounds(TARGETS["digits"], h, e, 20) for h, e in PAIRS]
    costs = [r * each for r, each in zip(smooth, sweep.round_seconds, strict=True)]
    assert PAIRS[int(np.argmin(costs))] == pair


def test_pilots_end_at_the_target_or_with_their_steps():
    table = {"training": {"local_steps": 20, "edge_rounds": 5}}
    rows = [{"round": r, "validation_accuracy": r / 80} for r in range(81)]
    run = StoredRun(table, rows, {}, {}, 80.0)
    short = curves.as_pilot(run, 0.25)
    assert (short.rows[-1]["round"], short.seconds) == (20, 20.0)
    never = curves.as_pilot(run, 2.0)
    last = STEPS // (20 * 5)
    assert (never.rows[-1]["round"], never.seconds) == (last, last)


def test_predictions_are_rounds_of_an_evaluation(found):
    for curve in (one for one in found.curves if one.method == curves.CURVE):
        for pair, rounds in zip(PAIRS, curve.rounds, strict=True):
            assert rounds is None or rounds % curves.evaluated(*pair) == 0


# Other searches


def test_luo_recovers_the_constants_of_its_bound():
    """Rounds between two targets, in runs that follow the bound plus a constant."""

    def run(h, e):
        between = 600 / (h * e) + 0.5 * h * e
        rows = [
            {"round": 0, "validation_accuracy": 0.0},
            {"round": 7, "validation_accuracy": 0.9},
            {"round": 7 + round(between), "validation_accuracy": 1.0},
        ]
        return StoredRun({}, rows, {}, {}, 1.0)

    pairs = [(2, 1), (2, 5), (5, 10), (40, 1), (40, 10)]
    form, rounds = curves.luo({pair: run(*pair) for pair in pairs}, 1.0)
    wanted = np.array([600 / (h * e) + 0.5 * h * e for h, e in PAIRS])
    assert form == "A / (H E) + B H E"
    np.testing.assert_allclose(np.array(rounds) / wanted, rounds[0] / wanted[0], rtol=0.02)


def test_a_search_tries_eight_pairs():
    pytest.importorskip("optuna")
    seconds = [float(place + 1) for place in range(len(PAIRS))]
    seconds[3] = math.inf
    tried = searches.tpe(seconds, 1, 4)
    assert len(tried) == len(set(tried)) == 8
    assert tried == searches.tpe(seconds, 1, 4)
    assert tried != searches.tpe(seconds, 2, 4)


def test_stored_searches_cost_as_many_trainings_as_pilots(found):
    for search in found.searches:
        assert search.trainings == len(curves.designed())
        assert len(search.chosen) == searches.SAMPLERS
        assert search.cpu_seconds > 0


# Designs off the grid


OFF_GRID = designs.Made(
    "digits",
    "uma",
    2,
    {
        "algorithm": "hist",
        "local_steps": 14,
        "edge_rounds": 3,
        "mask_sizes": "fixed",
        "mask_shares": [0.4, 0.3, 0.2, 0.1],
        "uplink": "ofdma",
        "energy_weight": 0.0,
        "layout": "hexagonal",
        "inter_site_distance_m": 500.0,
        "path_loss": "uma",
        "cpu_hz": [5e8, 3e9],
    },
    (20.0, 15.0, 30.0),
    (2.0, 1.5, 3.0),
    (0.2, 0.1, 0.3),
    18,
    50.0,
)


def test_designs_are_written_as_a_study(tmp_path):
    plain = OFF_GRID.settings | {"algorithm": "hfedavg"}
    del plain["mask_sizes"], plain["mask_shares"]
    every = [OFF_GRID, OFF_GRID._replace(seed=1, settings=plain)]
    designs.save(every, tmp_path / "a.json", tmp_path / "designs.toml")
    assert designs.load(tmp_path / "a.json") == every
    study = Study.load(tmp_path / "designs.toml", "small", None, grid.complete)
    (config, other) = (case.config(case.seeds[0]) for case in study.cases)
    assert (config.run.seed, other.run.seed) == (2, 1)
    assert config.algorithm.mask_shares == (0.4, 0.3, 0.2, 0.1)
    assert config.network.cpu_hz == (5e8, 3e9)
    assert config.uplink.energy_weight == 0
    assert (config.training.local_steps, config.training.edge_rounds) == (14, 3)
    assert config.training.rounds == math.ceil(4000 / (14 * 3))
    assert config.named("layout") == "hexagonal"
    assert len(Study.load(tmp_path / "designs.toml", "smoke", None, grid.complete).cases) == 1


def test_a_design_is_compared_with_the_run_of_its_network(tmp_path):
    designs.save([OFF_GRID], tmp_path / "a.json", tmp_path / "designs.toml")
    study = Study.load(tmp_path / "designs.toml", "small", None, grid.complete)
    rows = [
        {"round": r, "validation_accuracy": r / 40, "sim_seconds": r / 10, "joules": r}
        for r in range(41)
    ]
    run = StoredRun({"run": {"seed": 2}}, rows, {}, {}, 1.0)
    ((one, hit),) = designs.realised(Results(study, {0: [run]}), [OFF_GRID])
    assert (one, hit["round"]) == (OFF_GRID, 38)
    elsewhere = OFF_GRID._replace(settings=OFF_GRID.settings | {"layout": "disc"})
    assert designs.realised(Results(study, {0: [run]}), [elsewhere]) == []


def test_pilots_with_unequal_masks_are_those_of_the_package():
    """Local steps, edge rounds and shares of the settings file."""
    shares = ramp(4, LARGEST)
    steps, edges = (tuple(sorted({pair[i] for pair in PAIRS})) for i in (0, 1))
    points = chosen_points(PilotChoices(steps, edges, shares=(shares,)), COUNT)
    assert tuple(PAIRS.index(p[:2]) for p in sorted(points[:COUNT])) == curves.designed()
    wanted = {(p.local_steps, p.edge_rounds) for p in points[COUNT:]}
    for case in PAPER.study("masks", "small").cases:
        assert case["mask_shares"] == pytest.approx(shares)
        assert (case["local_steps"], case["edge_rounds"]) in wanted
        assert case["target"] == TARGETS[case["dataset"]]


# Tables


def made(rounds=(4, 8), each=(1.0, 0.6), predicted=(5, 6), **changes):
    """Numbers of one sample, whose last pairs reach no target."""
    rest = [None] * (len(PAIRS) - len(rounds))
    numbers = [*rounds, *rest]
    cost = [r * e for r, e in zip(rounds, each, strict=True)]
    cells = {"dataset": "digits", "algorithm": "hist", "seed": 1} | changes
    lengths = tuple(100 for _ in PAIRS)
    at = {"network": "disc", "uplink": SLOTS}
    expected = (*each, *(1.0 for _ in rest))
    known = GridRuns(**cells, rounds=tuple(numbers), lengths=lengths, cpu_seconds=(2.0,) * 20)
    costs = (*cost, *rest)
    sweep = Sweep(**cells, **at, rounds=known.rounds, seconds=costs, joules=costs,
                  round_seconds=expected, round_joules=expected)  # fmt: skip
    guess = (*predicted, *rest)
    lines = [
        curves.Curve(**cells, method=m, form="", pilots=(0,), rounds=guess, cpu_seconds=3.0)
        for m in (curves.CURVE, curves.LUO)
    ]
    search = searches.PairSearch(
        **cells, **at, method=searches.TPE, trainings=8, chosen=(0, 1), cpu_seconds=4.0
    )
    return stored.Found([known], [sweep], lines, [search], [])


def test_a_design_has_the_least_predicted_cost():
    (sample,) = samples(made())
    design = sample.design()
    assert (design.place, design.pair) == (1, (2, 2))  # 6 x 0.6 < 5 x 1
    assert design.predicted.seconds == pytest.approx(3.6)
    assert design.error() == pytest.approx(abs(3.6 / 4.8 - 1))
    assert design.regret() == pytest.approx(4.8 / 4.0 - 1)
    by_method = {one.method: one for one in chosen(sample)}
    assert by_method[SWEEP].seconds == (4.0,)
    assert by_method[BEST_PILOT].places == (0,)
    assert by_method[searches.TPE].seconds == pytest.approx((4.0, 4.8))
    assert by_method[FIXED_PAIR].seconds == (math.inf,)
    assert tables.against(sample, searches.TPE) == pytest.approx(4.8 / 4.4)
    assert tables.saved(sample) == 1.0  # no fixed setting reaches the target


def test_runs_with_other_seeds_count_with_their_rounds_or_length():
    one, two = made(), made(rounds=(6, 2), seed=2)
    both = stored.Found(*(a + b for a, b in zip(one, two, strict=True)))
    first = samples(both)[0]
    elsewhere = first.elsewhere(first.design().sweep)
    assert elsewhere[:3] == pytest.approx([6 * 1.0, 2 * 0.6, 100 * 1.0])
    wanted = sorted(abs(ratio - 1) for ratio in (4 / 6, 6 / 4, 8 / 2, 2 / 8))
    assert sorted(later(both.trained)) == pytest.approx(wanted)


def test_a_sample_needs_all_runs():
    found = made()
    (known,) = found.trained
    partly = known._replace(lengths=(*known.lengths[:-1], None))
    assert samples(found._replace(trained=[partly])) == []


def test_criteria_are_medians_over_all_samples(found):
    """Recomputed from the sweeps, without the functions of the tables."""
    every = samples(found)
    values = []
    for sample in every:
        best = math.inf
        for (algorithm, _), sweep in sample.sweeps.items():
            if algorithm not in sample.algorithms:
                continue
            curve = sample.curves[algorithm, curves.CURVE].rounds
            for place in range(len(PAIRS)):
                if curve[place] is None:
                    continue
                predicted = curve[place] * sweep.round_seconds[place]
                if predicted < best:
                    best, real = predicted, sweep.seconds[place]
        values.append(1.0 if real is None else abs(best / real - 1))
    text = tables.criteria(found)
    row = next(line for line in text.splitlines() if line.startswith("| predicted, seconds"))
    assert f"| {statistics.median(values):.3g} |" in row
    assert row.endswith("yes |" if statistics.median(values) <= 0.15 else "no |")


def test_no_choice_beats_the_sweep(found):
    for method, values in tables.excess(found).items():
        if method != FEDTUNE:  # which is not bound to pairs of the grid
            assert min(values) >= 0, method
    assert max(tables.excess(found)[SWEEP]) == 0


def test_the_figures_show_all_samples(found, tmp_path):
    every = samples(found)
    figure = finished(figures.scatter(found))
    assert titles(figure)[:2] == [
        "designs for least seconds",
        "designs for least joules",
    ]
    for panel, objective in zip(figure.axes, ("seconds", "joules"), strict=True):
        shown = {tuple(at) for line in panel.get_lines() for at in line.get_xydata().tolist()}
        made = [one.design(objective) for one in every]
        wanted = {(getattr(d.predicted, objective), getattr(d.realised, objective)) for d in made}
        assert {one for one in wanted if math.isfinite(one[1])} <= shown
        missed = [line.get_xdata()[0] for line in marks_of(panel)]
        assert sorted(missed) == sorted(x for x, y in wanted if math.isinf(y))
    (panel,) = finished(figures.regrets(found)).axes
    labels = [text.get_text() for text in panel.get_yticklabels()]
    assert labels == [figures.SHORT[one] for one in tables.excess(found) if one in figures.SHORT]
    assert len(titles(finished(figures.seconds(found)))) == len({one.dataset for one in every})
    assert figures.scatter(stored.load(tmp_path / "none.json")) is None


def test_findings_say_where_predictions_and_methods_fail(found, rows):
    """Runs that miss the target are counted, and a method that is better has a ratio above 1."""
    numbers = findings.numbers(found, rows)
    lost = sum(math.isinf(one.design().realised.seconds) for one in samples(found))
    assert numbers["designs without cost"] == str(lost)
    ratios = [tables.against(one, searches.GUIDED) for one in samples(found)]
    assert numbers[searches.GUIDED].startswith(f"{statistics.median(ratios):.2f} (quartiles")
    assert numbers["trained"] == "27 of 27"


def test_a_run_that_ends_before_the_target_has_a_bound(found):
    """The seconds of its rounds, not a missing value."""
    for sample in samples(found):
        seconds = figures._spent(sample, sample.design().place)
        missed = math.isinf(sample.design().realised.seconds)
        assert isinstance(seconds, AtLeast) == missed
        assert missed or seconds == sample.design().realised.seconds
