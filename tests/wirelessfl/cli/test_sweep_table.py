"""The tables of a sweep: order, whole headings, means over seeds; and coupled settings."""

import json
import re

import pytest

from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.cli.output import TOTALS, cells_of
from wirelessfl.cli.sweep import coupled_settings
from wirelessfl.cli.sweep_table import print_tables, sorted_by_cost

SMALL = "--clients 4 --rounds 1 --local-steps 1 --batch-size 8 --threads 1".split()


def summary(seed, seconds, accuracy, **others):
    """A summary of a run with a target, which it reaches after ``seconds`` or not."""
    missed = seconds is None
    return {
        "seed": seed,
        "accuracy": accuracy,
        "target": 0.8,
        "rounds_to_target": None if missed else 7,
        "mib_to_target": None if missed else 1.25,
        "seconds_to_target": seconds,
        "wall_seconds": 1.0,
        "directory": f"runs/{seed}-{others}",
        **others,
    }


RUNS = [
    summary(1, None, 0.5, algorithm="hist"),
    summary(2, 30.0, 0.9, algorithm="hist"),
    summary(1, 20.0, 0.85, algorithm="fedavg"),
    summary(2, None, 0.7, algorithm="fedavg"),
    summary(1, 50.0, 0.85, algorithm="moon"),
    summary(2, 60.0, 0.85, algorithm="moon"),
]


def test_runs_are_sorted_by_the_cost_of_the_target():
    """Runs that have not reached it are last, by their accuracies."""
    rows, line = sorted_by_cost(RUNS)
    assert [row["seconds_to_target"] for row in rows] == [20.0, 30.0, 50.0, 60.0, None, None]
    assert [row["accuracy"] for row in rows[-2:]] == [0.7, 0.5]
    assert line == (
        "sorted by simulated seconds to the target accuracy; 2 of 6 runs did not reach it"
    )


def test_runs_without_a_target_are_sorted_by_accuracy():
    """A diverged model is last."""
    rows = [{"accuracy": value} for value in (0.2, None, 0.9)]
    assert [row["accuracy"] for row in sorted_by_cost(rows)[0]] == [0.9, 0.2, None]
    held = [{"accuracy": 0.9, "validation_accuracy": value} for value in (0.2, 0.3)]
    rows, line = sorted_by_cost(held)
    assert [row["validation_accuracy"] for row in rows] == [0.3, 0.2]
    assert line == "sorted by validation accuracy after the last round, best first"


def test_seeds_have_a_mean_and_a_range(capsys):
    print_tables(["algorithm", "seed"], RUNS)
    below = capsys.readouterr().out.split("mean (range) over seeds")[1]
    lines = [re.split(r"\s*│\s*", line)[1:-1] for line in below.splitlines() if "│" in line]
    assert lines == [
        ["moon", "2", "0.850", "2 of 2", "55.00 (50.00-60.00)"],
        ["fedavg", "2", "0.775 (0.700-0.850)", "1 of 2", "20.00"],
        ["hist", "2", "0.700 (0.500-0.900)", "1 of 2", "30.00"],
    ]


@pytest.mark.parametrize("width", [80, 40])
def test_headings_and_values_are_whole(width, capsys, monkeypatch):
    """Columns of minor costs are left out first; a table that needs more is wider."""
    monkeypatch.setenv("COLUMNS", str(width))
    varied = {"algorithm": "hist", "local_steps": 20, "bandwidth_hz": 12345678.0, "uplink": "tdma"}
    print_tables([*varied, "seed"], [summary(seed, 30.0, 0.9, **varied) for seed in (1, 2)])
    out = capsys.readouterr().out
    assert "…" not in out
    assert "wall s" not in out
    for text in ("algorithm", "bandwidth", "12345678", "simulated"):
        assert text in out
    longest = max(map(len, out.splitlines()))
    assert longest <= width or width == 40


def test_equal_runs_have_one_line(tmp_path, capsys):
    """A setting that does not apply to an algorithm is empty, and does not repeat its line."""
    words = ["sweep", "fedavg,hfedavg", *SMALL, "--cells", "1,2", "--out", str(tmp_path)]
    assert main(words) == 0
    out = capsys.readouterr().out
    lines = [re.split(r"\s*│\s*", line)[1:3] for line in out.splitlines() if "│" in line]
    assert sorted(lines) == [["fedavg", ""], ["hfedavg", "1"], ["hfedavg", "2"]]
    assert "sorted by accuracy after the last round, best first" in out
    assert main([*words, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [(entry["algorithm"], entry["cells"]) for entry in entries] == [
        ("fedavg", None),
        ("fedavg", None),
        ("hfedavg", 1),
        ("hfedavg", 2),
    ]


def test_coupled_settings_vary_together(tmp_path, capsys):
    words = ["sweep", "hfedavg", *SMALL, "--seed", "1,2", "--json", "--out", str(tmp_path)]
    words += ["--with", "cells=1,bandwidth-hz=10e6", "--with", "cells=2,bandwidth_hz=5e6"]
    assert main(words) == 0
    found = [
        (e["seed"], e["cells"], e["bandwidth_hz"]) for e in json.loads(capsys.readouterr().out)
    ]
    assert found == [(1, 1, 10e6), (1, 2, 5e6), (2, 1, 10e6), (2, 2, 5e6)]


def test_coupled_settings_whose_values_are_lists_are_separated_by_semicolons():
    assert coupled_settings("cells=2;cpu_hz=1e9,2e9") == {"cells": "2", "cpu_hz": ("1e9", "2e9")}
    assert coupled_settings("cpu-hz=1e9,2e9;") == {"cpu_hz": ("1e9", "2e9")}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("cells=2,cpu_hz=1e9,2e9", r"'2e9' is not NAME=VALUE\. Separate settings by commas, or by"),
        ("", "'' is not NAME=VALUE"),
        ("cells=", "'cells=' is not NAME=VALUE"),
        ("cells=2,cells=3", "cells occurs twice"),
        ("out=x", "out has one value in a sweep"),
    ],
)
def test_wrong_points_are_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        coupled_settings(words)


def test_a_name_alone_and_in_a_point_is_refused_before_any_run(tmp_path, capsys):
    words = ["sweep", "hist", *SMALL, "--cells", "2", "--with", "cells=3", "--out", f"{tmp_path}/o"]
    assert main(words) == 2
    assert "cells is given both alone and in coupled settings" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_large_numbers_leave_room_for_other_columns():
    """38148285969094608.000 J took the column of the run at 80 characters."""
    cells = cells_of(dict.fromkeys(TOTALS, 3.814828596909461e16), TOTALS)
    assert max(map(len, cells)) <= 8
    assert cells_of({"joules": 5.2}, {"joules": TOTALS["joules"]}) == ["5.200"]
