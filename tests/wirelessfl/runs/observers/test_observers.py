"""Own observers see a run's rows and parameters, end it in every regime, and fail in one line."""

import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.engine.events import Report, Stop
from wirelessfl.engine.server.learner import Learner
from wirelessfl.observers import Console, EndOfTask, Observer
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.training.workers.shards import Shards

NEVER = {"checkpoint_seconds": 1e6}
BUFFERED = {"rounds": 6, "schedule": "buffered", "requests": 4, "buffer": 2, "eval_every": 1}
REGIMES = {
    "rounds": ("hist", {"rounds": 5}),
    "client state": ("scaffold", {"rounds": 4, "client_states": "disk"}),
    "sessions": ("fedavg", {"rounds": 2, "sessions": 3, "warm_start": "proposed"}),
    "buffered": ("fedavg", BUFFERED),
    "cells": ("hfedavg", {"rounds": 4, "schedule": "buffered", "buffer": 1, "step_seconds": 0.1}),
    "simultaneous": ("fedavg", {"rounds": 5, "schedule": "simultaneous"}),
}


class Watcher(Observer):
    """Notes all calls; ends the run at a place with a reason, or raises an error there."""

    def __init__(self, place=-1, reason=None, error=None):
        self.place, self.reason, self.error = place, reason, error
        self.begun, self.rows, self.params, self.ended = [], [], [], 0

    def begin(self, run):
        self.begun.append(len(run.rows))

    def row(self, run, row):
        assert run.rows[-1] == row
        self.rows.append(row)
        self.params.append(run.params())
        if len(run.rows) == self.place + 1:
            if self.error is not None:
                raise self.error
            return self.reason
        return None

    def end(self, run):
        self.ended += 1


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
def test_a_reason_ends_a_run_after_its_row(config, toy, bare, same, regime):
    algorithm, flags = REGIMES[regime]
    whole, seen = wirelessfl.run(config(algorithm, **flags), data=toy), Watcher()
    watched = wirelessfl.run(config(algorithm, **flags), data=toy, observers=[seen])
    same(watched, whole)
    assert seen.rows == watched.rows
    watcher, other = Watcher(2, "that is  enough"), Watcher()
    ended = wirelessfl.run(config(algorithm, **flags), data=toy, observers=[watcher, other])
    assert bare(ended.rows) == bare(whole.rows[:3])
    assert other.rows == ended.rows
    assert (watcher.begun, watcher.ended) == ([0], 1)
    for name, value in ended.params.items():
        assert torch.equal(value, seen.params[2][name])
    done, total = ended.rows[-1]["round"], whole.config.total_rounds
    assert ended.ended == f"ended after round {done} of {total}: that is enough"
    assert ended.summary()["ended"] == ended.ended
    before = sorted((file.name, file.stat().st_mtime) for file in ended.directory.iterdir())
    again = wirelessfl.resume(ended.directory, observers=[watcher])
    assert sorted((f.name, f.stat().st_mtime) for f in ended.directory.iterdir()) == before
    same(again, ended)
    assert again.ended == ended.ended
    assert watcher.begun == [0]


def test_parameters_are_those_of_the_row_and_a_copy(config, toy, same):
    class Zeroed(Observer):
        def row(self, run, row):
            for value in run.params().values():
                value.zero_()

    same(
        wirelessfl.run(config(), data=toy, observers=[Zeroed()]),
        wirelessfl.run(config(), data=toy),
    )


@pytest.mark.parametrize("regime", ["rounds", "buffered"])
def test_a_run_continues_after_the_row_at_which_an_observer_failed(config, toy, same, regime):
    """The folder has all rows, the checkpoint covers them, and the error is one line."""
    algorithm, flags = REGIMES[regime]
    settings, notes = config(algorithm, **flags, **NEVER), []
    watcher, other = Watcher(2, error=ValueError("two\nlines")), Watcher()
    with pytest.raises(TrainingError) as caught:
        wirelessfl.run(settings, data=toy, observers=[watcher, other], on_note=notes.append)
    text = str(caught.value)
    assert text.startswith(f"observer '{__name__}:Watcher', row: ValueError: two lines (in row")
    assert type(caught.value.__cause__) is ValueError
    assert notes[-1] == f"interrupted; to resume: wirelessfl resume {settings.run.out}"
    stored = RunFolder(settings.run.out)
    assert stored.rows() == other.rows == watcher.rows
    assert stored.load()[1]["rows_bytes"] == (settings.run.out / "rows.jsonl").stat().st_size
    later = Watcher()
    resumed = wirelessfl.resume(settings.run.out, data=toy, observers=[later])
    assert later.begun == [len(watcher.rows)]
    assert watcher.rows + later.rows == resumed.rows
    same(resumed, wirelessfl.run(config(algorithm, **flags), data=toy))


def test_an_interrupt_in_an_observer_is_not_an_error(config, toy):
    settings, watcher = config(**NEVER), Watcher(1, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, observers=[watcher])
    assert RunFolder(settings.run.out).load()[1]["rows_bytes"] > 0
    assert watcher.ended == 1


class FailsAt(Watcher):
    """Fails in the hook of this name."""

    def __init__(self, hook):
        super().__init__()
        setattr(self, hook, self.fail)

    def fail(self, *_):
        raise LookupError("nowhere")


def test_errors_of_begin_leave_no_folder_and_those_of_end_a_finished_run(config, toy, same):
    settings = config()
    with pytest.raises(TrainingError, match=r"observer .*FailsAt', begin: LookupError: nowhere"):
        wirelessfl.run(settings, data=toy, observers=[FailsAt("begin")])
    assert not settings.run.out.exists()
    with pytest.raises(TrainingError, match="end: LookupError: nowhere"):
        wirelessfl.run(settings, data=toy, observers=[FailsAt("end")])
    same(wirelessfl.resume(settings.run.out), wirelessfl.run(config(), data=toy))


def test_an_error_of_training_is_not_replaced_by_that_of_end(config, toy, monkeypatch):
    def train(*_):
        raise TrainingError("the training failed")

    monkeypatch.setattr(Learner, "learn", train)
    settings, notes, watcher = config(), [], Watcher()
    with pytest.raises(TrainingError, match=r"^the training failed$"):
        wirelessfl.run(
            settings, data=toy, observers=[FailsAt("end"), watcher], on_note=notes.append
        )
    assert notes[-1].startswith(f"observer '{__name__}:FailsAt', end: LookupError: nowhere")
    assert watcher.ended == 1
    assert not settings.run.out.exists()


def test_a_reason_at_row_0_leaves_a_finished_run(config, toy):
    result = wirelessfl.run(config(), data=toy, observers=[Watcher(0, "enough")])
    assert result.ended == "ended after round 0 of 3: enough"
    assert wirelessfl.resume(result.directory).rows == result.rows


@pytest.mark.parametrize(
    ("observers", "message"),
    [
        (Watcher(), r"observers is <.*Watcher.*: give a list, \[Watcher\(\.\.\.\)\]\."),
        ([Watcher], r"observers\[0\] is <class .*: give an instance, Watcher\(\)\."),
        (
            [Watcher(), print],
            r"observers\[1\] is .*: give an instance of a class that derives from "
            r"wirelessfl\.observers\.Observer\.",
        ),
    ],
)
def test_wrong_observers_are_refused(config, toy, observers, message):
    settings = config()
    with pytest.raises(ConfigError, match=f"^{message}$"):
        wirelessfl.run(settings, data=toy, observers=observers)
    assert not settings.run.out.exists()
    with pytest.raises(ConfigError, match=f"^{message}$"):
        wirelessfl.resume("nowhere", observers=observers)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("reason", [3, True, "", b"enough"])
def test_a_reason_that_is_no_text_is_refused(config, toy, reason):
    message = f"observer '{__name__}:Watcher': row returned {reason!r}. Return None, or the "
    with pytest.raises(ConfigError) as caught:
        wirelessfl.run(config(), data=toy, observers=[Watcher(1, reason)])
    assert str(caught.value) == message + "reason to end the run as a string."


def test_hooks_of_a_run_without_a_reason_return_nothing(config, toy):
    class Begins(Observer):
        def begin(self, run):
            return "enough"

    with pytest.raises(ConfigError, match=r"begin returned 'enough'\. Return None\.$"):
        wirelessfl.run(config(), data=toy, observers=[Begins()])


TASKS = {
    "schedule": "buffered", "requests": 4, "buffer": 2, "rounds": 6, "eval_every": 1, "clients": 6,
    "task": ["digits,name=a", "digits,name=b"], "local_steps": 1, "hidden": (4,),
}  # fmt: skip


@pytest.mark.parametrize("schedule", ["buffered", "simultaneous"])
def test_tasks_end_one_by_one_or_together(config, schedule):
    class Ends(Observer):
        def __init__(self, kind):
            self.kind = kind

        def row(self, run, row):
            at = {"a": 1, "b": 3}[row["task"]]
            return self.kind("enough") if row["round"] == at else None

    flags = {k: v for k, v in TASKS.items() if schedule == "buffered" or k not in BUFFERED}
    flags |= {"schedule": schedule, "rounds": 6}
    result = wirelessfl.run(config("fedavg", **flags), observers=[Ends(EndOfTask)])
    last = {row["task"]: row["round"] for row in result.rows}
    assert last == {"a": 1, "b": 3}
    reasons = "a: enough; b: enough"
    assert result.ended == f"ended before the last round of its tasks: {reasons}"
    assert wirelessfl.resume(result.directory).ended == result.ended
    result = wirelessfl.run(config("fedavg", **flags), observers=[Ends(str)])
    assert (result.rows[-1]["task"], result.rows[-1]["round"]) == ("a", 1)
    assert result.ended.endswith(": enough")


class Second(Shards):
    """The second of two processes; the first one says what the observers have decided."""

    def __init__(self, told):
        super().__init__(1, 2)
        object.__setattr__(self, "told", told)

    def from_first(self, thing):
        return True

    def by_first(self, action):
        return self.told


def test_only_the_first_process_has_observers(config, toy):
    setup = build(config(), data=toy)
    object.__setattr__(setup, "shards", Second(None))
    directory = create(setup.config.run.out, setup.config)
    watcher = Watcher()
    execution = Execution(Engine(setup), directory, None, observers=[watcher])
    assert execution.observers.of_rows == []
    object.__setattr__(execution.shards, "told", Stop())
    assert execution.report(Report(0)) == Stop()
    assert not watcher.rows


def test_a_console_of_the_caller_stands_for_the_default_one(config, toy, capsys, monkeypatch):
    monkeypatch.setattr("wirelessfl.runs.observers.in_notebook", lambda: True)
    monkeypatch.setattr("wirelessfl.runs.observers.console.in_notebook", lambda: True)
    wirelessfl.run(config(rounds=2), data=toy)
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.count("\r") == 3
    assert shown.out.splitlines()[-1].startswith(f"hist on toy {'█' * 24} round 2/2  accuracy 0.")
    wirelessfl.run(config(rounds=2), data=toy, observers=[Console(quiet=True)])
    assert capsys.readouterr() == ("", "")
