"""Sweeps over choices: settings vary only with their choice; flags without effect are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wirelessfl.base.errors import ConfigError
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.config.combinations import configurations as combinations
from wirelessfl.runs.folder.identity import settings_hash

FEDAVG = {"algorithm": {"name": "fedavg"}}
SMALL = "--clients 4 --rounds 1 --local-steps 1 --batch-size 8 --threads 1".split()


def product(**values):
    """All combinations of two lists of values."""
    (first, second), (ones, others) = values.keys(), values.values()
    return [{first: one, second: other} for one in ones for other in others]


def test_a_setting_varies_only_with_its_choice(tmp_path: Path, capsys) -> None:
    """With two values of alpha, there is one run with split iid, and two with Dirichlet splits."""
    out = tmp_path / "sweep"
    words = ["sweep", "fedavg", *SMALL, "--split", "iid,dirichlet", "--alpha", "0.5,1"]
    assert main([*words, "--json", "--out", str(out)]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["split"], row["alpha"]) for row in rows] == [
        ("iid", None),
        ("iid", None),
        ("dirichlet", 0.5),
        ("dirichlet", 1.0),
    ]
    assert len(list(out.rglob("rows.jsonl"))) == 3
    assert rows[0]["accuracy"] == rows[1]["accuracy"]


def test_ignored_settings_do_not_change_the_hash() -> None:
    configs = combinations(FEDAVG, product(split=["iid", "dirichlet"], alpha=[0.1, 0.5]))
    assert [config.split for config in configs[:2]] == [
        Config.from_flags("fedavg", split="iid").split
    ] * 2
    assert [config.split.alpha for config in configs[2:]] == [0.1, 0.5]
    assert len({settings_hash(config) for config in configs}) == 3


def test_a_sweep_may_vary_a_path(tmp_path: Path, monkeypatch, capsys) -> None:
    """The JSON summary contains paths as strings."""
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(f"{name}.csv").write_text("client,join,leave\n0,0,\n1,0,\n")
    words = ["sweep", "fedavg", *SMALL, "--sessions", "2", "--presence", "trace"]
    assert main([*words, "--trace", "a.csv,b.csv", "--json", "--out", "sweep"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["trace"] for row in rows] == [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]


@pytest.mark.parametrize(
    ("targets", "title"),
    [("0.1,0.2", "costs of the whole runs"), ("0.1", "costs until accuracy 0.1")],
)
def test_the_table_names_a_target_that_all_runs_share(tmp_path, capsys, targets, title) -> None:
    words = ["sweep", "fedavg", *SMALL, "--target", targets, "--seed", "1,2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].strip() == title


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"split": ["iid", "noniid"], "alpha": [0.1, 0.5]},
            'alpha=0.1 is a setting of split "dirichlet", and split is "iid": choose split "diric',
        ),
        (
            {"schedule": ["rounds", "simultaneous"], "requests": [4, 8]},
            'requests=4 is a setting of schedule "buffered", and schedule is "rounds": choose sche',
        ),
        (
            {"uplink": ["tdma", "fixed"], "cells": [1, 2]},
            'cells=1 conflicts with algorithm "fedavg", which is a star with one server: choose "h',
        ),
        (
            {"uplink": ["tdma", "fixed"], "min_sampels": [1, 2]},
            "unknown setting 'min_sampels' of algorithm 'fedavg'",
        ),
    ],
)
def test_a_flag_that_no_combination_uses_is_refused(flags, message) -> None:
    with pytest.raises(ConfigError) as refused:
        combinations(FEDAVG, product(**flags))
    assert str(refused.value).startswith(message)


def test_the_command_names_the_flag_that_no_combination_uses(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "fedavg", *SMALL, "--split", "iid,noniid", "--alpha", "0.1"]) == 2
    error = capsys.readouterr().err
    assert 'alpha=\'0.1\' is a setting of split "dirichlet", and split is "iid": choose' in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_setting_applies_only_to_the_schedule_that_has_it(tmp_path: Path, capsys) -> None:
    words = ["sweep", "fedavg", *SMALL, "--schedule", "rounds,buffered", "--requests", "4"]
    words += ["--eval-every", "1", "--buffer", "2", "--json"]
    assert main([*words, "--out", str(tmp_path / "sweep")]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["schedule"] for row in rows] == ["rounds", "buffered"]
    rounds, buffered = combinations(FEDAVG, product(schedule=["rounds", "buffered"], requests=[4]))
    assert rounds.tables["schedule"] == {"name": "rounds"}
    assert buffered.schedule.requests == 4
    assert rounds == Config.from_flags("fedavg", schedule="rounds")


def test_settings_of_sections_are_dropped_where_they_have_no_effect() -> None:
    configs = combinations(FEDAVG, product(uplink=["tdma", "fixed"], snr_db=[10.0, 20.0]))
    assert [config.network.snr_db for config in configs] == [10.0, 20.0, None, None]
    assert len({settings_hash(config) for config in configs}) == 3


def test_settings_without_effect_in_a_file_are_refused_in_sweeps() -> None:
    tables = {**FEDAVG, "network": {"cells": 2}}
    with pytest.raises(ConfigError, match=r"cells=2 conflicts with algorithm .fedavg."):
        combinations(tables, product(split=["iid", "noniid"], seed=[1, 2]))
