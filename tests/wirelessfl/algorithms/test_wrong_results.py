"""What errors in a user's algorithm leave; its title; methods that it lacks."""

import re
from dataclasses import dataclass

import pytest
import torch

import wirelessfl
from wirelessfl.algorithms import Algorithm, find_algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.base.errors import ConfigError, TrainingError


@dataclass(frozen=True)
class Narrow(FedAvg):
    def merge(self, server, received):
        return {"params": server["params"][:, :5]}


@dataclass(frozen=True)
class FailsLater(FedAvg):
    """Fails in the third merge."""

    def initial(self, params):
        return {"params": params, "left": torch.full_like(params, 2)}

    def merge(self, server, received):
        1 / int(server["left"].max())
        return super().merge(server, received) | {"left": server["left"] - 1}


@dataclass(frozen=True)
class NoMerge(Algorithm):
    def send(self, params, state, cohort):
        return {"update": params - cohort.start}


def path_of(rule):
    return f"{__name__}:{rule.__qualname__}"


@pytest.fixture
def train(config, toy, monkeypatch):
    """Function that runs an algorithm of this file, named by its import path."""

    def run(rule, *, on_row=None, **settings):
        monkeypatch.setattr(
            "wirelessfl.base.registry.import_path", lambda kind, path: globals()[path.split(":")[1]]
        )
        more = {"hidden": (5,), "clients": 4, "chunk": 2, "rounds": 1} | settings
        return wirelessfl.run(config(path_of(rule), **more), data=toy, on_row=on_row)

    return run


def test_an_error_in_the_first_round_leaves_no_folder(train, tmp_path):
    """The next run can use the same folder; a folder that was there before remains, empty."""
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises(ConfigError):
            train(Narrow, out=tmp_path / name, eval_every=10)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not any((tmp_path / "there").iterdir())
    assert train(FedAvg, out=tmp_path / "new").rows[-1]["round"] == 1


def test_an_error_after_the_first_rounds_keeps_them(train, tmp_path):
    with pytest.raises(TrainingError, match="ZeroDivisionError"):
        train(FailsLater, out=tmp_path / "run", rounds=3)
    rows = (tmp_path / "run" / "rows.jsonl").read_text().splitlines()
    assert len(rows) == 3


def test_an_error_of_the_caller_keeps_the_run(train, tmp_path):
    def on_row(row):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(Narrow, out=tmp_path / "run", on_row=on_row)
    assert (tmp_path / "run" / "config.toml").is_file()


def test_a_missing_method_is_named(monkeypatch):
    monkeypatch.setattr("wirelessfl.base.registry.import_path", lambda kind, path: NoMerge)
    message = "'my:NoMerge' lacks merge, which wirelessfl.extend.Algorithm requires: define it"
    with pytest.raises(ConfigError, match=re.escape(message)):
        find_algorithm("my:NoMerge")


def test_the_title_of_an_algorithm_is_what_selects_it():
    assert FedAvg.title == "fedavg"
    assert Narrow.title == path_of(Narrow)
    assert find_algorithm("hist").title == "hist"
