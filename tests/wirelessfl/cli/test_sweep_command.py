"""``wirelessfl sweep``: a line per run, means over seeds; and coupled settings."""

import json
import re

import pytest

from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.cli.sweep import coupled_settings

SMALL = "--clients 4 --rounds 1 --local-steps 1 --batch-size 8 --threads 1".split()


def test_equal_runs_have_one_line(tmp_path, capsys):
    """A setting that does not apply to an algorithm is empty, and does not repeat its line."""
    words = ["sweep", "fedavg,hfedavg", *SMALL, "--cells", "1,2", "--out", str(tmp_path)]
    assert main(words) == 0
    out = capsys.readouterr().out
    lines = [re.split(r"\s*│\s*", line)[1:3] for line in out.splitlines() if "│" in line]
    assert sorted(lines) == [["fedavg", "-"], ["hfedavg", "1"], ["hfedavg", "2"]]
    assert main([*words, "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [(entry["algorithm"], entry["cells"]) for entry in entries] == [
        ("fedavg", None),
        ("fedavg", None),
        ("hfedavg", 1),
        ("hfedavg", 2),
    ]


def test_seeds_have_a_second_table(tmp_path, capsys):
    words = ["sweep", "fedavg", *SMALL, "--lr", "0.1,0.2", "--seed", "1,2", "--out", str(tmp_path)]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [re.split(r"\s*│\s*", line)[1:4] for line in lines if "│" in line]
    assert sorted(cells[:4]) == [
        ["0.1", "1", "1"],
        ["0.1", "2", "1"],
        ["0.2", "1", "1"],
        ["0.2", "2", "1"],
    ]
    assert sorted(line[:2] for line in cells[4:]) == [["0.1", "2"], ["0.2", "2"]]


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
