"""The HIST paper's figures and tables at smoke scale: the rows behind them."""

import shutil

import numpy as np
import pytest

from experiments.hist import air, figures, tables
from experiments.hist.__main__ import EXPERIMENTS, PAPER
from experiments.hist.cells import accuracy_after, cells_table, mean_staleness, schedule_label
from experiments.runs import Planned, make_runs
from experiments.studies import SCALES
from wirelessfl.config import Config
from wirelessfl.runs.sweep import kept_folder

FCNN = 22_510  # parameters of 64-300-10
MIB = 4 / 2**20


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("hist")


@pytest.fixture(scope="module")
def found(out):
    return PAPER.reproduce(list(EXPERIMENTS), "smoke", out)


def test_everything_is_written_and_nothing_is_run_twice(found, out, capsys):
    for name, experiment in EXPERIMENTS.items():
        assert (out / f"{name}.md").read_text().startswith("| ")
        if experiment.draw is not None:
            assert (out / f"{name}.pdf").read_bytes()[:4] == b"%PDF"
            assert (out / f"{name}.png").stat().st_size > 10_000
    before = {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("rows.jsonl")}
    assert PAPER.main(["fig4", "--scale", "smoke", "--out", str(out)]) == 0
    assert PAPER.main(["fig6", "--scale", "smoke", "--out", str(out), "--only-kept"]) == 0
    assert {p: p.stat().st_mtime_ns for p in (out / "runs").rglob("rows.jsonl")} == before
    assert "drawn: " in capsys.readouterr().out


def test_traffic_is_rounds_times_true_bytes(found):
    """E = 5 uploads a round of the true submodel; HIST with N cells sends about 1/N."""
    for case in found["fig3"].where():
        neurons = 300 / case["cells"] if case["algorithm"] == "hist" else 300
        size = neurons * (64 + 1 + 10) + 10
        for rows in found["fig3"].rows(case):
            for row in rows:
                assert row["uplink_mib"] == pytest.approx(row["round"] * 5 * size * MIB)
    assert found["fig3"].values("split") == ["noniid", "cell-iid"]
    assert {c["cells"] for c in found["fig3"].where(algorithm="hist")} == {2, 4}


def test_every_edge_and_local_period_is_run(found):
    results = found["fig5"]
    pairs = {(c["edge_rounds"], c["local_steps"]) for c in results.where()}
    assert pairs == {(5, 20), (10, 20), (15, 20), (5, 40), (5, 60)}
    for case in results.where():
        (rows,) = results.rows(case)
        size = 100 * (64 + 1 + 10) + 10
        assert rows[-1]["uplink_mib"] == pytest.approx(3 * case["edge_rounds"] * size * MIB)


def test_optimized_masks_take_fewer_seconds_than_uniform_ones_and_hfedavg_most(found):
    results = found["fig6"]
    for cells in (2, 4):
        seconds = []
        for wanted in (
            {"mask_sizes": "optimized"},
            {"mask_sizes": "uniform"},
            {"algorithm": "hfedavg"},
        ):
            (case,) = results.where(cells=cells, **wanted)
            seconds.append([rows[-1]["sim_seconds"] for rows in results.rows(case)])
        optimized, uniform, full = map(np.array, seconds)
        assert (optimized < uniform).all()
        assert (uniform < full).all()


def test_the_partition_schemes_are_drawn_from_real_masks(found):
    """Every second layer: each weight belongs to one cell. All layers: cross blocks rest."""
    (half,) = found["fig8"].where(cells=4, partition="alternate")
    (all_layers,) = found["fig8"].where(cells=4, partition="all")
    for layer in figures.owners(half):
        assert set(np.unique(layer)) == {0, 1, 2, 3}
        assert (np.bincount(layer.ravel()) == layer.size // 4).all()
    first, second, third, last = figures.owners(all_layers)
    for layer in (second, third):
        assert (layer == -1).sum() == 12 * 12 - 4 * 3 * 3
    assert (first >= 0).all()
    assert (last >= 0).all()
    sent = {
        case["partition"]: found["fig8"].rows(case)[0][1]["uplink_mib"]
        for case in (half, all_layers)
    }
    blocks = {"alternate": 3 * 65 + 12 * 4 + 3 * 13 + 10 * 4 - 1, "all": 3 * 65 + 12 + 12 + 40}
    assert sent["all"] == pytest.approx(5 * blocks["all"] * MIB, rel=0.02)
    assert sent["alternate"] > 1.15 * sent["all"]


def test_local_biases_are_not_sent(found):
    results = found["ablations"]
    for dropout in (0.5, 0.0):
        sent = {}
        for biases in ("local", "exchanged"):
            (case,) = results.where(dropout=dropout, hidden_biases=biases)
            sent[biases] = results.rows(case)[0][-1]["uplink_mib"]
        assert sent["exchanged"] - sent["local"] == pytest.approx(3 * 5 * 150 * MIB)
    text = tables.ablation_rows(results)
    assert text.count("`wirelessfl run ") == len(results.where()) == 6


@pytest.mark.parametrize(
    ("rounds", "cells", "mb"), [(262, 2, 115.30), (320, 4, 76.06), (244, 1, 206.18), (28, 1, 23.66)]
)
def test_the_published_accounting_gives_the_published_numbers(rounds, cells, mb):
    assert tables.published_mb(rounds, cells, 0.169, 2572, 59134) == pytest.approx(mb, rel=0.01)


def test_targets_are_compared_round_by_round_with_the_paper(found):
    text = tables.targets(found["table1"])
    assert "| fully non-i.i.d. | HIST, N = 2 |" in text
    assert "30 / 262" in text
    assert "28 / 244" in text
    assert "115.30" in text
    assert text.count("\n") == 2 + 8
    assert tables.targets(found["table2"]).count("\n") == 2 + 8


def test_missing_runs_are_said_and_cases_come_in_order(tmp_path, capsys):
    for name in {e.study for e in EXPERIMENTS.values()}:
        for scale in SCALES:
            study = PAPER.study(name, scale)
            assert study.cases or (name, scale) == ("table2", "small")
    made = []
    study = PAPER.study("fig3", "small")
    for run in sorted(study.planned(), key=lambda run: run.rank):
        made.append((run.config.training.rounds, run.config.run.seed))
    assert {seed for _, seed in made[:12]} == {1}  # the core with one seed comes first
    found = PAPER.reproduce(["fig3", "table2"], "small", tmp_path, only_kept=True)
    assert "Not run: HFedAvg, N = 2" in (tmp_path / "fig3.md").read_text()
    assert not found["fig3"].where()
    assert "no runs are defined at scale small" in capsys.readouterr().out


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if e.draw is not None])
@pytest.mark.parametrize("which", [0, -1])
def test_an_interrupted_study_is_drawn_from_what_is_there(name, which, found, out, tmp_path):
    """One run alone, the first or the last planned, makes a picture and a line on the others."""
    study = PAPER.study(EXPERIMENTS[name].study, "smoke")
    config = study.planned()[which].config
    kept = kept_folder(config, out / "runs")
    shutil.copytree(kept, kept_folder(config, tmp_path / "runs"))
    (results,) = PAPER.reproduce([name], "smoke", tmp_path, only_kept=True).values()
    assert sum(len(runs) for runs in results.runs.values()) == 1
    assert "Not run: " in (tmp_path / f"{name}.md").read_text()
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_a_finished_run_is_not_made_again_and_equal_ones_are_made_once(tmp_path):
    config = Config.from_flags("hist", clients=8, rounds=1, local_steps=1, threads=1)
    make_runs([Planned("a", config, 2), Planned("b", config, 1)], tmp_path)
    (folder,) = tmp_path.iterdir()
    before = (folder / "rows.jsonl").stat().st_mtime_ns
    make_runs([Planned("c", config)], tmp_path)
    assert (folder / "rows.jsonl").stat().st_mtime_ns == before


def test_bad_words_are_one_line(tmp_path, capsys):
    assert PAPER.main(["fig3", "--scale", "smoke", "--out", str(tmp_path), "--jobs", "0"]) == 2
    assert "jobs is 0" in capsys.readouterr().err


def test_air_errors_are_those_predicted_and_fall_with_the_snr(found):
    """Realised errors are means over 3 rounds of 5 uploads of 4 cells of some 4,700 elements."""
    realised = {}
    for case in found["fig7a"].where(uplink="aircomp"):
        (rows,) = found["fig7a"].rows(case)
        for row in rows[1:]:
            assert row["air_error"] == pytest.approx(row["air_error_predicted"], rel=0.05)
        realised[case["snr_db"]] = rows[-1]["air_error"]
    assert realised[-20.0] == pytest.approx(1e4 * realised[20.0], rel=1e-3)
    conventions = {
        (c["convention"], c["beamformer"]): found["fig7d"].rows(c)[0][-1]["air_error"]
        for c in found["fig7d"].where()
    }
    for convention in ("published", "physical"):
        best, paper, random = (conventions[convention, b] for b in air.BEAMFORMERS)
        assert best <= 1.01 * paper < random
    assert all(conventions["physical", b] < conventions["published", b] for b in air.BEAMFORMERS)


def test_seconds_over_oma_are_planned_for_every_snr(found):
    """At a run's own SNR they are the run's; they fall with it. Over the air it does not matter."""
    results = found["fig7b"]
    (case,) = results.where(uplink="tdma", algorithm="hist")
    (rows,) = results.rows(case)
    planned = [air.simulated_seconds(case, 1, snr, 3) for snr in (-10.0, 20.0)]
    assert planned[1] == pytest.approx(rows[3]["sim_seconds"], rel=1e-12)
    assert planned[0] > 2 * planned[1]
    ends = {results.rows(c)[0][-1]["sim_seconds"] for c in results.where(uplink="aircomp")}
    assert len(ends) == 2  # HIST and HFedAvg
    assert max(ends) < planned[1]


def test_a_cloud_that_does_not_wait_merges_sooner(found):
    """Slow cells take 10 times as long and more: B cells are in long before all are."""
    results = found["cells"]
    for algorithm in ("hist", "hfedavg"):
        cases = {schedule_label(c): c for c in results.where(algorithm=algorithm)}
        assert set(cases) == {"rounds", "B = 4", "B = 2"}
        ends = {name: results.rows(case)[0][-1] for name, case in cases.items()}
        assert {row["round"] for row in ends.values()} == {4}
        seconds = [ends[name]["sim_seconds"] for name in ("B = 2", "B = 4", "rounds")]
        assert seconds == sorted(seconds)
        assert seconds[2] > 4 * seconds[1]
        sent = {name: row["uplink_mib"] for name, row in ends.items()}
        assert sent["rounds"] / sent["B = 2"] == pytest.approx(4, rel=0.1)
        assert mean_staleness(results.rows(cases["rounds"])[0]) == 0
        assert mean_staleness(results.rows(cases["B = 2"])[0]) > 0
    text = cells_table(results)
    assert text.count("\n") == 2 + 6
    rows = [{"sim_seconds": s, "accuracy": a} for s, a in ((0, 0.1), (2, 0.5), (3, 0.4))]
    assert [accuracy_after(rows, at) for at in (0, 1.9, 2, 9)] == [0.1, 0.1, 0.5, 0.4]


def test_oma_grows_with_the_clients_and_the_air_does_not(found):
    seconds = {
        (c["algorithm"], c["uplink"], c["clients"]): found["fig7c"].rows(c)[0][-1]["sim_seconds"]
        for c in found["fig7c"].where()
    }
    assert seconds["hist", "tdma", 16] > 1.5 * seconds["hist", "tdma", 8]
    assert seconds["hist", "aircomp", 16] < 1.3 * seconds["hist", "aircomp", 8]
    assert seconds["hist", "aircomp", 16] < seconds["hfedavg", "aircomp", 16]
