"""Runs whose clients a trainer trains: weights, metrics, states, resume, and what does not fit."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import wirelessfl
from tests.wirelessfl.small import flat, model
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.results.archive import effective
from wirelessfl.runs.build import build
from wirelessfl.training.trainer import ClientTraining, Trained, Trainer
from wirelessfl.training.workers.shards import Shards


def weight_of(client):
    return 1.0 + client % 3


class Shifting(ClientTraining):
    """Each training of client k adds its number of trainings times k + 1 to all parameters."""

    def __init__(self, trainer):
        self.trainer, self.counts = trainer, {}
        self.calls = []

    def received(self, params):
        return params.clone()

    def train(self, client, received, lr, number):
        self.counts[client] = self.counts.get(client, 0) + 1
        self.calls.append((client, number, lr, random.random(), float(torch.rand(()))))
        shift = lr * (client + 1) * self.counts[client]
        metrics = {"shift": shift, "drawn": self.calls[-1][4]}
        weight = weight_of(client) if self.trainer.weighted else None
        return Trained(received + shift, weight, metrics)

    def states(self):
        return {client: str(count).encode() for client, count in self.counts.items()}

    def restore(self, states):
        self.counts = {client: int(state) for client, state in states.items()}


@dataclass
class Shifts(Trainer):
    weighted: bool = True
    title: str = "shifts"
    code: object = "version 1"
    kind: type = Shifting

    def begin(self, module, spec, clients):
        self.training = self.kind(self)
        return self.training


ASYNCHRONOUS = {"schedule": "buffered", "requests": 4, "buffer": 2, "rounds": 6, "eval_every": 1}
REGIMES = {
    "rounds": {"clients_per_round": 3, "rounds": 4},
    "uniform": {"weighting": "uniform", "rounds": 2, "chunk": 2},
    "failures": {"failures": "outage", "margin_db": 0.0, "rounds": 5, "uplink": "tdma"},
    "sessions": {"sessions": 2, "rounds": 2},
    "buffered": ASYNCHRONOUS,
    "cut off": ASYNCHRONOUS | {"cutoff_seconds": 0.03, "drop_out": 0.2},
    "over the air": {"uplink": "aircomp", "rounds": 2},
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("weighted", [True, False])
def test_the_model_moves_by_the_mean_that_rows_report(config, toy, regime, weighted):
    """So models and metrics have the same weights; seconds and joules are those of other runs."""
    settings = config("fedavg", split="iid", **REGIMES[regime])
    start, trainer = model(), Shifts(weighted)
    before = torch.nn.utils.parameters_to_vector(start.parameters()).detach().clone()
    result = wirelessfl.run(settings, model=start, data=toy, trainer=trainer)
    moved = sum(row.get("shift") or 0.0 for row in result.rows)
    air = 0.05 if regime == "over the air" else 1e-5
    assert moved > 0
    if regime != "sessions":  # whose models start anew
        assert torch.allclose(flat(result) - before, torch.tensor(moved), rtol=air, atol=air)
    again = config("fedavg", split="iid", **REGIMES[regime])
    plain = wirelessfl.run(again, model=model(), data=toy)
    for name in ("sim_seconds", "joules", "uplink_mib", "lost"):
        assert [row[name] for row in result.rows] == [row[name] for row in plain.rows]
    assert (result.rows[-1]["lost"] > 0) == (regime in ("failures", "cut off"))


@pytest.mark.parametrize("weighting", ["samples", "uniform"])
def test_updates_are_weighted_by_what_clients_report(config, toy, weighting):
    """By hand, whatever the run's own weights are; without a report, they are the run's."""
    parts = np.split(np.arange(210), np.cumsum([20, 60, 10, 50, 40]))
    for weighted in (True, False):
        settings = config("fedavg", weighting=weighting, rounds=1)
        result = wirelessfl.run(
            settings, model=model(), data=toy, split=parts, trainer=Shifts(weighted)
        )
        own = [1.0] * 6 if weighting == "uniform" else [float(len(part)) for part in parts]
        weights = [weight_of(k) for k in range(6)] if weighted else own
        mean = sum(w * 0.1 * (k + 1) for k, w in enumerate(weights)) / sum(weights)
        assert result.rows[1]["shift"] == pytest.approx(mean, rel=1e-12)


def test_equal_weights_change_no_bit(config, toy):
    """Reports in proportion to the run's weights give the bits of a run without reports."""

    class Proportional(Shifting):
        def train(self, client, received, lr, number):
            trained = super().train(client, received, lr, number)
            return Trained(trained.params, 40.0 if self.trainer.weighted else None)

    ends = [
        wirelessfl.run(
            config("fedavg", split="iid", weighting="samples"),
            model=model(),
            data=toy,
            trainer=Shifts(weighted, kind=Proportional),
        )
        for weighted in (True, False)
    ]
    assert torch.equal(flat(ends[0]), flat(ends[1]))


def test_trainings_have_numbers_step_sizes_and_seeds(config, toy):
    """The seeds are those of the run, the client and its training."""
    trainer, again = Shifts(), Shifts()
    settings = {"rounds": 3, "lr_schedule": "poly", "clients_per_round": 2}
    random.seed(1)
    torch.manual_seed(1)
    wirelessfl.run(config("fedavg", **settings), model=model(), data=toy, trainer=trainer)
    calls = trainer.training.calls
    assert [number for _, number, *_ in calls] == [0, 0, 1, 1, 2, 2]
    assert len({lr for _, _, lr, *_ in calls}) == 3
    assert len({draw for *_, draw in calls}) == 6
    wirelessfl.run(config("fedavg", chunk=1, **settings), model=model(), data=toy, trainer=again)
    assert again.training.calls == calls
    trainer = Shifts()
    wirelessfl.run(config("fedavg", **ASYNCHRONOUS), model=model(), data=toy, trainer=trainer)
    versions = [number for _, number, *_ in trainer.training.calls]
    assert versions[0] == 0
    assert max(versions) <= 5
    assert len(trainer.training.calls) == 12, "only updates that are merged are trained"


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", [name for name in REGIMES if name != "over the air"])
def test_a_resumed_run_equals_an_uninterrupted_one(config, toy, same, regime):
    """To the bit, with the states of clients, wherever it is interrupted."""
    settings = {"checkpoint_seconds": 0, "split": "iid"} | REGIMES[regime]
    whole = wirelessfl.run(config("fedavg", **settings), model=model(), data=toy, trainer=Shifts())
    for stop in (0, len(whole.rows) // 2):
        halted = config("fedavg", **settings)

        def end(row, left=[stop]):  # noqa: B006, counts the rows
            left[0] -= 1
            if left[0] < 0:
                raise InterruptedError

        with pytest.raises(InterruptedError):
            wirelessfl.run(halted, model=model(), data=toy, trainer=Shifts(), on_row=end)
        same(wirelessfl.resume(halted.run.out, model=model(), data=toy, trainer=Shifts()), whole)


def test_resume_needs_the_same_trainer(config, toy):
    settings = config("fedavg", checkpoint_seconds=0)
    given = {"model": model(), "data": toy}
    with pytest.raises(ZeroDivisionError):
        wirelessfl.run(
            settings, **given, trainer=Shifts(), on_row=lambda row: 1 / (1 - row["round"])
        )
    folder = settings.run.out
    with pytest.raises(ConfigError, match=r"give trainer=\.\.\. again"):
        wirelessfl.resume(folder, model=model(), data=toy)
    with pytest.raises(ConfigError, match=r"the code or a value of trainer=\.\.\. has changed"):
        wirelessfl.resume(folder, model=model(), data=toy, trainer=Shifts(code="version 2"))
    result = wirelessfl.resume(folder, model=model(), data=toy, trainer=Shifts())
    assert effective(result.config)["given"] == {"trainer": "shifts"}
    assert result.settings["executor"] == "loop"


UNFIT = {
    "local steps": ({"algorithm": "fedprox"}, "algorithm \"?'?fedprox.* changes the clients"),
    "momentum": ({"momentum": 0.9}, "changes the clients' local steps"),
    "loss terms": ({"algorithm": "moon"}, "adds terms to the clients' loss"),
    "tracking": ({"algorithm": "scaffold"}, "changes the clients' local steps"),
    "models": ({"algorithm": "fedasync"}, "lets clients send"),
    "cells": ({"algorithm": "hfedavg"}, "has cells"),
    "executor": ({"executor": "vmap"}, "executor=vmap conflicts with trainer="),
    "chunk": ({"chunk": "tune"}, "chunk=tune conflicts"),
    "replay": ({"replay": "on"}, "replay=on conflicts"),
    "workers": ({"workers": 2}, "workers=2 conflicts"),
    "augment": ({"augment": "tests.gate.given:noisy"}, "augment=tests.gate.given:noisy conflicts"),
    "trials": ({"sessions": 2, "warm_start": "proposed"}, "warm_start, .* conflicts"),
    "submodels": ({"algorithm": "ra-fed"}, "conflicts|lets clients"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_settings_that_the_trainer_would_ignore_are_refused(config, toy, name):
    flags, message = UNFIT[name]
    flags = {"algorithm": "fedavg"} | flags
    with pytest.raises(ConfigError, match=message) as caught:
        build(config(**flags), model=model(), data=toy, trainer=Shifts())
    assert "\n" not in str(caught.value)


def test_no_other_object_and_no_other_process_trains(config, toy):
    with pytest.raises(ConfigError, match=r"trainer is 'app': give what wirelessfl\.bridges"):
        build(config("fedavg"), model=model(), data=toy, trainer="app")
    with pytest.raises(ConfigError, match=r"torchrun has started 2 processes.*shifts, needs one"):
        build(config("fedavg"), data=toy, trainer=Shifts(), shards=Shards(0, 2))
    tables = {"task": [{"name": "one"}, {"name": "two"}], "schedule": {"name": "buffered"}}
    with pytest.raises(ConfigError, match=r"trainer=\.\.\. conflicts with the tables of tasks"):
        build({"algorithm": {"name": "fedavg"}, **tables}, trainer=Shifts())


REPLIES = {
    "negative": (-1.0, {}, "client 0 reports the weight -1.0: reply with a finite number"),
    "infinite": (float("inf"), {}, "the weight inf: reply with a finite number"),
    "taken": (1.0, {"loss": 1.0}, "the metric 'loss', which is another field of rows"),
    "task": (1.0, {"version": 1.0}, "the metric 'version', which is another field of rows"),
    "air": (1.0, {"air_error": 1.0}, "the metric 'air_error', which is another field of rows"),
    "evaluated": (1.0, {"seen": 1.0}, "the metric 'seen', which is another field of rows"),
    "uplink": (1.0, {"compression_error": 1.0}, "'compression_error', and so does the uplink"),
    "no name": (1.0, {"": 1.0}, "the metric '', which is no name"),
    "changes": (None, {}, "client 1 reports nothing, and another reported a weight, a"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_wrong_reports_are_refused(config, toy, name):
    weight, metrics, message = REPLIES[name]

    class Wrong(Shifting):
        def train(self, client, received, lr, number):
            if name == "changes" and client == 0:
                return Trained(received, 1.0, {"a": 1.0})
            return Trained(received, weight, metrics)

        def evaluated(self, params, version):
            return {"seen": 1.0}

    settings = config("fedavg", downlink_compression="quantisation")
    with pytest.raises(TrainingError, match=message):
        wirelessfl.run(settings, model=model(), data=toy, trainer=Shifts(kind=Wrong))


class Evaluating(Shifting):
    """Clients whose evaluations have no result at first."""

    def evaluated(self, params, version):
        return {"margin": 1.0 if version else float("nan")}


def test_evaluations_that_are_no_numbers_are_missing(config, toy):
    """JSON has no NaN."""
    result = wirelessfl.run(
        config("fedavg"), model=model(), data=toy, trainer=Shifts(kind=Evaluating)
    )
    assert [row["margin"] for row in result.rows] == [None] + [1.0] * (len(result.rows) - 1)


@pytest.mark.parametrize("name", ["margin", "shift"])
def test_reports_do_not_replace_metrics_of_the_run(config, toy, name):
    with pytest.raises((TrainingError, ConfigError), match=f"'{name}', and"):
        wirelessfl.run(
            config("fedavg"),
            model=model(),
            data=toy,
            metrics={name: lambda outputs, labels: 1.0},
            trainer=Shifts(kind=Evaluating),
        )
