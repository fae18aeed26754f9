"""RA-Fed: settings, figures and rows at scale smoke; tables of hand-written rows."""

import argparse
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.ra_fed import __main__ as command
from experiments.ra_fed import figures as figures_module
from experiments.ra_fed import tables
from experiments.ra_fed.__main__ import EXPERIMENTS, PAPER
from experiments.ra_fed.frontier import frontier
from experiments.ra_fed.measures import (
    best,
    coverage,
    diverged,
    gains,
    round_seconds,
)
from experiments.ra_fed.methods import METHODS, complete, name_of, share
from experiments.studies import SCALES, Case, Results, Study
from solvers import fastest_widths
from tests.drawn import AGAINST, legend, lines, ticks, titles
from wirelessfl.errors import ConfigError
from wirelessfl.results.names import NAMES
from wirelessfl.results.seeds import LAST, final_accuracy
from wirelessfl.setup import build
from wirelessfl.submodels.budgets import levels_of

NOT_RUN = {"weights", "scale"}
"""Experiments drawn and printed by functions that others use too: they add nothing to test."""
RUN = [name for name in EXPERIMENTS if name not in NOT_RUN]
MIXED = (1.0, 0.5, 0.25, 0.125)


def test_every_configuration_can_be_read_at_every_scale():
    for name in EXPERIMENTS:
        for scale in SCALES:
            study = PAPER.study(name, scale)
            assert study.cases, name
            assert len({repr(case) for case in study.cases}) == len(study.cases), name
            for case in study.cases:
                assert (
                    case.config(case.seeds[0]).training.clients_per_round
                    == (case["clients_per_round"])
                )
                assert NAMES[case["algorithm"]]
                assert "capacities" not in case.settings or isinstance(case["capacities"], tuple)


def test_the_core_comparison_comes_first():
    """Then come its other seeds with one seed of other widths, and then other data sets."""
    ranks = {}
    for run in PAPER.study("widths", "small").planned():
        config = run.config
        capacities = config.algorithm.get("capacities")
        ranks.setdefault(run.rank, []).append(
            (
                config.data.dataset,
                config.model["name"],
                config.split["name"],
                capacities,
                config.run.seed,
            )
        )
    assert {(d, m, s, seed) for d, m, s, _, seed in ranks[0]} == {
        ("fashion-mnist", "mlp", "dirichlet", 1)
    }
    assert {capacities for *_, capacities, _ in ranks[0]} == {None, (0.5,), MIXED}
    first = {capacities for *_, capacities, seed in ranks[1] if seed == 1}
    assert first == {(0.25,), (0.125,), (1.0,)}
    assert {capacities for *_, capacities, seed in ranks[1] if seed > 1} == {None, (0.5,), MIXED}
    assert {seed for *_, seed in ranks[1]} == {1, 2, 3}
    assert {(d, m) for d, m, *_, seed in ranks[2] if seed == 1} == {
        ("mnist", "mlp"), ("fashion-mnist", "mlp"), ("fashion-mnist", "lenet5"),
    }  # fmt: skip
    assert {seed for *_, seed in ranks[3]} == {2, 3}


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


def test_everything_is_written_and_found_again(found, out):
    """Every experiment writes its table; reading the stored runs gives the same rows."""
    for name in RUN:
        assert "\n|---|" in (out / f"{name}.md").read_text()
        assert not found[name].missing
    again = PAPER.reproduce(["widths"], "smoke", out)["widths"]
    assert not again.missing
    assert [again.rows(c) for c in again.where()] == [
        found["widths"].rows(c) for c in found["widths"].where()
    ]


def test_the_short_table_has_a_column_per_method(found):
    """It has the same accuracies as the full table, and FedAvg's once per setting."""
    results = found["widths"]
    lines = [line.split(" | ") for line in tables.by_method(results).splitlines() if "|" in line]
    head, _, *rows = lines
    assert [name.strip(" |") for name in head[2:]] == [
        "FedAvg, full model", "FedAvg-small", "HeteroFL", "FedRolex", "RA-Fed", "RAM-Fed",
    ]  # fmt: skip
    shown = {cell.strip(" |") for row in rows for cell in row[2:]} - {""}
    assert shown == {f"{value:.1f}" for c in results.where() for value in results.finals(c)}


def points(panel):
    """The labelled markers of a panel, with or without error bars: x and y by label."""
    return {
        one.get_label(): (list(one.lines[0].get_xdata()), list(one.lines[0].get_ydata()))
        for one in panel.containers
    }


def test_the_figures_show_the_rows(found, figures):
    """Every case is drawn once; axes are labelled, and the legend is complete."""
    assert set(figures) >= {"widths", "coverage", "heterogeneity", "radio"}
    for name in ("widths", "coverage", "heterogeneity"):
        results = found[name]
        values = {value for case in results.where() for value in results.finals(case)}
        shown = [y for panel in figures[name].axes for _, ys in points(panel).values() for y in ys]
        full = [
            line.get_ydata()[0]
            for panel in figures[name].axes
            for line in panel.get_lines()
            if line.get_label() == "FedAvg, full model"
        ]
        assert values == {*shown, *full}, "every case is drawn, and nothing else"
        for panel in figures[name].axes:
            assert panel.get_ylabel() == "final test accuracy (%)"
        labels = {
            label for panel in figures[name].axes for label in (*lines(panel), *points(panel))
        }
        assert set(legend(figures[name])) == labels
    (panel,) = figures["widths"].axes
    assert panel.get_xlabel() == "client width ratio"
    assert ticks(panel) == ["1/8", "1/2", "mixed", "50 % of\nparameters"]
    assert set(points(panel)) == {NAMES[method] for method in METHODS}
    for place, (x, _) in enumerate(points(panel)[NAMES[method]] for method in METHODS):
        assert np.diff(x) == pytest.approx(1), place
    assert titles(figures["heterogeneity"]) == [
        "width ratio 1/2", "mixed widths",
    ]  # fmt: skip
    for panel in figures["heterogeneity"].axes:
        assert panel.get_xlabel() == "Dirichlet parameter"
        assert ticks(panel) == ["0.3", "1", "iid"]
    left, right = figures["coverage"].axes
    assert (left.get_title()[-6:], right.get_title()[-8:]) == ("S = 10", "β = 0.25")
    for panel in (left, right):
        assert panel.get_xlabel() == "S β, mean coverage of a neuron (clients)"
        assert len(points(panel)) == 4
    assert points(left)["RA-Fed, covered"][0] == [1, 5]


def test_curves_of_the_radio_are_the_rows(found, figures):
    """Panels show accuracy against simulated time, for one method and the references each."""
    results = found["radio"]
    for panel, others in zip(figures["radio"].axes, ("ram-fed", "ra-fed"), strict=True):
        assert panel.get_xlabel() == AGAINST["sim_seconds"]
        cases = [case for case in results.where() if case["algorithm"] != others]
        drawn = sorted(lines(panel).values())
        rows = [results.rows(case)[0] for case in cases]
        expected = sorted(
            ([r["sim_seconds"] for r in run], [100 * r["accuracy"] for r in run]) for run in rows
        )
        assert len(drawn) == len(expected)
        for (x, y), (at, accuracies) in zip(drawn, expected, strict=True):
            assert x == pytest.approx(at)
            assert y == pytest.approx(accuracies)


def last_rows(results, **wanted):
    return {
        (case["algorithm"], share(case)): results.rows(case)[0][-1]
        for case in results.where(**wanted)
    }


def test_the_rows_behind_the_widths(found):
    """Traffic follows from the widths, and coverage from the masks."""
    ends = last_rows(found["widths"])
    assert set(ends) == {
        ("fedavg", "full"),
        *((method, affordable) for method in METHODS for affordable in ("1/2", "1/8", "mixed")),
        *((method, "50 % of parameters") for method in ("ra-fed", "ram-fed")),
    }
    full = ends["fedavg", "full"]["uplink_mib"]
    assert full == pytest.approx(2 * 10 / 40 * 55_210 * 4 / 2**20)  # of 64-200-200-10
    half = 64 * 100 + 100 + 100 * 100 + 100 + 100 * 10 + 10
    eighth = 64 * 25 + 25 + 25 * 25 + 25 + 25 * 10 + 10
    for method in METHODS:
        assert ends[method, "1/2"]["uplink_mib"] == pytest.approx(full * half / 55_210)
        assert ends[method, "1/8"]["uplink_mib"] == pytest.approx(full * eighth / 55_210)
    assert ends["fedavg-small", "mixed"]["uplink_mib"] == ends["ra-fed", "1/8"]["uplink_mib"]
    assert 0.49 < ends["ram-fed", "50 % of parameters"]["uplink_mib"] / full <= 0.5
    for method in ("fedavg-small", "heterofl", "fedrolex"):
        assert ends[method, "1/2"]["coverage"] == 10
        assert ends[method, "1/2"]["uncovered"] == pytest.approx(1 - half / 55_210)
    assert ends["ra-fed", "1/2"]["uncovered"] < 0.1
    assert "coverage" not in ends["fedavg", "full"]
    text = tables.accuracies(found["widths"])
    assert "RA-Fed over the best of FedAvg-small, HeteroFL and FedRolex: " in text
    assert "on average over 3 settings" in text
    assert "RAM-Fed, 50 % of parameters minus FedAvg with the full model" in text


def test_the_rows_behind_the_coverage(found):
    """Covered masks reach the required coverage S beta; with random masks the minimum is 1."""
    results = found["coverage"]
    for case in results.where():
        (rows,), (beta,) = results.rows(case), case["capacities"]
        min_coverage, uncovered = coverage(rows)
        neurons = case["clients_per_round"] * beta
        if case["masks"] == "covered":
            assert case["min_coverage"] == neurons
            assert min_coverage == neurons, (
                "arcs of equal length repeat, so weights are covered as often as neurons"
            )
        else:
            assert 1 == min_coverage < max(neurons, 2)
        assert 0 < uncovered < 1
    assert tables.covered(results).count("\n| digits") == len(results.where()) == 12


def test_the_rows_behind_the_masks(found):
    """Ordered masks of equal width are the same, so all clients cover the same coordinates."""
    results = found["masks"]
    cases = {(case["algorithm"], case["masks"]): case for case in results.where()}
    assert set(cases) == {(a, m) for a in ("ra-fed", "ram-fed") for m in ("ordered", "static")}
    for (_, masks), case in cases.items():
        (rows,) = results.rows(case)
        each = {row["coverage"] for row in rows[1:]}
        assert (each == {float(case["clients_per_round"])}) == (masks == "ordered")
        assert all(0 < row["uncovered"] < 1 for row in rows[1:])
    finals_of = {key: tuple(results.finals(case)) for key, case in cases.items()}
    assert len(set(finals_of.values())) == 4  # masks and memory both make a difference


def test_the_rows_behind_the_heterogeneity(found):
    """RA-Fed and RAM-Fed run on every label distribution, with different accuracies."""
    results = found["heterogeneity"]
    for affordable in ("1/2", "mixed"):
        for method in ("ra-fed", "ram-fed"):
            mine = [c for c in results.where(algorithm=method) if share(c) == affordable]
            assert [(c["split"], c["alpha"]) for c in mine] == [
                ("dirichlet", 0.3), ("dirichlet", 1.0), ("iid", None),
            ]  # fmt: skip
            assert len({results.finals(case)[0] for case in mine}) == 3


def test_the_rows_behind_the_radio(found):
    """Narrower submodels shorten rounds; with a deadline, rounds take just less than it."""
    results = found["radio"]
    seconds = {
        name_of(case): round_seconds(results.rows(case)[0], case["max_seconds"])
        for case in results.where()
    }
    assert len(seconds) == 9
    two, five = (seconds[f"RA-Fed, fastest, Γ* = {n}"] for n in (2, 5))
    assert two < five < seconds["FedAvg"]
    assert seconds["FedAvg-small"] < seconds["HeteroFL"] < seconds["FedAvg"]
    assert seconds["RAM-Fed, fastest, Γ* = 2"] == two
    assert 0.145 < seconds["RA-Fed, deadline 0.15 s"] <= 0.15
    for case in results.where():
        rows = results.rows(case)[0]
        assert rows[-1]["sim_seconds"] == 2.0 or rows[-1]["round"] == 12
    assert "RAM-Fed, deadline 0.15 s" in tables.timed(results)


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
        i: [SimpleNamespace(rows=rows, current=True) for rows in seeds]
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
    text = tables.claims(results)
    assert "FedRolex: +5.0 points on average over 1 settings, median +5.0, positive in 1" in text
    assert "RAM-Fed over HeteroFL: +5.0 points" in text
    half = results_of({("ram-fed", (0.5,)): [rows_of(0, 0.5), rows_of(0, 0.7)]}, budget="bytes")
    full = results_of({("fedavg", None): [rows_of(0, 0.6), rows_of(0, 0.6)]})
    both = Results(
        Study("both", half.study.cases + full.study.cases), {0: half.runs[0], 1: full.runs[0]}
    )
    assert "(MNIST, Dir(0.3), MLP): 0.0 ± 14.1 points, 2 seeds." in tables.claims(both)


def test_figures_of_several_seeds_models_and_splits(tmp_path, redrawn):
    """One file per data set and model, the first named after the study; one panel per split."""
    parts = []
    for place, settings in enumerate(
        ({}, {"split": "noniid", "alpha": None, "shards": 2}, {"model": "lenet5"})
    ):
        runs = {
            (name, capacities): [rows_of(0, a), rows_of(0, a + 0.02)]
            for i, name in enumerate(METHODS)
            for capacities, a in zip(
                ((0.25,), (0.5,), (1.0,), MIXED),
                (0.5 + 0.05 * i, 0.6 + 0.05 * i, 0.8 + 0.01 * i, 0.55 + 0.05 * place),
                strict=True,
            )
        }
        parts.append(results_of(runs | {("fedavg", None): [rows_of(0, 0.85)] * 2}, **settings))
    cases = tuple(case for one in parts for case in one.study.cases)
    by_case = [runs for one in parts for runs in one.runs.values()]
    drawn = figures_module.widths(
        Results(Study("by hand", cases), dict(enumerate(by_case))), tmp_path
    )
    assert [file.name for file in drawn if file.suffix == ".png"] == [
        "widths.png", "widths-mnist-lenet5.png",
    ]  # fmt: skip
    panels = redrawn["widths"].axes
    assert titles(redrawn["widths"]) == [
        figures_module.setting_of(one.study.cases[0]) for one in parts[:2]
    ]
    for panel in panels:
        assert ticks(panel) == ["1/4", "1/2", "1", "mixed"]
        shown = points(panel)
        assert shown[NAMES[METHODS[1]]][1] == pytest.approx(
            [56, 66, 82, 56 + 5 * (panel is panels[1])]
        )
        assert all(one.has_yerr for one in panel.containers), "two seeds each"
        assert lines(panel)["FedAvg, full model"][1] == pytest.approx([85, 85])


def test_diverged_cells_are_marked_and_medians_are_given(found):
    """A run that falls 15 points below its best test is marked; gains have mean and median."""
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
    text = tables.by_method(made)
    assert "| 64.0 † |" in text
    assert "†" not in tables.by_method(results)
    assert re.search(r"RA-Fed over .* points on average over \d settings, median [+-]", text)
