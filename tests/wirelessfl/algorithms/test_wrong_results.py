"""Errors in a user's algorithm name its import path, the method and the expected result."""

import re
from dataclasses import dataclass

import pytest
import torch

import wirelessfl
from wirelessfl.algorithms import Algorithm, find_algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.fedprox import FedProx
from wirelessfl.algorithms.hist import Hist
from wirelessfl.errors import ConfigError, TrainingError

P = 12 * 5 + 5 + 5 * 4 + 4  # parameters of the model below


def without_result(name, method):
    """FedAvg with a method that returns nothing."""
    return type(name, (FedAvg,), {method: lambda self, *args: None, "__module__": __name__})


NoGradient = without_result("NoGradient", "gradient")
SendsNothing = without_result("SendsNothing", "send")
KeepsNothing = without_result("KeepsNothing", "keep")
NoInitial = without_result("NoInitial", "initial")


@dataclass(frozen=True)
class Narrow(FedAvg):
    def merge(self, server, received):
        return {"params": server["params"][:, :5]}


@dataclass(frozen=True)
class Number(FedAvg):
    def merge(self, server, received):
        return {"params": 3}


@dataclass(frozen=True)
class Unreceived(FedAvg):
    def merge(self, server, received):
        return {"params": received.mean["gradient"]}


@dataclass(frozen=True)
class FailsLater(FedAvg):
    """Fails in the third merge."""

    def initial(self, params):
        return {"params": params, "left": torch.full_like(params, 2)}

    def merge(self, server, received):
        1 / int(server["left"].max())
        return super().merge(server, received) | {"left": server["left"] - 1}


@dataclass(frozen=True)
class MeanDirection(FedAvg):
    """Its result would broadcast over the clients."""

    def direction(self, grads, state):
        return grads.mean(0)


@dataclass(frozen=True)
class ParamsOnly(FedAvg):
    def step(self, params, grads, state, cohort):
        return params - self.lr * grads


@dataclass(frozen=True)
class Transposed(FedAvg):
    def step(self, params, grads, state, cohort):
        return params.T, state


@dataclass(frozen=True)
class Gossip(FedAvg):
    def send(self, params, state, cohort):
        return {"gossip": params}


@dataclass(frozen=True)
class ShortInitial(FedAvg):
    def initial(self, params):
        return {"params": params[:3]}


@dataclass(frozen=True)
class NoMerge(Algorithm):
    def send(self, params, state, cohort):
        return {"update": params - cohort.start}


WRONG = [
    (Narrow, f"merge returned shape [1, 5] for 'params'. Return a tensor of shape [1, {P}]."),
    (Number, f"merge returned 3 for 'params'. Return a tensor of shape [1, {P}]."),
    (NoGradient, f"gradient returned None. Return a tensor of shape [2, {P}]."),
    (MeanDirection, f"direction returned shape [{P}]. Return a tensor of shape [2, {P}]."),
    (ParamsOnly, "step returned tensor("),
    (Transposed, f"step returned shape [{P}, 2] for 'params'. Return a tensor of shape [2, {P}]."),
    (SendsNothing, "send returned None. Return a dict of tensors"),
    (KeepsNothing, "keep returned None. Return a dict of tensors"),
    (NoInitial, "initial returned None. Return a dict of tensors"),
    (ShortInitial, f"initial returned shape [3] for 'params'. Return a tensor of shape [{P}]."),
]


def path_of(rule):
    return f"{__name__}:{rule.__qualname__}"


@pytest.fixture
def train(config, toy, monkeypatch):
    """Function that runs an algorithm of this file, named by its import path."""

    def run(rule, *, on_row=None, **settings):
        monkeypatch.setattr(
            "wirelessfl.registry.import_path", lambda kind, path: globals()[path.split(":")[1]]
        )
        more = {"hidden": (5,), "clients": 4, "chunk": 2, "rounds": 1} | settings
        return wirelessfl.run(config(path_of(rule), **more), data=toy, on_row=on_row)

    return run


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("rule", "message"), WRONG)
def test_a_wrong_result_is_named(rule, message, train):
    with pytest.raises(ConfigError, match=re.escape(f"algorithm '{path_of(rule)}': {message}")):
        train(rule)


def test_results_are_checked_when_one_client_trains_alone(train):
    with pytest.raises(ConfigError, match=rf"gradient returned None. .*\[1, {P}\]"):
        train(NoGradient, executor="loop")


def test_payloads_other_than_declared_name_the_import_path(train):
    path = re.escape(path_of(Gossip))
    with pytest.raises(ConfigError, match=rf"algorithm '{path}' sends \['gossip'\]"):
        train(Gossip)


def test_an_error_in_a_merge_names_the_algorithm_and_the_line(train):
    path = re.escape(path_of(Unreceived))
    message = rf"^algorithm '{path}', merge: KeyError: 'gradient' \(in merge, .*, line \d+\)$"
    with pytest.raises(TrainingError, match=message):
        train(Unreceived)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("rule", [SendsNothing, Narrow, Unreceived])
def test_an_error_in_the_first_round_leaves_no_folder(rule, train, tmp_path):
    """The next run can use the same folder; a folder that was there before remains, empty."""
    (tmp_path / "there").mkdir()
    for name in ("new", "there"):
        with pytest.raises((ConfigError, TrainingError)):
            train(rule, out=tmp_path / name, eval_every=10)
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
    monkeypatch.setattr("wirelessfl.registry.import_path", lambda kind, path: NoMerge)
    message = "'my:NoMerge' lacks merge, which wirelessfl.algorithms.Algorithm requires: define it"
    with pytest.raises(ConfigError, match=re.escape(message)):
        find_algorithm("my:NoMerge")


def test_the_title_of_an_algorithm_is_what_selects_it():
    assert FedAvg.title == "fedavg"
    assert Narrow.title == path_of(Narrow)
    assert find_algorithm("hist").title == "hist"
    assert Hist(local=FedProx()).label == "hist with local=fedprox"
    assert Hist().label == "hist"
