"""A model whose loss or parameters are not finite reaches nothing, although it has an accuracy."""

import io
import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console
from torch import nn

import wirelessfl
from tests.drawn import lines
from wirelessfl import observers
from wirelessfl.base.figures.curves import draw_curves, new_figure
from wirelessfl.base.figures.marks import DIVERGED, marks_of
from wirelessfl.base.rows import as_mean_value, has_diverged
from wirelessfl.cli import main
from wirelessfl.cli.output import closing_table
from wirelessfl.runs.engine import drop_exploded, evaluation_fields
from wirelessfl.runs.summaries import transitions
from wirelessfl.runs.sweep import sweep
from wirelessfl.runs.targets import Monitor
from wirelessfl.training.evaluation import Evaluated

REQUESTS = {"requests": 4, "buffer": 2, "eval_every": 1}
REGIMES = {
    "rounds": ("fedavg", {}),
    "cells": ("hist", {"hidden": (8,)}),
    "asynchronous cells": ("hfedavg", {"schedule": "buffered", "buffer": 1}),
    "requests": ("fedast", REQUESTS),
    "tasks": ("sync-st", {}),
    "sessions": ("fedavg", {"sessions": 2, "split": "iid", "tested_labels": "all"}),
}
TARGET = 0.6


@pytest.fixture
def mostly_zero(toy):
    """Data with 90 % of the label 0, which a model of nan predicts for every sample."""

    def few_others(labels):
        return labels.where(torch.arange(len(labels)) % 15 < 2, 0)

    return replace(
        toy, train_labels=few_others(toy.train_labels), test_labels=few_others(toy.test_labels)
    )


def printed(table):
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("held", [0.0, 0.15])
def test_a_diverged_run_reaches_no_target_and_has_no_accuracy(config, mostly_zero, regime, held):
    """It goes on to its last round, and its best row is the initial model's."""
    name, flags = REGIMES[regime]
    settings = {"lr": 1e20, "rounds": 4, "target": TARGET, **flags}
    settings |= {"validation_fraction": held} if held else {}
    if regime in ("rounds", "cells", "asynchronous cells"):
        settings["stop_at_target"] = True
    result = wirelessfl.run(config(name, **settings), data=mostly_zero)
    first, *_, last = result.rows
    deciding = "validation_accuracy" if held else "accuracy"
    assert last[deciding] >= TARGET > first[deciding]
    assert last["loss"] is None
    assert last["round"] == 4 * flags.get("sessions", 1)
    for summary in (result.summary(), *result.summaries()):
        assert summary["rounds_to_target"] is summary["seconds_to_target"] is None
        assert summary["accuracy"] is summary["loss"] is None
        assert summary.get("validation_accuracy") is None
        assert summary["best_accuracy"] == first["accuracy"]
        json.dumps(summary, allow_nan=False)
    text = printed(closing_table(result.summaries()))
    assert "diverged" in text
    assert text.count("not reached") == 3
    assert f"{last['accuracy']:.3f}" not in text


class Bounded(nn.Module):
    """A linear model whose outputs stay finite, whatever its parameters are."""

    def __init__(self, features, classes):
        super().__init__()
        self.layer = nn.Linear(features, classes)

    def forward(self, x):
        return torch.nan_to_num(1e20 * self.layer(x), 0.0, 0.0, 0.0)


def test_a_loss_that_explodes_is_divergence(config, toy):
    """Over the air at -200 dB the loss is finite, and 10^18 times that of the initial model."""
    settings = config("fedavg", uplink="aircomp", snr_db=-200, rounds=1)
    with pytest.warns(wirelessfl.Note) as caught:
        result = wirelessfl.run(settings, data=toy)
    first, last = result.rows
    assert first["loss"] < 10
    assert last["loss"] is None
    assert all(bool(value.isfinite().all()) for value in result.params.values())
    assert str(caught[-1].message).endswith("Lower --lr or --server-lr, or raise the SNR.")


@pytest.mark.parametrize(
    ("loss", "first", "kept"),
    [
        (9e3, 0.1, True),
        (1.1e4, 0.1, False),
        (1.1e4, 2.0, True),
        (2.1e4, 2.0, False),
        (5, None, True),
    ],
)
def test_a_loss_explodes_relative_to_the_first_or_to_1(loss, first, kept):
    row = {"validation_loss": loss}
    drop_exploded(row, {"validation_loss": first})
    assert row == {"validation_loss": loss if kept else None}


@pytest.mark.parametrize("name", ["fedavg", "fedast"])
def test_parameters_decide_where_the_loss_is_finite(config, mostly_zero, name):
    torch.manual_seed(0)
    flags = {"lr": 1e30, "rounds": 4, "target": TARGET} | (REQUESTS if name == "fedast" else {})
    notes = []
    result = wirelessfl.run(
        config(name, **flags), data=mostly_zero, model=Bounded(12, 4), on_note=notes.append
    )
    assert not all(bool(value.isfinite().all()) for value in result.params.values())
    assert result.rows[-1]["loss"] is None
    assert result.summary()["rounds_to_target"] is None
    assert sum("has diverged" in note for note in notes) == 1


def fields(params, *found):
    return evaluation_fields(params, *(Evaluated(*each, {}) for each in found))


def score(row):
    return Monitor.of(None, row).score(row)


def test_each_row_counts_by_itself():
    """Earlier rows keep what they reached, and a loss that becomes finite again counts."""
    finite, infinite = torch.ones(3), torch.tensor([1.0, math.inf, 1.0])
    sound = fields(finite, (0.9, 0.5), (0.8, 0.6))
    assert sound == {
        "accuracy": 0.9, "loss": 0.5, "validation_accuracy": 0.8, "validation_loss": 0.6
    }  # fmt: skip
    assert score(sound) == 0.8
    lost = (
        fields(infinite, (0.9, 0.5)),
        fields(finite, (0.9, math.inf)),
        fields(finite, (0.9, math.nan)),
        fields(finite, (0.9, 0.5), (0.9, math.inf)),
        fields(infinite, (0.9, 0.5), (0.9, 0.5)),
    )
    for row in lost:
        assert has_diverged(row)
        assert row["accuracy"] == 0.9
        assert score(row) < 0
        assert math.isnan(as_mean_value(row))
        assert math.isnan(as_mean_value(row, "loss"))
        assert max((row, sound, row), key=score) is sound
    assert not has_diverged(sound)
    assert as_mean_value(sound) == 0.9
    assert as_mean_value(sound, "validation_loss") == 0.6


def test_a_sweep_returns_diverged_runs_beside_others(config, tmp_path):
    data = {"dataset": "digits", "target": 0.05, "rounds": 2}
    good, bad = sweep([config("fedavg", lr=lr, **data) for lr in (0.1, 1e20)], tmp_path / "s")
    assert good.summary()["rounds_to_target"] is not None
    assert has_diverged(bad.rows[-1])
    assert bad.summary()["accuracy"] is None
    text = printed(closing_table([good.summary(), bad.summary()]))
    assert text.count("diverged") == 1


def test_progress_names_divergence(config):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    run, bars = SimpleNamespace(config=config("fedavg"), rows=[]), observers.Console(console)
    bars.begin(run)
    bars.row(run, {"round": 2, "accuracy": 0.9, "loss": None, "sim_seconds": 1.0})
    bars.row(run, {"round": 3, "accuracy": 0.8, "loss": 1.0, "sim_seconds": 2.0})
    bars.end(run)
    text = console.file.getvalue()
    assert "accuracy 0.800" in text
    assert "0.900" not in text


def session_row(session, number, accuracy, loss=1.0):
    return {"session": session, "session_round": number, "accuracy": accuracy, "loss": loss}


def test_a_diverged_session_does_not_recover():
    """It has no accuracy; a session that starts anew afterwards has one again."""
    rows = [session_row(0, n, 0.5) for n in range(3)]
    rows += [session_row(1, n, 0.9, None) for n in range(3)]
    rows += [session_row(2, n, 0.8) for n in range(3)]
    lost, found = transitions(rows)
    assert lost.rounds_to_recover is None
    assert lost.before == 0.5
    assert math.isnan(lost.mean_accuracy)
    assert math.isnan(lost.drop)
    assert math.isnan(found.before)
    assert math.isnan(found.drop)
    assert (found.mean_accuracy, found.rounds_to_recover) == (0.8, None)


def test_json_of_diverged_sessions_has_no_nan(capsys):
    command = "run fedavg --clients 4 --rounds 1 --sessions 2 --lr 1e30 --threads 1 --quiet --json"
    assert main(command.split()) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert facts["transitions"][0]["before"] is None


def test_curves_of_diverged_runs_end_with_a_mark():
    """Their mean goes on with the other seeds."""
    rows = [
        {"round": n, "accuracy": 0.9, "loss": None if n > 1 else 0.5, "validation_accuracy": 0.7}
        for n in range(4)
    ]
    for what, drawn in (("accuracy", 90), ("validation_accuracy", 70), ("loss", 0.5)):
        _, (panel,) = new_figure(1)
        draw_curves(panel, {"run": [rows]}, "round", what=what)
        ended = [drawn, drawn, math.nan, math.nan]
        assert lines(panel)["run"][1] == pytest.approx(ended, nan_ok=True)
        (cross,) = marks_of(panel, DIVERGED)
        assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (1, drawn)
        assert [text.get_text() for text in panel.get_legend().get_texts()] == ["run", "diverged"]
    sound = [row | {"accuracy": 0.5, "loss": 1.0, "auroc": row["loss"]} for row in rows]
    _, (panel,) = new_figure(1)
    draw_curves(panel, {"run": [rows, sound]}, "round")
    assert lines(panel)["run"][1] == pytest.approx([70, 70, 50, 50])
    _, (panel,) = new_figure(1)
    draw_curves(panel, {"run": [sound]}, "round", what="auroc")  # undefined, not diverged
    assert not marks_of(panel, DIVERGED)
