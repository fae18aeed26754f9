"""Runs with a validation set: held-out samples, row fields, targets and the best row."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from channels.streams import Stream
from tests.gate.given import letters
from wirelessfl.base.errors import DataError
from wirelessfl.base.figures.curves import draw_curves, new_figure
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import hold_out
from wirelessfl.runs.build import build
from wirelessfl.runs.targets import Monitor

FRACTION = 0.15  # 36 of the toy's 240 samples
SPLITS = {
    "iid": {},
    "noniid": {},
    "cell-iid": {},
    "cell-shards": {},
    "dirichlet": {},
    "distinct": {"clients": 4},
    "iid, fixed sizes": {"split": "iid", "samples_per_client": 50, "reuse": True},
    "dirichlet, fixed sizes": {"split": "dirichlet", "samples_per_client": 50, "reuse": True},
}
REQUESTS = {"requests": 4, "buffer": 2, "eval_every": 1, "rounds": 6}
REGIMES = {
    "rounds": ("fedavg", {}),
    "cells": ("hist", {"hidden": (8,)}),
    "asynchronous cells": ("hfedavg", {"schedule": "buffered", "buffer": 1}),
    "requests": ("fedast", REQUESTS),
    "tasks": ("sync-st", {}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid"}),
}


def held_of(data, seed=1):
    return hold_out(len(data.train_labels), FRACTION, Stream(seed).child("split", "validation"))


def measured(setup, params, inputs, labels):
    """Accuracy and mean cross-entropy, computed by calling the module."""
    module = setup.models[0].module
    logits = functional_call(module, params, (inputs,))
    right = (logits.argmax(-1) == labels).double().mean()
    return float(right), float(F.cross_entropy(logits, labels).double())


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", SPLITS)
def test_no_client_has_a_held_out_sample(config, toy, name):
    """Clients have all other samples; held-out samples depend on the seed, not on the split."""
    flags = {"split": name, "validation_fraction": FRACTION} | SPLITS[name]
    setup = build(config("hfedavg", **{"cells": 2} | flags), data=toy)
    model, held = setup.models[0], held_of(toy)
    assert len(held) == len(model.validation.labels) == 36
    assert torch.equal(model.validation.inputs, toy.train_inputs[held])
    assert torch.equal(model.validation.labels, toy.train_labels[held])
    samples = np.concatenate(model.client_samples[:])
    assert not np.isin(samples, held).any()
    if "fixed sizes" not in name:  # these need not use all samples
        assert sorted(samples.tolist()) == sorted(set(range(240)) - set(held.tolist()))
    other = build(config("hfedavg", **{"cells": 2} | flags, seed=2), data=toy)
    assert not torch.equal(other.models[0].validation.inputs, model.validation.inputs)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("split", ["natural", "iid", "dirichlet", "iid, fixed sizes"])
def test_whole_groups_are_held_out_under_every_split(config, split):
    """Clients have no samples of held-out groups, even if inputs are token ids in uint8.

    Samples of a group may overlap, so clients would otherwise train on held-out text.
    """
    plain = letters()
    data = Dataset(
        "roles", plain.train_inputs.to(torch.uint8), plain.train_labels,
        plain.test_inputs.to(torch.uint8), plain.test_labels, 5,
        groups=np.arange(len(plain.train_labels)) // 9,
    )  # fmt: skip
    flags = {"split": split, "clients": 3, "model": "lstm", "hidden": (4,)}
    settings = config("fedavg", **flags | SPLITS.get(split, {}), validation_fraction=0.2)
    setup = build(settings, data=data)
    count = len(data.train_labels)
    seen = {int(group) for part in setup.models[0].client_samples for group in data.groups[part]}
    held = hold_out(count, 0.2, Stream(1).child("split", "validation"), data.groups)
    assert len(seen) >= 3
    assert not seen & set(data.groups[held].tolist())
    assert 0.2 * count <= len(held) < 0.2 * count + 9
    assert torch.equal(setup.models[0].validation.inputs, data.train_inputs[held])
    if split == "natural":
        row = wirelessfl.run(settings, data=data).rows[-1]
        assert row["validation_loss"] > 0


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
def test_rows_have_validation_accuracy_and_loss(config, toy, regime):
    """Both fields equal an evaluation by hand; without a validation set they are absent."""
    algorithm, flags = REGIMES[regime]
    flags = {"hidden": (8,)} | flags
    settings = config(algorithm, **flags, validation_fraction=FRACTION)
    setup = build(settings, data=toy)
    result = wirelessfl.run(settings, data=toy)
    row, held = result.rows[-1], held_of(toy)
    if regime == "sessions":  # only labels of present clients, as on the test set
        labels = toy.train_labels[held]
        held = held[np.isin(labels.numpy(), [2, 3])]
        assert 0 < len(held) < 36
    expected = measured(setup, result.params, toy.train_inputs[held], toy.train_labels[held])
    found = row["validation_accuracy"], row["validation_loss"]
    assert found == pytest.approx(expected, rel=1e-6)
    if regime != "sessions":
        tested = measured(setup, result.params, toy.test_inputs, toy.test_labels)
        assert (row["accuracy"], row["loss"]) == pytest.approx(tested, rel=1e-6)
    plain = wirelessfl.run(config(algorithm, **flags | {"rounds": 1}), data=toy).rows[-1]
    assert row.keys() - plain.keys() == {"validation_accuracy", "validation_loss"}


def test_validation_accuracy_ends_a_task(config, toy):
    """A task ends when its validation accuracy reaches the target.

    Test labels are wrong, so that test accuracy never does.
    """
    wrong = replace(toy, test_labels=(toy.test_labels + 1) % 4)
    flags = REQUESTS | {"rounds": 60, "target": 0.9, "lr": 0.3}
    ended = wirelessfl.run(config("fedast", **flags, validation_fraction=FRACTION), data=wrong)
    accuracies = [row["validation_accuracy"] for row in ended.rows]
    assert max(accuracies[:-1]) < 0.9 <= accuracies[-1]
    assert max(row["accuracy"] for row in ended.rows) < 0.9
    assert ended.rows[-1]["round"] < 60
    summary = ended.summary()
    assert summary["seconds_to_target"] == ended.rows[-1]["sim_seconds"]
    endless = wirelessfl.run(config("fedast", **flags), data=wrong)
    assert endless.rows[-1]["round"] == 60
    assert endless.summary()["seconds_to_target"] is None


def test_a_summary_selects_by_validation_accuracy(config, toy):
    """Validation accuracy selects the best row and the cost of the target.

    ``best_accuracy`` is that row's test accuracy.
    """
    wrong = replace(toy, test_labels=(toy.test_labels + 1) % 4)
    settings = config("fedavg", rounds=6, target=0.8, validation_fraction=FRACTION, lr=0.3)
    result = wirelessfl.run(settings, data=wrong)
    summary, rows = result.summary(), result.rows
    held = [row["validation_accuracy"] for row in rows]
    tested = [row["accuracy"] for row in rows]
    best = held.index(max(held))
    assert max(tested) > tested[best] == summary["best_accuracy"]
    hit = next(row for row in rows if row["validation_accuracy"] >= 0.8)
    assert max(tested) < 0.8
    assert summary["rounds_to_target"] == hit["round"]
    assert summary["validation_accuracy"] == held[-1]
    row = {"accuracy": 0.5}
    assert Monitor.of(None, row).score(row) == 0.5


def test_tasks_share_validation_samples(tmp_path):
    """Tasks with equal data settings share validation samples; each may set its own fraction."""
    tables = ["digits,name=a,hidden=8", "digits,name=b,model=linear"]
    tables += ["digits,name=c,model=linear,validation_fraction=0.4"]
    tables += ["digits,name=d,model=linear,validation_fraction=0"]
    flags = {"clients": 4, "local_steps": 2, "rounds": 1, "threads": 1, "chunk": 2}
    made = Config.from_flags(
        "sync-st", **flags, task=tables, validation_fraction=0.1, out=tmp_path / "run"
    )
    models = build(made).models
    samples = len(models[0].data.train_labels)
    assert models[0].client_samples is models[1].client_samples
    assert torch.equal(models[0].validation.inputs, models[1].validation.inputs)
    assert len(models[0].validation.labels) == round(0.1 * samples)
    assert len(models[2].validation.labels) == round(0.4 * samples)
    assert models[3].validation is None
    result = wirelessfl.run(made)
    told = {task: "validation_accuracy" in result.rows_of(task)[-1] for task in "abcd"}
    assert told == {"a": True, "b": True, "c": True, "d": False}
    assert "validation_accuracy" not in result.summary()


def test_a_session_without_validation_samples_of_its_labels_is_refused(config, toy):
    """The run is refused unless all labels are evaluated."""
    few = replace(toy, train_inputs=toy.train_inputs[:200], train_labels=toy.train_labels[:200])
    flags = {"sessions": 2, "split": "iid", "validation_fraction": 0.005}  # one sample
    with pytest.raises(DataError, match=r"no validation sample has .* Raise validation_fraction"):
        wirelessfl.run(config("fedavg", **flags), data=few)
    wirelessfl.run(config("fedavg", **flags, tested_labels="all"), data=few)


def test_tables_show_validation_accuracy(tmp_path, capsys):
    """The summary table of a run and the table of a sweep have a column for it."""
    words = ["--clients", "4", "--rounds", "1", "--local-steps", "2", "--threads", "1"]
    words += ["--validation-fraction", "0.2", "--target", "0.01"]
    assert main(["run", "fedavg", *words, "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "run/rows.jsonl").read_text().splitlines()]
    assert f"{rows[-1]['validation_accuracy']:.3f}" in out
    assert "val." in out
    words += ["--lr", "0.1,0.2", "--out", str(tmp_path / "sweep")]
    assert main(["sweep", "fedavg", *words]) == 0
    out = capsys.readouterr().out
    assert "validation accuracy" in out
    assert "validation accuracy 0.01" in " ".join(out.split())


def test_curves_of_validation_accuracy_are_drawn(config, toy):
    result = wirelessfl.run(config("fedavg", validation_fraction=FRACTION), data=toy)
    _, (axes,) = new_figure()
    draw_curves(axes, {"run": [result.rows]}, "round", what="validation_accuracy")
    (line,) = axes.get_lines()
    held = [100 * row["validation_accuracy"] for row in result.rows]
    assert line.get_ydata().tolist() == pytest.approx(held)
    assert axes.get_ylabel() == "validation accuracy (%)"


def test_evaluation_on_part_of_the_test_set(config, toy):
    """Seven of the test samples, the same in every run of the seed; accuracies are sevenths."""
    setups = [build(config("fedavg", eval_samples=7, seed=s), data=toy) for s in (1, 1, 2)]
    one, again, other = (setup.model.evaluation(None).test for setup in setups)
    assert torch.equal(one.inputs, again.inputs)
    assert not torch.equal(one.inputs, other.inputs)
    rows = [int((toy.test_inputs == x).flatten(1).all(1).nonzero()[0]) for x in one.inputs]
    assert rows == sorted(set(rows))
    assert len(rows) == 7
    assert torch.equal(one.labels, toy.test_labels[rows])
    row = wirelessfl.run(config("fedavg", eval_samples=7, rounds=1), data=toy).rows[-1]
    assert 7 * row["accuracy"] == pytest.approx(round(7 * row["accuracy"]))
    large = build(config("fedavg", eval_samples=10**6), data=toy).model
    assert torch.equal(large.test_inputs, toy.test_inputs)
