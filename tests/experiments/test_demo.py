"""The demo with three rounds: its table and its two figures."""

import pytest

from experiments.demo import RUNS, TARGET, cost_of, costs_table, demo, designed
from tests.drawn import marks, ticks


def test_the_demo_prints_its_table_and_draws_two_figures(tmp_path, capsys, figures):
    """Three rounds are too few for the target, which bars and table say."""
    summaries = demo(tmp_path, rounds=3, seeds=(1,))
    assert list(summaries) == list(RUNS)
    runs = [one for (one,) in summaries.values()]
    assert all(run["round"] == 3 for run in runs)
    traffic = [run["uplink_mib"] for run in runs]
    assert traffic[0] > 3.9 * traffic[1]
    seconds = [run["sim_seconds"] for run in runs]
    assert seconds[0] > seconds[1] > seconds[2] > 3 * seconds[3]
    shown = capsys.readouterr().out
    assert "MiB/client" in shown
    assert shown.count("0 of 1") == len(RUNS)
    assert set(figures) == {"demo-mib", "demo-seconds"}
    (traffic,), (time,) = (figures[f"demo-{name}"].axes for name in ("mib", "seconds"))
    assert [name.replace("\n", " ") for name in ticks(time)] == [
        label.replace(",", "") for label in RUNS
    ]
    assert ticks(traffic) == ticks(time)[:3], "sums over the air send no bits"
    assert len(marks(traffic)) == 3


def test_costs_of_the_demo_are_means_over_the_seeds_that_reach_the_target():
    runs = [
        {"accuracy": accuracy, "round": n, "uplink_mib": n, "sim_seconds": 2 * n, "joules": 3 * n}
        for accuracy, n in ((TARGET, 2), (TARGET, 4), (TARGET - 0.01, 60))
    ]
    assert [cost_of(run, "joules") for run in runs] == [6.0, 12.0, None]
    table = costs_table({"HFedAvg": runs, "HIST over the air": runs[:1]})
    cells = [list(column.cells) for column in table.columns]
    assert cells[1:] == [["2 of 3", "1 of 1"], ["3", "2"], ["3", "-"], ["6", "4"], ["9", "6"]]


@pytest.mark.thorough
def test_the_demo_designs_a_run_and_trains_it(tmp_path, capsys, monkeypatch):
    """The design's run reaches the target, and its predictions are printed beside it."""
    design, realised = designed(tmp_path, pilots=3, steps=400)
    assert design.predicted.accuracy == TARGET
    assert realised["accuracy"]["realised"] >= TARGET
    rounds = realised["rounds"]
    assert rounds["predicted"] / 3 < rounds["realised"] < 3 * rounds["predicted"]
    shown = capsys.readouterr().out
    assert "all equal" in shown
    assert f"{rounds['realised']:.4g}" in shown
