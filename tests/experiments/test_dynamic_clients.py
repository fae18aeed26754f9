"""The dynamic-clients paper: published tables and settings; tables of hand-written rows."""

import statistics
import sys
from dataclasses import replace

import pytest

from experiments.dynamic_clients import costs, gains, lasting, published, radio, sessions, tables
from experiments.dynamic_clients.__main__ import EXPERIMENTS, PAPER
from experiments.dynamic_clients.measures import (
    after,
    gain,
    number_of,
    pairs,
    session_of,
)
from experiments.dynamic_clients.methods import SHOWN, complete, per_session
from experiments.evidence import mean_by_seed
from experiments.studies import SCALES, Case, Results, Study
from tests.drawn import facts, finished, legend, lines, ticks, titles
from wirelessfl.base.errors import TrainingError
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import spread
from wirelessfl.results.selection import DATA, NAMES
from wirelessfl.runs.folder.about import NUMERICS

pytestmark = pytest.mark.thorough

COUNTS = {
    1: 2 * 2 * 2 * 4 * 2 * 4,
    2: 2 * 2 * 4 * 2 * 3,
    3: 3 * 2 * 2 * 4 * 2 * 4,
    4: 2 * 2 * 3 * 2 * 4,
    5: 5 * 2 * 2 * 4 * 2 * 4,
    6: 2 * 2 * 4 * 2 * 4,
    7: 2 * 2 * 4 * 2 * 3,
    8: 4 * 2 * 5 * 3 * 3,
    9: (8 + 8 + 7 + 7) * 3 * 3,
    10: 2 * 3 * 2,
    11: 7 * 3 * 3,
    12: 2 * 3,
    13: 20 * 3,
    14: 4 * 3 * 2,
}
"""Number of values per table: data sets x overlaps x alphas x algorithms x transitions x starts."""
NOT_RUN = {
    "overlap",
    "table1",
    "table2",
    "table4",
    "table6",
    "table7",
    "table10",
    "table9",
    "table11",
    "fig2",
    "fig4",
    "lenet5",
    "mlp",
    "moon",
    "pilot",
}
"""Experiments that add nothing to test at scale smoke."""


@pytest.mark.parametrize("table", range(1, 15))
def test_published_tables_are_complete(table):
    """Published tables contain every value once, under known names."""
    rows = published.read(table)
    assert len(rows) == COUNTS[table]
    assert len({replace(row, mean=0.0, std=None) for row in rows}) == len(rows)
    for row in rows:
        assert 1 < row.mean < 100
        assert (row.std is not None) == (table <= 7)
        assert row.dataset in DATA
        assert row.algorithm in NAMES
        assert row.warm_start in SHOWN or table == 13


@pytest.mark.parametrize("table", range(1, 15))
def test_every_published_number_has_a_case_at_scale_paper(table):
    names = ("dataset", "algorithm", "warm_start", "overlap", "alpha", "similarity_scale")
    cases = PAPER.study(f"table{table}", "paper").cases
    for row in published.read(table):
        fields = {name: getattr(row, name) for name in names} | {"split": row.distribution}
        stated = {name: value for name, value in fields.items() if value is not None}
        assert any(all(case[name] == stated[name] for name in stated) for case in cases), row


@pytest.mark.parametrize(
    ("table", "wanted", "value"),
    [
        (1, ("cifar10", "fedavg", "proposed", 1, 0.0, 0.3), (65.52, 2.77)),
        (1, ("cifar10", "fedacg", "previous", 1, 0.0, 0.3), (35.46, 7.74)),
        (1, ("cifar100", "fedacg", "average", 2, 0.2, 0.7), (47.24, 0.42)),
        (2, ("ag-news", "fedacg", "average", 2, 0.0, 0.3), (26.21, 1.36)),
        (2, ("ag-news", "fedavg", "previous", 1, 0.6, 0.3), (52.12, 1.33)),
        (3, ("mnist", "fedavg", "average", 2, 0.0, 0.3), (82.05, 0.15)),
        (3, ("fashion-mnist", "scaffold", "continuous", 1, 0.2, 0.3), (67.82, 5.57)),
        (3, ("svhn", "fedacg", "average", 2, 0.2, 0.7), (62.30, 9.89)),
        (4, ("tinyimagenet", "moon", "proposed", 1, 0.0, 0.3), (62.93, 0.46)),
        (5, ("fashion-mnist", "moon", "previous", 4, 0.0, 0.3), (79.48, 0.29)),
        (5, ("cifar100", "fedacg", "average", 4, 0.2, 0.7), (51.15, 0.47)),
        (6, ("tinyimagenet", "fedacg", "previous", 2, 0.0, 0.7), (31.27, 21.23)),
        (7, ("ag-news", "scaffold", "proposed", 1, 0.8, 0.3), (47.26, 0.62)),
    ],
)
def test_published_values_of_dirichlet_splits(table, wanted, value):
    fields = ("dataset", "algorithm", "warm_start", "transition", "overlap", "alpha")
    found = published.find(table, **dict(zip(fields, wanted, strict=True)))
    assert (found.mean, found.std) == value


@pytest.mark.parametrize(
    ("table", "wanted", "mean"),
    [
        (8, ("fashion-mnist", "scaffold", "average", 1, "two-shard"), 22.94),
        (8, ("cifar100", "moon", "average", 3, "partial-overlap"), 49.01),
        (9, ("mnist", "fedprox", "previous", 2, "half"), 90.56),
        (9, ("fashion-mnist", "moon", "proposed", 3, "distinct"), 95.66),
        (9, ("svhn", "moon", "proposed", 1, "distinct"), None),
        (10, ("tinyimagenet", "fedavg", "previous", 3, "half"), 73.42),
        (11, ("mnist", "scaffold", "previous", 1, "partial-overlap"), 33.15),
        (12, ("svhn", "moon", "previous", None, None), 89.53),
        (14, ("svhn", "scaffold", "random-pilot", 1, "half"), 71.78),
        (14, ("cifar10", "fedprox", "proposed", 2, "partial-overlap"), 86.99),
    ],
)
def test_published_values_of_other_splits(table, wanted, mean):
    fields = ("dataset", "algorithm", "warm_start", "transition", "distribution")
    found = published.find(table, **dict(zip(fields, wanted, strict=True)))
    assert mean == (None if found is None else found.mean)


def test_published_values_by_scale_and_indistinct_settings():
    """Published values are found by R; no match gives None, an ambiguous search an error."""
    found = published.find(13, dataset="cifar100", algorithm="fedprox", similarity_scale=150.0,
                           transition=3)  # fmt: skip
    assert found.mean == 59.68
    assert published.find(13, dataset="mnist") is None
    with pytest.raises(ValueError, match="table 12 has 3 numbers"):
        published.find(12, dataset="svhn")


def _alike(case):
    """A key for a case that ignores numeric settings of the split and the warm start."""
    numbers = {"alpha", "overlap", "similarity_scale", "trial_rounds", "history"}
    return repr({name: value for name, value in case.settings.items() if name not in numbers})


def test_every_configuration_can_be_read_at_every_scale():
    """Every configuration is valid; at scale "paper" groups have a published number of clients."""
    by_study = {experiment.study: name for name, experiment in EXPERIMENTS.items()}
    for studied, name in by_study.items():
        for scale in SCALES:
            study = PAPER.study(studied, scale)
            assert study.cases or scale != "paper", name
            assert len({repr(case) for case in study.cases}) == len(study.cases), name
            for case in {_alike(case): case for case in study.cases}.values():
                config = case.config(case.seeds[0])
                assert config.training.weighting == "samples"
                if scale == "paper" and config.named("split") != "distinct":
                    groups = 3 if name == "table12" else 2
                    assert config.network.clients // groups in (20, 50, 100)
                assert NAMES[case["algorithm"]]
                assert SHOWN[case["warm_start"]]


def rates(dataset, algorithm, scale="paper", **other):
    settings = {"dataset": dataset, "algorithm": algorithm, "model": "linear", "clients": 40}
    settings |= {"warm_start": "proposed", "split": "dirichlet", "alpha": 0.3, **other}
    return complete(settings, scale)


def test_settings_of_appendix_d():
    of = rates("mnist", "fedavg")
    assert (of["lr"], of["lr_ratio"], of["rounds"]) == (0.001, 0.6, 50)
    assert (of["similarity_scale"], of["trial_rounds"]) == (10, 1)
    of = rates("fashion-mnist", "scaffold", warm_start="continuous")
    assert (of["lr"], of["lr_ratio"]) == (0.03, 0.9)
    assert (of["distillation"], of["kl_weight"]) == ("csrd", 1)
    assert "similarity_scale" not in of
    of = rates("cifar100", "fedacg", warm_start="previous", model="resnet18")
    assert (of["lr"], of["lr_ratio"], of["rounds"]) == (0.1, 0.5, 150)
    assert (of["acceleration"], of["beta"]) == (0.85, 0.01)
    for algorithm, rate in (("fedavg", 0.005), ("moon", 0.01), ("scaffold", 0.1)):
        of = rates("svhn", algorithm, model="cifar-cnn")
        assert (of["lr"], of["rounds"], of["similarity_scale"]) == (rate, 200, 10)
        assert of["lr_ratio"] == (0.9 if algorithm == "scaffold" else 0.2)
    of = rates("ag-news", "scaffold", model="text-mean")
    assert (of["lr"], of["lr_ratio"], of["rounds"], of["similarity_scale"]) == (0.05, 0.2, 100, 800)
    of = rates("ag-news", "moon", model="text-mean", warm_start="continuous")
    assert (of["lr"], of["kl_weight"]) == (0.005, 0.5)
    of = rates("mnist", "fedacg", clients=200)
    assert (of["acceleration"], of["beta"]) == (0.5, 0.1)
    assert per_session({"clients": 60, "unseen_labels": 2}) == 20
    assert rates("mnist", "fedprox")["mu"] == 1
    assert rates("mnist", "moon")["model"] == "mlp"
    assert "alpha" not in rates("mnist", "fedavg", split="half")
    assert rates("mnist", "fedavg", similarity_scale=0.0)["similarity_scale"] == 0


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("dynamic_clients")


@pytest.fixture(scope="module")
def found(out, figures):
    return PAPER.reproduce(
        [name for name in EXPERIMENTS if name not in NOT_RUN], "smoke", out, make=True
    )


def test_the_figures_show_the_rows(found, figures):
    """The radio has a panel per data set and uplink with the seconds of every warm start."""
    assert set(figures) == {"fig3", "gains", "lasting", "radio"}
    panels = figures["radio"].axes
    assert titles(figures["radio"]) == ["digits, TDMA (n = 1)", "digits, AirComp (n = 1)"]
    assert panels[0].get_ylim() == panels[1].get_ylim()
    for panel, cases in zip(panels, radio.groups(found["radio"]), strict=True):
        assert panel.get_ylabel() == "time to target (s)"
        assert panel.get_yscale() == "log"
        assert ticks(panel) == ["-4", "-2", "-1", "-0.5", "-0.25"]
        costs = [radio.mean_costs(found["radio"], cases, below) for below in radio.DISTANCES]
        shown = {label: y for label, (_, y) in lines(panel).items()}
        for start in costs[0]:
            assert shown[SHOWN[start]] == [cost[start][0][1] for cost in costs if cost[start][0]]
    text = gains.table(found["gains"])
    assert [line.split(" | ")[:2] for line in text.splitlines()[4:]] == [
        ["| linear model", "FedAvg"], ["| linear model", "FedACG"], ["| MLP", "FedAvg"],
        ["| MLP", "MOON"],
    ]  # fmt: skip


def row_of(session, session_round, accuracy, *, start=0.0, extra=0.0, rounds=2):
    done = session * rounds + session_round
    return {
        "session": session, "session_round": session_round, "round": done, "accuracy": accuracy,
        "sim_seconds": start + done + extra, "uplink_mib": 0.5 * (done + extra),
        "downlink_mib": 0.25 * (done + extra), "extra_rounds": int(extra),
        "extra_uploads": 20 * int(extra), "extra_seconds": extra, "extra_mib": 0.75 * extra,
        "stored_bytes": 2**20 * session,
    }  # fmt: skip


def run_of(first, trials, seed=0):
    """Six sessions of two rounds that end at 0.9; sessions from the third on begin at ``first``."""
    rows = []
    for session in range(6):
        extra = float(trials * session)
        begin = first if session >= 3 else 0.2
        for t, accuracy in enumerate((begin, (begin + 0.9) / 2, 0.9)):
            rows.append(row_of(session, t, accuracy, extra=extra))
    return StoredRun({"run": {"seed": seed}}, rows, {"numerics": NUMERICS}, {}, 0.0)


def results_of(runs, **settings):
    """Results of hand-written runs, from ``{warm_start: runs}``."""
    given = {"algorithm": "fedavg", "dataset": "fashion-mnist", "model": "linear", "clients": 40}
    given |= {"split": "dirichlet", "overlap": 0.0, "alpha": 0.3, "uplink": "tdma", "sessions": 6}
    given |= {"pilot_sessions": 1, **settings}
    cases = [Case(given | {"warm_start": start}, (0, 1), 0) for start in runs]
    return Results(Study("by hand", tuple(cases)), dict(enumerate(runs.values())))


HAND = {
    "proposed": [run_of(0.7, 1), run_of(0.8, 1, seed=1)],
    "previous": [run_of(0.1, 0), run_of(0.3, 0, seed=1)],
}


def test_transitions_of_the_paper_are_numbered_from_the_first_that_can_differ():
    """With one pilot session, the paper's transition 1 is the one into session 3."""
    assert [session_of(n) for n in (1, 2, 3)] == [3, 4, 5]
    assert [number_of(session_of(n, 2), 2) for n in (1, 2)] == [1, 2]
    results = results_of(HAND)
    assert after(results, results.study.cases[0], 1) == pytest.approx([85, 87.5])
    assert after(results, results.study.cases[1], 3) == pytest.approx([70, 75])
    assert after(results, results.study.cases[1], 4) == []
    assert spread([85, 87.5]) == "86.2 ± 1.8"
    assert spread([85]) == "85.0"
    assert spread([]) == "-"


def test_costs_to_a_common_accuracy():
    """Costs to reach an accuracy from the first row of a session, including a trial round."""
    results = results_of(HAND)
    (cases,) = radio.groups(results)
    previous = [run.rows for run in HAND["previous"]]
    assert radio.common_target(previous, 3, 2.0) == pytest.approx(0.88)
    found = radio.costs(results, cases, 1, 2.0)
    assert found["proposed"][0] == pytest.approx((2, 3.0, 2.25))
    assert found["previous"][0] == pytest.approx((2, 2.0, 1.5))
    rows = HAND["proposed"][1].rows
    assert radio.cost(rows, 3, 0.8) == pytest.approx((0, 1.0, 0.75))
    assert radio.cost(rows, 3, 0.95) is None
    lost = [row | {"loss": None} if row["session"] == 3 else row for row in rows]
    assert radio.cost(lost, 3, 0.8) is None
    assert radio.common_target([rows, lost], 3, 2.0) == radio.common_target([rows], 3, 2.0)
    text = radio.table(results)
    row = "| TDMA | -2 | Proposed | 2 of 2 | 2.0 ± 0.0 | 3.000 ± 0.000 | 2.250 ± 0.000 |"
    assert row in text
    assert text.count("| 1.000 | 0.750 |") == len(radio.DISTANCES)
    missed = {**HAND, "previous": [replace(HAND["previous"][0], rows=lost), HAND["previous"][1]]}
    results = results_of(missed)
    means = radio.mean_costs(results, radio.groups(results)[0], 2.0)["previous"]
    assert [one is None for one in means] == [True, False], "it misses one of three targets"


def test_gains_are_paired_by_seed():
    """Mean over settings and transitions for the seeds that all have; with the paper's value."""
    results = results_of(HAND)
    (both,) = pairs(results, "previous")
    assert [case["warm_start"] for case in both] == ["proposed", "previous"]
    ours = gain(results, both, 1)
    assert ours == {0: pytest.approx(15), 1: pytest.approx(12.5)}
    found = gains.gain_of(results, "previous")
    assert found.seeds == pytest.approx([ours[0], ours[1]]), "both transitions are alike"
    assert found.paper == pytest.approx(statistics.mean([88.2 - 79.5, 85.1 - 82.7]), abs=0.1)
    assert not found.diverged
    assert gains.gain_of(results, "average") is None
    fewer = results_of({**HAND, "previous": HAND["previous"][1:]})
    assert gains.gain_of(fewer, "previous").seeds == pytest.approx([ours[1]])
    assert mean_by_seed([{0: 1.0, 1: 2.0}, {1: 4.0}]) == {1: 3.0}
    lost = [row | {"loss": None} for row in HAND["previous"][0].rows]
    diverged = results_of({**HAND, "previous": [replace(HAND["previous"][0], rows=lost)]})
    assert gains.gain_of(diverged, "previous").diverged
    assert " †" in gains.table(diverged)
    figure = finished(gains.points(diverged))
    (panel, *_) = figure.axes
    assert "the other warm start diverged" in legend(figure)
    assert gains.LOST in [line.get_marker() for line in panel.get_lines()]


def test_gains_by_round():
    """Differences at each round of a session, mean over the transitions, seed by seed."""
    results = results_of(HAND)
    gains_after = lasting.by_round(results, "previous", algorithm="fedavg")
    assert gains_after[0] == pytest.approx([60, 50])
    assert gains_after[1] == pytest.approx([30, 25])
    assert gains_after[2] == pytest.approx([0, 0])
    assert set(gains_after) == {0, 1, 2}
    figure = finished(lasting.points(results))
    panel, _ = figure.axes
    places = [lasting.SHOWN_AT.index(after) for after in (0, 1, 2)]
    assert lines(panel)["FedAvg"] == (places, pytest.approx([55, 27.5, 0]))
    assert "2 seeds" in facts(figure)
    assert "| FedAvg | Previous | 55.00 ± 7.07 | 27.50 ± 3.54 |" in lasting.table(results)


def test_curves_over_sessions():
    """Each warm start's mean accuracy at every round, lines at new sessions, what was not run."""
    results = results_of({**HAND, "average": []})
    figure = finished(sessions.curves(results, "algorithm", ["dataset"]))
    (panel,) = figure.axes
    x, y = lines(panel)["Proposed"]
    assert list(x) == [2 * session + t for session in range(6) for t in range(3)]
    assert list(y[6:12]) == pytest.approx([20, 55, 90, 75, 82.5, 90]), "sessions 2 and 3"
    assert lines(panel)["Previous"][1][9] == pytest.approx(20)
    ends = [line.get_xdata()[0] for line in panel.get_lines() if len(line.get_xdata()) == 2]
    assert ends == sessions.boundaries(results, results.study.cases) == [2, 4, 6, 8, 10]
    assert [text.get_text() for text in panel.texts] == ["not run: Average"]
    assert sessions.BOUNDARIES in facts(figure)


def test_studies_of_server_momentum_name_it(found):
    """Both values have a row of their own, and the first session is the same with both."""
    text = tables.comparison(found["momentum"], 3)
    assert "FedACG, server momentum reset | 1" in text
    assert "FedACG, server momentum keep | 1" in text
    shown = {}
    for case in found["momentum"].where():
        values = [after(found["momentum"], case, number)[0] for number in (1, 2)]
        shown[case["server_momentum"], case["warm_start"]] = statistics.mean(values)
    for kept in ("reset", "keep"):
        cells = [spread([shown[kept, start]]) for start in ("proposed", "previous")]
        row = f"| linear model, Dir(1) | {kept} | {' | '.join(cells)} |"
        assert row in tables.momenta(found["momentum"])
    runs = {
        case["server_momentum"]: found["momentum"].rows(case)[0]
        for case in found["momentum"].where(warm_start="previous")
    }
    same = [a["loss"] == b["loss"] for a, b in zip(runs["reset"], runs["keep"], strict=True)]
    assert same[: same.index(False)] == [True] * 4, "session 0, and the start of session 1"


def test_costs_are_measured_in_processes_of_their_own(tmp_path, capsys, monkeypatch):
    """A run has CPU time and memory, and is not repeated; a failed run is one line.

    The run with one round per session, whose time is subtracted, is replaced by an empty process.
    """
    study = PAPER.study("costs", "smoke")
    case = study.cases[0]
    study = replace(study, cases=(case,))
    whole = tmp_path / "whole"
    whole.write_text(
        f'#!/bin/sh\nif grep -qx "rounds = 1" "$5"; then echo short >> {tmp_path}/short\n'
        f'else exec {sys.executable} "$@"; fi\n'
    )
    whole.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr("sys.executable", str(whole))
        costs.make(study, tmp_path / "costs.json")
        (found,) = costs.load(tmp_path / "costs.json")
        assert found[:6] == ("digits", "linear", 5, "fedavg", "proposed", 0)
        assert 0.1 < found.cpu_seconds < 300
        assert 50 < found.peak_mib < 5000
        costs.make(study, tmp_path / "costs.json")
    assert costs.load(tmp_path / "costs.json") == [found]
    assert (tmp_path / "short").read_text() == "short\n"
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho first\necho the reason\nexit 3\n")
    failing.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(failing))
    with pytest.raises(TrainingError, match="FedAvg, proposed: the reason"):
        costs.measure(case, 1)
