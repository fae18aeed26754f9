"""Runs that train together: the bits of single runs, whatever happens to one of them."""

import os
import signal
import threading
from functools import partial

import pytest
import torch

from tests.wirelessfl.conftest import without_wall
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.signals import Terminated
from wirelessfl.cli import main
from wirelessfl.config import Config
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.kept import is_finished
from wirelessfl.runs.sweep import SweepError, sweep
from wirelessfl.training.together import MEETING, Meeting

SEEDS = (1, 2, 3)
SMALL = {"dataset": "digits", "rounds": 2, "local_steps": 2}


def configs(algorithm="fedavg", seeds=SEEDS, **flags):
    return [Config.from_flags(algorithm, seed=seed, **(SMALL | flags)) for seed in seeds]


def outcome(result):
    """Rows and parameters of a run, and the files of its folder with their sizes."""
    settings = (result.directory / "config.toml").read_text().replace(str(result.directory), "")
    return (
        without_wall(result.rows),
        {name: value.numpy().tobytes() for name, value in result.params.items()},
        sorted(file.name for file in result.directory.iterdir()),
        settings,
    )


def outcomes(results):
    return list(map(outcome, results))


@pytest.fixture
def cohorts(monkeypatch):
    """Numbers of jobs that were trained as one cohort."""
    sizes, train = [], Meeting._train

    def counted(meeting, group):
        sizes.append(len(group))
        train(meeting, group)

    monkeypatch.setattr(Meeting, "_train", counted)
    return sizes


@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("hist", {"clients": 6, "cells": 2, "edge_rounds": 2}),
        ("hfedavg", {"clients": 6, "cells": 2, "edge_rounds": 2, "chunk": 3}),
        ("fedavg", {"clients": 10, "clients_per_round": 2, "rounds": 4}),
        ("fadamgc", {"clients": 4}),
        ("fedavg", {"clients": 4, "schedule": "buffered"}),
    ],
)
def test_runs_that_train_together_equal_single_runs(tmp_path, cohorts, algorithm, flags):
    runs = configs(algorithm, **flags)
    alone = sweep(runs, tmp_path / "alone")
    assert not cohorts
    together = sweep(runs, tmp_path / "together", together=True, on_note=lambda note: None)
    assert outcomes(together) == outcomes(alone)
    assert cohorts
    assert MEETING.get() is None


def test_convolutions_that_are_rounded_otherwise_train_alone(tmp_path, cohorts, real_data):
    """On CPUs those of LeNet-5 are; its runs still equal single runs."""
    flags = {"dataset": "fashion-mnist", "data_dir": real_data, "eval_samples": 100}
    runs = configs(clients=3, model="lenet5", local_steps=1, seeds=(1, 2), **flags)
    together = sweep(runs, tmp_path / "together", together=True, on_note=lambda note: None)
    assert outcomes(together) == outcomes(sweep(runs, tmp_path / "alone"))
    assert cohorts


def test_other_configurations_and_executors_train_one_after_the_other(tmp_path, cohorts):
    """Runs of two configurations meet among themselves; losses that compare features do not."""
    notes = []
    runs = [*configs(clients=2), *configs("fedprox", clients=2, seeds=(1,))]
    vmapped = configs("moon", clients=2, seeds=(1, 2), rounds=1, local_steps=1)
    results = sweep([*runs, *vmapped], tmp_path, together=True, on_note=notes.append)
    assert {*cohorts} == {3}
    assert [note for note in notes if "one after the other" in note] == [notes[-1]]
    assert outcome(results[-1]) == outcome(sweep(vmapped[1:], tmp_path / "alone")[0])


def failing(monkeypatch, error):
    """The run with seed 2 fails at its second row."""
    row = Engine.row

    def fails(engine, report):
        values = row(engine, report)
        if engine.setup.config.run.seed == 2 and values[0]["round"] == 1:
            raise error
        return values

    monkeypatch.setattr(Engine, "row", fails)


def test_others_finish_if_one_fails(tmp_path, monkeypatch, cohorts):
    runs = configs(clients=2, rounds=3)
    alone = sweep([runs[0], runs[2]], tmp_path / "alone")
    failing(monkeypatch, TrainingError("of the test"))
    ended = []
    with pytest.raises(SweepError, match="of the test") as caught:
        sweep(runs, tmp_path / "together", together=True, on_end=ended.append)
    assert ended == [0, 2]
    assert outcomes([caught.value.outcomes[0], caught.value.outcomes[2]]) == outcomes(alone)
    assert cohorts == [3, 2, 2]


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_ends_all_runs_with_a_checkpoint(tmp_path, number, error):
    """The sweep is resumed, and equals one that was not interrupted."""
    runs = configs(clients=2, rounds=4)
    whole = sweep(runs, tmp_path / "whole", together=True)
    rows = []

    def on_row(place, row):
        rows.append((place, row["round"]))
        if row["round"] == 2 and rows[-1][0] == 1:
            os.kill(os.getpid(), number)

    before, threads = signal.getsignal(number), threading.active_count()
    with pytest.raises(error):
        sweep(runs, tmp_path / "ended", together=True, on_row=on_row)
    assert signal.getsignal(number) == before
    assert max(number for _, number in rows) < 4
    assert not any(is_finished(config, tmp_path / "ended") for config in runs)
    assert threading.active_count() == threads
    seen = rows.copy()
    again = sweep(runs, tmp_path / "ended", together=True, on_row=lambda *a: rows.append(a))
    assert outcomes(again) == outcomes(whole)
    assert len(seen) < len(rows) == 15  # no round is trained twice


def test_an_error_in_on_row_ends_the_sweep(tmp_path):
    def on_row(place, row):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        sweep(configs(clients=2), tmp_path, together=True, on_row=on_row)


@pytest.mark.parametrize(
    ("flags", "options", "message"),
    [
        ({}, {"jobs": 2}, "together conflicts with jobs=2"),
        ({}, {"ray": "local"}, "together conflicts with ray=local"),
        ({"workers": 2}, {}, "together conflicts with workers=2: choose workers 1"),
        ({"executor": "vmap"}, {}, "conflicts with executor='vmap': choose executor \"stacked\""),
        ({"precision": "tf32"}, {}, "conflicts with precision='tf32'"),
        ({"seeds": (1,)}, {}, "no two of them. Give several seeds"),
    ],
)
def test_runs_that_cannot_meet_are_refused(tmp_path, flags, options, message):
    with pytest.raises(ConfigError, match=message):
        sweep(configs(**flags), tmp_path / "runs", together=True, **options)
    assert not (tmp_path / "runs").exists()


def test_the_command_has_the_flag(tmp_path, cohorts, capsys):
    words = "sweep fedavg --clients 2 --rounds 1 --local-steps 1 --seed 1,2 --quiet --together"
    assert main([*words.split(), "--out", str(tmp_path)]) == 0
    assert cohorts == [2]
    capsys.readouterr()


def held(lengths, train, kinds=None):
    """Results of runs of several jobs [2 clients, 3] each that meet, and the meeting."""
    meeting, results = Meeting(), {}

    def run(number):
        for job in range(lengths[number]):
            x = torch.full((2, 3), float(10 * number + job))
            kind = None if kinds is None else kinds[number]
            results[number, job] = MEETING.get().train(kind, {"x": x}, train, 8)["y"].tolist()

    meeting.hold([partial(run, number) for number in range(len(lengths))])
    return results, meeting


def test_jobs_meet_by_kind_until_their_runs_end():
    """Each run gets the results of its own clients; at most 8 clients train at once."""
    sizes = []

    def train(inputs):
        sizes.append(len(inputs["x"]))
        return {"y": 2 * inputs["x"]}

    results, meeting = held((1, 2, 3), train)
    assert results == {
        (run, job): [[20.0 * run + 2 * job] * 3] * 2 for run in range(3) for job in range(run + 1)
    }
    assert sizes == [6, 2, 2, 2, 4, 2, 2, 2]  # each size is checked once
    assert (meeting.cohorts, meeting.differing) == (2, set())
    sizes.clear()
    held((2,) * 5, train)
    assert sizes == [4, 2, 2, 6, 2, 2, 2, 4, 6]
    sizes.clear()
    held((1, 1, 1), train, kinds="aba")
    assert sizes == [4, 2, 2, 2]


@pytest.mark.parametrize("error", [False, True])
def test_jobs_that_differ_in_a_bit_or_fail_as_one_train_alone(error):
    """They have the results of single trainings from the first time on."""

    def train(inputs):
        x, many = inputs["x"], len(inputs["x"]) > 2
        if error and many:
            raise MemoryError
        return {"y": torch.nextafter(x, x + 1) if many else x}

    results, meeting = held((2, 2), train)
    assert results == {
        (run, job): [[10.0 * run + job] * 3] * 2 for run in range(2) for job in range(2)
    }
    assert meeting.cohorts == (0 if error else 1)
    assert meeting.differing == {(None, 2)}
