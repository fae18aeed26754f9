"""Selection, groups, tables, comparisons and figures of stored runs, against their rows."""

import csv
import io
import json
import math
import statistics

import pytest
from scipy import stats

from tests.drawn import lines
from tests.wirelessfl.results.conftest import rows_of
from wirelessfl import load, load_all
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import STYLES
from wirelessfl.base.figures.marks import DIVERGED, marks_of
from wirelessfl.results import Runs
from wirelessfl.results.comparison import compare
from wirelessfl.runs.plots import plotted


def test_selection_by_settings(stored, tmp_path):
    """Single values, lists of values, settings without effect, functions, and unknown names."""
    for lr in (0.1, 0.2, 0.3):
        stored("fedavg", [0.1, 0.9], lr=lr)
    stored("hist", [0.1, 0.5], cells=2, hidden=(30,), finished=False)
    runs = load_all(tmp_path / "runs")
    assert len(runs) == 4
    assert [run.settings["lr"] for run in runs.where(algorithm="fedavg", lr=[0.1, 0.3])] == [
        0.1,
        0.3,
    ]
    assert len(runs.where(cells=2)) == len(runs.where(cells=None)) - 2 == 1
    assert len(runs.where(hidden=(30,))) == len(runs.where(hidden=[30])) == 1
    assert len(runs.where(lambda run: run.finished)) == 3
    assert len(runs.where(lambda run: run.rows[-1]["accuracy"] > 0.8, lr=0.2)) == 1
    assert runs.where(mu=1.0)._runs == (), "a setting of other algorithms"
    with pytest.raises(ConfigError, match=r"unknown setting 'algoritm'\. Do you mean 'algorithm'"):
        runs.where(algoritm="hist")
    with pytest.raises(ConfigError, match="test is 3: give a function of a run, or settings"):
        runs.where(3)
    with pytest.raises(ConfigError, match=r"runs\[0\] is 'a': give results of runs\. wirelessfl"):
        Runs(["a"])
    assert isinstance(runs[1:], Runs)
    assert runs[0].settings["lr"] == 0.1
    assert list(runs.by("lr")) == [0.1, 0.2, 0.3]
    assert {key: len(own) for key, own in runs.by("algorithm", "cells").items()} == {
        ("fedavg", None): 3,
        ("hist", 2): 1,
    }
    with pytest.raises(ConfigError, match="no setting to group by"):
        runs.by()
    assert repr(runs) == (
        "4 runs: fedavg on digits, hist on digits; differ in algorithm, lr; 1 unfinished"
    ).replace("algorithm, ", "")


def test_paths_of_runs(stored, tmp_path, monkeypatch):
    """A run, a folder, a pattern, several of them; each run once; other folders are skipped."""
    first, second = stored("fedavg", [0.1]), stored("fedprox", [0.1])
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "config.toml").write_text("a user's own file")
    monkeypatch.chdir(tmp_path)
    for paths in ("runs", [first, second], "runs/fed*", ["runs", first], "**/fed*"):
        assert [run.directory.name for run in load_all(paths)] == [first.name, second.name]
    assert len(load_all(first)) == 1
    with pytest.raises(ConfigError, match=r"runs/other contains no run\. Give"):
        load_all("runs/other")
    with pytest.raises(ConfigError, match=r"x\* does not exist"):
        load_all(["runs", "x*"])


def test_table_by_hand(two_algorithms):
    """Means, ranges, bounds if a run misses the target, and the order."""
    table = load_all(two_algorithms).table("algorithm", target=0.8)
    prox, avg = table.rows
    assert (prox["algorithm"], avg["algorithm"]) == ("fedprox", "fedavg"), "all reached it"
    assert (avg["runs"], avg["reached"], prox["reached"]) == (3, 2, 3)
    assert avg["accuracy"] == pytest.approx((0.9 + 0.8 + 0.4) / 3)
    assert (avg["accuracy_low"], avg["accuracy_high"]) == (0.4, 0.9)
    whole = 3  # rounds of the run that misses the target
    assert (avg["rounds_low"], avg["rounds_high"]) == (2, None)
    assert avg["rounds"] == pytest.approx((2 + 3 + whole) / 3)
    assert avg["seconds"] == pytest.approx((4 + 6 + 2 * whole) / 3)
    assert prox["seconds"] == pytest.approx(statistics.mean([1.0, 1.0, 2.0]))
    assert prox["mib"] == pytest.approx(statistics.mean([0.25, 0.25, 0.5]))
    assert prox["joules"] == pytest.approx(statistics.mean([0.05, 0.05, 0.1]))
    text = str(table).splitlines()
    assert text[0] == "costs until accuracy 0.8"
    assert "│ fedavg" in text[5]
    assert "2 of 3" in text[5]
    assert "at least 2.67" in text[5]
    assert "0.700 (0.400 to 0.900)" in text[5]
    (line,) = [line for line in csv.DictReader(io.StringIO(table.to_csv())) if line["rounds"] > "2"]
    assert (line["seconds_low"], line["seconds_high"]) == ("4.0", "")
    assert json.loads(table.to_json()) == table.rows
    latex = table.to_latex().splitlines()
    assert latex[1] == r"\begin{tabular}{llrlrrrr}"
    assert latex[5].startswith("fedprox & 3 & ")
    assert latex[6].startswith(r"fedavg & 3 & 0.700 (0.400 to 0.900) & 2 of 3 & at least 2.67 &")
    assert "<td>2 of 3</td>" in table._repr_html_()


def test_tables_of_other_fields_and_averages(two_algorithms):
    """Smaller losses are better; averages over tests; whole runs without a target."""
    runs = load_all(two_algorithms)
    table = runs.table("algorithm", target=2.2, field="loss")
    assert [row["reached"] for row in table.rows] == [3, 2], "a loss of 2.2 is an accuracy of 0.8"
    assert table.headings["final"] == "loss"
    assert table.rows[1]["final"] == pytest.approx(3 - 0.7)
    averaged = runs.table("algorithm", target=0.8, tests=2)
    assert [row["reached"] for row in averaged.rows] == [2, 1]
    assert averaged.rows[1]["rounds"] == 3, "0.8 and 0.9"
    assert averaged.rows[1]["accuracy"] == pytest.approx((0.85 + 0.75 + 0.35) / 3)
    whole = runs.table("algorithm")
    assert "reached" not in whole.headings
    assert [row["algorithm"] for row in whole.rows] == ["fedprox", "fedavg"], "by accuracy"
    assert whole.rows[1]["seconds"] == 6
    assert runs.table("algorithm", sort="rounds").rows[0]["algorithm"] == "fedprox"
    for flags, message in (
        ({"sort": "second"}, "sort is 'second'. Do you mean 'seconds'"),
        ({"target": 80}, "target is 80: give an accuracy in"),
        ({"field": "acuracy"}, "field is 'acuracy', which no row has. Do you mean 'accuracy'"),
        ({"tests": 0}, "tests is 0"),
        ({"by": "algo"}, "unknown setting 'algo'"),
        ({"by": []}, "by is empty"),
        ({"by": 3}, "by is 3: name a setting"),
    ):
        with pytest.raises(ConfigError, match=message):
            runs.table(**flags)
    with pytest.raises(ConfigError, match="no run has seed=9: select others"):
        runs.where(seed=9).table()
    with pytest.raises(ConfigError, match="there are no runs: select others"):
        runs.where(lambda run: False).table()


@pytest.mark.parametrize(("equal", "notes"), [(0.2, 0), (0.1, 1)])
def test_tables_say_that_bands_cost_energy(stored, tmp_path, equal, notes):
    """If runs take more than twice the joules of equal shares in the same rounds."""
    stored("fedavg", (0.1, 0.5), uplink="ofdma")
    decided = {"round_seconds": 0.9, "equal_seconds": 1.0, "equal_joules": equal}
    rows = rows_of((0.1, 0.5), 2.5, **decided)  # 0.25 J
    stored("fedavg", (), rows=rows, uplink="ofdma", allocation="optimal")
    table = load_all(tmp_path / "runs").table()
    assert len(table.notes) == notes
    for note in table.notes:
        assert note.startswith("allocation optimal: 0.25 instead of 0.1 J per client")
        assert "for 10 % less time" in note


def test_groups_that_mix_settings_are_noted(stored, tmp_path):
    """Runs that differ in more than seeds are said to; groups by default do not mix settings."""
    for lr in (0.3, 0.1):
        stored("fedavg", [0.1, 0.9], lr=lr)
    stored("fedavg", [0.1], finished=False, lr=0.1, seed=2)
    stored("fedavg", [], finished=False, lr=0.1, seed=3)
    runs = load_all(tmp_path / "runs")
    assert runs.table("algorithm").notes == ("fedavg: its runs differ in lr, not only in seeds",)
    table = runs.table()
    assert table.notes == ()
    assert [case.label for case in runs.cases()] == ["lr 0.1", "lr 0.3"]
    assert [row["runs"] for row in table.rows] == [1, 3]
    assert "3 (2 unfinished)" in str(table)


def test_diverged_runs_reach_nothing(stored, tmp_path):
    """They are counted, and means are those of the other seeds."""
    rows = [row | {"loss": None} for row in rows_of([0.1, 0.9])]
    stored("fedavg", [], rows=rows)
    (row,) = load_all(tmp_path / "runs").table(target=0.5).rows
    assert (row["accuracy"], row["reached"], row["rounds"]) == (None, 0, None)
    stored("fedavg", [0.1, 0.7], seed=2)
    table = load_all(tmp_path / "runs").table(target=0.5)
    (row,) = table.rows
    assert (row["accuracy"], row["diverged"], row["reached"]) == (0.7, 1, 1)
    assert "2 (1 diverged)" in str(table)


def test_comparison_paired_by_seed(two_algorithms):
    """Differences and ratios are those of equal seeds; the interval is Student's."""
    runs = load_all(two_algorithms)
    groups = {name: runs.where(algorithm=name) for name in ("fedavg", "fedprox")}
    found = compare(groups, target=0.8)
    assert found.settings["algorithm"] == [["fedavg"], ["fedprox"]]
    assert found.settings["mu"] == [[None], [0.01]]
    assert "seed" not in found.settings
    effects = found.effects["fedprox"]
    values = [0.0, -10.0, 45.0]
    accuracy = effects["accuracy, in points"]
    assert accuracy.values == pytest.approx(values)
    half = stats.t.ppf(0.975, 2) * statistics.stdev(values) / math.sqrt(3)
    assert accuracy.interval == pytest.approx((statistics.mean(values) - half,
                                               statistics.mean(values) + half))  # fmt: skip
    seconds = effects["simulated s, as a ratio"]
    assert seconds.values == pytest.approx([math.log(1 / 4), math.log(1 / 6), math.log(2 / 6)])
    assert seconds.at_most, "FedAvg with seed 3 needs more than its 6 seconds"
    assert "at most" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["paired"]["fedprox"]
    alone = compare({"a": groups["fedavg"][:1], "b": groups["fedprox"][:1]})
    assert (alone.effects, alone.notes) == ({}, ())
    few = compare({"a": groups["fedavg"][:2], "b": groups["fedprox"][1:]})
    assert few.effects == {}
    assert "b and a have 1 seed in common: no interval" in str(few)
    twice = compare({"a": groups["fedavg"], "b": Runs([*groups["fedprox"], *groups["fedprox"]])})
    assert "several runs have the same seed" in str(twice)
    with pytest.raises(ConfigError, match="needs two runs or groups"):
        compare({"a": groups["fedavg"]})


def test_figures_show_the_rows(two_algorithms):
    """Lines are means over seeds up to the shortest run; axes have units; labels names."""
    runs = load_all(two_algorithms)
    (panel,) = runs.plot("seconds", "accuracy", by="algorithm", target=0.8).axes
    drawn = lines(panel)
    assert drawn["FedAvg"][0] == pytest.approx([0, 2, 4, 6])
    assert drawn["FedAvg"][1] == pytest.approx(
        [10, 100 * (0.5 + 0.4 + 0.2) / 3, 100 * (0.8 + 0.7 + 0.3) / 3, 100 * (0.9 + 0.8 + 0.4) / 3]
    )
    assert drawn["FedProx"][0] == pytest.approx([0, 1, 2])
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("simulated time (s)", "test accuracy (%)")
    assert panel.get_lines()[-1].get_ydata()[0] == 80
    (panel,) = runs.plot("joules", "loss", by="algorithm", log="xy", target=2.2).axes
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    assert panel.get_xlabel() == "energy per client (J)"
    assert lines(panel)["FedProx"][0] == pytest.approx([0.05, 0.1]), "0 is not on the axis"
    assert panel.get_lines()[-1].get_ydata()[0] == 2.2
    (panel,) = runs[0].plot("wall", style="ieee").axes
    assert lines(panel)["fedavg on digits"][0] == [0, 7, 14, 21]
    assert panel.get_title() == "fedavg on digits"
    assert runs[0].plot()._repr_png_()[:4] == b"\x89PNG"
    sizes = {tick.get_fontsize() for tick in runs.plot(by="algorithm").axes[0].get_xticklabels()}
    assert sizes == {STYLES["screen"].small}
    for flags, message in (
        ({"y": "f1"}, "y is 'f1', which no row has"),
        ({"x": "time"}, "x is 'time', which no row has. Do you mean 'seconds'"),
        ({"y": "accuracy,loss"}, "y is 'accuracy,loss': name one field"),
        ({"x": "second"}, "Do you mean 'seconds'"),
        ({"style": "iee"}, "Do you mean 'ieee'"),
        ({"target": "x"}, "target is 'x': give a number"),
        ({"log": "z"}, "log is 'z'. Choose x, y, xy"),
    ):
        with pytest.raises(ValueError, match=message):
            runs.plot(**flags)


def test_groups_have_labels_of_ones_own(two_algorithms):
    runs = load_all(two_algorithms)
    (panel,) = runs.plot(by="algorithm", labels={"FedAvg": "equal bands"}).axes
    assert [*lines(panel)] == ["equal bands", "FedProx"]
    for labels, message in (
        ({"FedAvgs": "x"}, "labels has 'FedAvgs', which no curve has. Do you mean 'FedAvg'"),
        ({"FedAvg": "FedProx"}, "give each curve a label of its own"),
    ):
        with pytest.raises(ConfigError, match=message):
            runs.plot(by="algorithm", labels=labels)


def test_rows_of_all_runs(stored, tmp_path):
    """Each row has the folder, the seed and the settings that differ."""
    first = stored("fedavg", [0.1, 0.2], lr=0.1)
    stored("fedavg", [0.3], lr=0.2)
    rows = load_all(tmp_path / "runs").to_rows()
    assert [(row["lr"], row["accuracy"]) for row in rows] == [(0.1, 0.1), (0.1, 0.2), (0.2, 0.3)]
    assert rows[0] == {"folder": str(first), "seed": 1, "lr": 0.1, **load(first).rows[0]}


def test_a_long_legend_leaves_room_for_the_panel():
    """The figure grows with labels of unlike runs, which are wrapped and hide no curve."""
    rows = [{"round": n, "accuracy": 0.1 * n} for n in range(3)]
    curves = {f"curve {n}, " + ", ".join(f"a long setting {n}" for n in range(6)): [rows]
              for n in range(12)}  # fmt: skip
    figure = plotted(curves, "rounds")
    figure.draw_without_rendering()
    (panel,) = figure.axes
    box = panel.get_window_extent()
    assert box.height > 0.4 * plotted({"A": [rows]}, "rounds").bbox.height
    (legend,) = figure.legends
    assert legend.get_window_extent().y0 >= box.y1
    assert legend.get_window_extent().width < figure.bbox.width


@pytest.mark.parametrize("lost", [1, 2])
def test_diverged_seeds_are_counted_in_comparisons(stored, tmp_path, lost):
    """Effects and means are those of the others, or there are none."""
    for seed in (1, 2):
        stored("fedavg", [0.1, 0.6], seed=seed)
        rows = rows_of([0.1, 0.9])
        if seed <= lost:
            rows[1]["loss"] = None
        stored("fedprox", [], rows=rows, seed=seed)
    runs = load_all(tmp_path / "runs")
    groups = {name: runs.where(algorithm=name) for name in ("fedavg", "fedprox")}
    comparison = compare(groups)
    effect = comparison.effects["fedprox"]["accuracy, in points"]
    assert effect.values == pytest.approx([30.0] * (2 - lost))
    assert sum(effect.diverged) == lost
    assert ("1 seed, 1 diverged" if lost == 1 else "in points: diverged") in str(comparison)
    assert f"2 ({lost} diverged)" in str(comparison)
    json.dumps(comparison.to_dict(), allow_nan=False)
    (panel,) = runs.plot_against("algorithm").axes
    assert len(marks_of(panel, DIVERGED)) == 1
