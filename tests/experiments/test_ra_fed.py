"""RA-Fed: settings, figures and rows at scale smoke; tables of hand-written rows."""

import argparse
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from experiments.ra_fed import __main__ as command
from experiments.ra_fed import figures as figures_module
from experiments.ra_fed import tables
from experiments.ra_fed.__main__ import EXPERIMENTS, PAPER
from experiments.ra_fed.claims import average_gain
from experiments.ra_fed.frontier import frontier
from experiments.ra_fed.measures import (
    best,
    coverage,
    diverged,
    gains,
    gains_by_seed,
    in_order,
    round_seconds,
)
from experiments.ra_fed.methods import METHODS, complete, share
from experiments.ra_fed.words import WORDS, newsgroups, occurring
from experiments.studies import SCALES, Case, Results, Study
from solvers import fastest_widths
from tests.drawn import facts, finished, legend, lines, ticks, titles
from tests.wirelessfl.data.test_text import write_newsgroups
from wirelessfl.base.errors import ConfigError
from wirelessfl.data import load_dataset
from wirelessfl.models.submodels.budgets import levels_of
from wirelessfl.results.costs import LAST, final_accuracy
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.build import build

pytestmark = pytest.mark.thorough

NOT_RUN = {"scale", "words"}
"""Experiments drawn and printed by functions that others use too: they add nothing to test."""
RUN = [name for name in EXPERIMENTS if name not in NOT_RUN]


def test_every_configuration_can_be_read_at_every_scale():
    for scale in SCALES:
        for study in PAPER.studies(scale):
            name = study.name
            assert study.cases, name
            assert len({repr(case) for case in study.cases}) == len(study.cases), name
            for case in study.cases:
                assert (
                    case.config(case.seeds[0]).training.clients_per_round
                    == (case["clients_per_round"])
                )
                assert NAMES[case["algorithm"]]
                assert "capacities" not in case.settings or isinstance(case["capacities"], tuple)


def test_settings_depend_on_each_other():
    """``complete`` derives min_coverage and lr, and removes settings of other splits."""
    given = {"algorithm": "ra-fed", "model": "mlp", "split": "noniid", "alpha": 0.3, "shards": 2}
    given |= {"capacities": [0.3], "masks": "covered", "clients_per_round": 10}
    found = complete(given, "small")
    assert (found["min_coverage"], found["capacities"], found["shards"]) == (3, (0.3,), 2)
    assert "alpha" not in found
    assert "min_coverage" not in complete(given | {"masks": "random"}, "small")
    assert complete(given | {"lr": 0.7}, "small")["lr"] == 0.7
    with pytest.raises(ConfigError, match="no step size of 'fedadam'"):
        complete(given | {"algorithm": "fedadam"}, "small")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("ra_fed")


@pytest.fixture(scope="module")
def found(out, figures):
    return PAPER.reproduce(RUN, "smoke", out, make=True)


def test_the_figures_show_the_rows(found, figures):
    """Differences are those of the rows, and bars are the seconds to the target."""
    assert set(figures) >= {"widths", "coverage", "full", "radio"}
    panels = figures["widths"].axes
    assert titles(figures["widths"]) == ["RA-Fed", "RAM-Fed"]
    for panel, method in zip(panels, ("ra-fed", "ram-fed"), strict=True):
        expected = sorted(gain for _, gain in gains(found["widths"], method))
        assert sorted(markers(panel, "o")) == pytest.approx(expected)
    names = [text.get_text() for text in panels[0].get_yticklabels()]
    assert [name.rpartition(", ")[2] for name in names] == [
        "width 1/8",
        "width 1/2",
        "mixed widths",
    ]
    results = found["coverage"]
    assert results.study.name == "coverage+weights"
    for panel, method in zip(figures["coverage"].axes, ("ra-fed", "ram-fed"), strict=True):
        expected = [
            results.finals(case)[0] - results.finals(base)[0]
            for masks in figures_module.FORMS
            for case, base in figures_module.against_covered(results, method, masks)
        ]
        assert expected
        assert sorted(markers(panel, "o", "s", y=True)) == pytest.approx(sorted(expected))
    results = found["radio"]
    (panel,) = figures["radio"].axes
    assert panel.get_ylabel() == "time to 30 % (s)"
    cases = in_order(results.where())
    costs = [results.costs(case, "sim_seconds", 0.3)[0] for case in cases]
    heights = [bar.get_height() for bar in panel.patches[: len(cases)]]
    hits = [(cost, height) for cost, height in zip(costs, heights, strict=True) if cost is not None]
    assert all(cost == height for cost, height in hits)
    assert len(ticks(panel)) == len(cases) == 10 - 1


def markers(panel, *forms, y=False):
    """The coordinates of the large markers of a panel of differences; small dots are seeds."""
    return [
        (line.get_ydata() if y else line.get_xdata())[0]
        for line in panel.get_lines()
        if line.get_marker() in forms and len(line.get_xdata()) and line.get_markersize() > 2.5
    ]


def test_the_frontier_equals_the_solvers(out, figures):
    """The frontier equals RA-Fed's planned round times; Gamma* = S requires full models."""
    case = PAPER.study("radio", "smoke").cases[0]
    points = frontier(case.config(1), 5)
    assert points.seconds.shape == (5, 10)
    assert (np.diff(points.seconds, axis=1) >= 0).all()
    assert (points.seconds[:, -1] == points.full).all()
    (five,) = (
        one for one in PAPER.study("radio", "smoke").cases
        if (one["algorithm"], one["min_coverage"]) == ("ra-fed", 5)
    )  # fmt: skip
    planner = build(five.config(1)).planner
    for number in range(5):
        planned = planner.plan(number).price.seconds.max()
        assert planned == pytest.approx(points.seconds[number, 4], rel=1e-12)
    full = build(case.config(1)).planner.plan(3).price.seconds.max()
    assert full == pytest.approx(points.full[3], rel=1e-12)
    levels = levels_of(planner.model.neurons())
    assert fastest_widths(np.ones((10, len(levels.shares))), levels.widths.T, 5).objective == 1
    arguments = argparse.Namespace(scale="smoke", data_dir=None, out=out)
    command.draw(arguments)
    assert (out / "frontier.md").read_text().count("\n| ") == 1 + 10
    (panel,) = figures["frontier"].axes
    assert panel.get_xlabel() == "minimum coverage Γ* (clients)"
    assert (panel.get_ylabel(), panel.get_yscale()) == ("seconds per round", "log")
    assert legend(figures["frontier"]) == ["fastest widths", "full model"]
    x, seconds = lines(panel)["fastest widths"]
    assert x == list(range(1, 11))
    assert (np.diff(seconds) >= 0).all()
    assert lines(panel)["full model"][1][0] == pytest.approx(seconds[-1])


def rows_of(*accuracies, **last):
    rows = [{"round": i, "accuracy": a, "sim_seconds": 2.0 * i, "uplink_mib": 0.1 * i}
            for i, a in enumerate(accuracies)]  # fmt: skip
    rows[-1] |= last
    return rows


def results_of(runs, **settings):
    """Results of hand-written runs, from ``{(algorithm, capacities): rows of each seed}``."""
    given = {"dataset": "mnist", "split": "dirichlet", "alpha": 0.3, "model": "mlp", "lr": 0.1}
    cases = [
        Case(given | settings | {"algorithm": name, "capacities": capacities}, (1, 2), 0)
        for name, capacities in runs
    ]
    by_case = {
        i: [
            SimpleNamespace(rows=rows, current=True, seed=seed)
            for seed, rows in enumerate(seeds, start=1)
        ]
        for i, seeds in enumerate(runs.values())
    }
    return Results(Study("by hand", tuple(cases)), by_case)


def test_measures_by_hand():
    """Final accuracy, coverage and seconds per round of hand-written rows."""
    rows = rows_of(0.9, 0.1, *[0.5, 0.6, 0.7, 0.8, 0.9])
    assert LAST == 5
    assert final_accuracy(rows) == pytest.approx(70)
    assert final_accuracy(rows_of(0.9, 0.2, 0.4)) == pytest.approx(30)  # without the initial
    assert coverage(rows) is None
    rows[2] |= {"coverage": 3.0, "uncovered": 0.5}
    rows[3] |= {"coverage": 2.0, "uncovered": 0.1}
    assert coverage(rows) == (2, pytest.approx(0.3))
    assert round_seconds(rows) == 2
    assert round_seconds(rows_of(0.1, 0.2, 0.3, sim_seconds=3.0), 3.0) == 2


def test_claims_by_hand():
    """Gains use seeds that all methods have, and exclude runs with full models."""
    at = {"fedavg-small": 0.5, "heterofl": 0.6, "fedrolex": 0.7, "ra-fed": 0.75, "ram-fed": 0.65}
    runs = {(name, (0.5,)): [rows_of(0, a), rows_of(0, a + 0.1)] for name, a in at.items()}
    runs["ram-fed", (0.5,)].pop()
    runs |= {(name, (1.0,)): [rows_of(0, 0.2)] for name in at}
    results = results_of(runs)
    ((case, gain),) = gains(results, "ra-fed")
    assert share(case) == "1/2"
    assert gain == pytest.approx(5)
    assert gains(results, "ram-fed")[0][1] == pytest.approx(-5)
    numbers = tables.numbers(results)
    assert numbers["ra-fed over fedrolex: ahead"] == "1 of 1"
    assert numbers["ra-fed over fedrolex: median"] == "+5.0"
    assert numbers["ram-fed over heterofl, fedrolex: ahead"] == "0 of 1"
    assert numbers["ram-fed, 1/2"] == numbers["ram-fed, most"] == "-5.0"


def test_the_average_gain_is_over_widths():
    """By hand: the best other method of each width, seeds that all methods and widths have."""
    at = {"heterofl": (0.6, 0.3), "fedrolex": (0.5, 0.4), "ra-fed": (0.65, 0.41)}
    runs = {
        (name, (width,)): [rows_of(0, final), rows_of(0, final)]
        for name, finals in at.items()
        for width, final in zip((0.5, 0.25), finals, strict=True)
    }
    runs["ra-fed", (0.5,)].append(rows_of(0, 0.9))
    asked = {"study": "words", "method": "ra-fed", "others": ["heterofl", "fedrolex"], "least": 1}

    def effects(runs):
        return average_gain(SimpleNamespace(study=lambda name: results_of(runs)), **asked)

    (effect,) = effects(runs)
    assert (effect.name, effect.values) == ("mean of 2 widths", pytest.approx((3, 3)))
    (effect,) = effects(runs | {("fedrolex", (0.25,)): []})
    assert effect.values == ()


def test_posts_become_the_words_that_occur(tmp_path):
    """Padding and unknown words are left out, and repeated words count once."""
    seen = occurring(torch.tensor([[2, 4, 2, 1, 0], [0, 0, 0, 0, 0]]))
    assert seen.shape == (2, WORDS)
    assert seen.nonzero().tolist() == [[0, 0], [0, 2]]
    assert seen.max() == 1
    write_newsgroups(tmp_path / "20newsgroups")
    data = newsgroups(tmp_path)
    named = load_dataset("20newsgroups", tmp_path, tokenizer="words").words[2:]
    words = [{named[word] for word in post.nonzero().flatten()} for post in data.train_inputs]
    assert words == [{"first"} if i == 14 else {"train", str(i - (i > 14)), "é"} for i in range(21)]


def test_gains_of_several_seeds():
    """One line per setting and width; the best other method has the highest mean over the seeds."""
    runs = {
        (name, (0.5,)): [rows_of(0, 0.6 + 0.05 * i), rows_of(0, 0.62 + 0.05 * i)]
        for i, name in enumerate(METHODS)
    }
    runs["heterofl", (0.5,)] = [rows_of(0, 0.9), rows_of(0, 0.1)]
    results = results_of(runs)
    ((case, seeds),) = gains_by_seed(results, "ra-fed")
    assert (case["algorithm"], seeds) == ("ra-fed", pytest.approx([5, 5])), "over FedRolex"
    panels = finished(figures_module.widths(results)).axes
    for panel, gain in zip(panels, (5, 10), strict=True):
        assert markers(panel, "o") == pytest.approx([gain])
        (dots,) = [line for line in panel.get_lines() if len(line.get_xdata()) == 2 and
                   line.get_marker() == "o"]  # fmt: skip
        assert list(dots.get_xdata()) == pytest.approx([gain, gain])


def test_scaled_gains_use_the_best_step_sizes():
    """Each side is at its own best step size, seed by seed."""
    parts = [
        results_of({("ra-fed", (0.5,)): [rows_of(0, a), rows_of(0, a + d)]}, lr=lr,
                   submodel_scale=factor)
        for factor, lr, a, d in (
            ("none", 0.1, 0.5, 0.1), ("none", 0.2, 0.4, 0.4), ("width", 0.05, 0.7, 0.0),
            ("width", 0.1, 0.1, 0.1),
        )
    ]  # fmt: skip
    cases = tuple(case for one in parts for case in one.study.cases)
    by_case = dict(enumerate(runs for one in parts for runs in one.runs.values()))
    results = Results(Study("scale", cases), by_case)
    assert figures_module.scaled_gain(results, "ra-fed", (0.5,)) == pytest.approx([30, -10])
    assert figures_module.scaled_gain(results, "heterofl", (0.5,)) == []
    figure = finished(figures_module.scale(results))
    (panel,) = figure.axes
    assert lines(panel)["RA-Fed"][1] == pytest.approx([10])
    assert ticks(panel) == ["1/2*"]
    assert "*: some best step sizes are at the edge of the grid" in facts(figure)


def test_diverged_cells_are_marked(found):
    """A run that falls 15 points below its best evaluation is marked in the table and figure."""
    results = found["widths"]
    case = results.where(algorithm="ra-fed")[0]
    place = results.study.cases.index(case)
    (run,) = results.of(case)
    fallen = [
        row | {"accuracy": value}
        for row, value in zip(run.rows * 4, [0.1, 0.8, *[0.64] * 9], strict=False)
    ]
    made = Results(results.study, {**results.runs, place: [replace(run, rows=fallen)]})
    assert diverged(made, case) == 1
    assert diverged(results, case) == 0
    lost = [row | {"loss": None} if row["round"] else row for row in run.rows]
    made_lost = Results(results.study, {**results.runs, place: [replace(run, rows=lost)]})
    assert diverged(made_lost, case) == 1
    assert best(made_lost, case) == 100 * run.rows[0]["accuracy"]
    text = tables.core(made)
    assert "| 64.0 † |" in text
    assert "†" not in tables.core(results)
    figure = finished(figures_module.widths(made))
    left, right = figure.axes
    assert figures_module.DAGGER in [text.get_text() for text in left.texts]
    assert not right.texts
    assert "†: a seed diverged" in facts(figure)
