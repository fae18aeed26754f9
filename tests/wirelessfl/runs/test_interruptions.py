"""Signals and errors of callbacks leave a checkpoint of all progress; the run continues there."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import wirelessfl
from wirelessfl.base.errors import ConfigError, TrainingError
from wirelessfl.base.signals import ENDING, Terminated
from wirelessfl.engine.server.learner import Learner
from wirelessfl.runs.build import build
from wirelessfl.runs.build.given import NOTHING
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder import new_folder as creation
from wirelessfl.runs.folder.new_folder import create, new_folder
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.training.workers.shards import Shards

NEVER = {"checkpoint_seconds": 1e6}  # no checkpoint but the first, the last, and those asked for


class Stop(Exception):
    """An error of the caller's callback, such as that of an own stopping rule."""


def stop_at(place, seen):
    def on_row(row):
        seen.append(row)
        if len(seen) == place + 1:
            raise Stop(place)

    return on_row


def test_an_error_at_row_0_ends_a_run_at_once(config, toy, same, monkeypatch):
    settings, seen = config(**NEVER), []
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "learn", lambda *_: pytest.fail("it has trained"))
        with pytest.raises(Stop):
            wirelessfl.run(settings, data=toy, on_row=stop_at(0, seen))
    same(wirelessfl.resume(settings.run.out, data=toy), wirelessfl.run(config(), data=toy))


def test_an_error_at_the_last_row_leaves_a_finished_run(config, toy, same):
    settings, seen = config(rounds=2, **NEVER), []
    with pytest.raises(Stop):
        wirelessfl.run(settings, data=toy, on_row=stop_at(2, seen))
    same(wirelessfl.resume(settings.run.out), wirelessfl.run(config(rounds=2), data=toy))


def test_an_error_in_a_note_of_the_training_is_the_callers(config, toy):
    """A note about divergence is told after a row, like the row itself."""
    settings = config(lr=1e30, rounds=3, **NEVER)

    def on_note(note):
        if "diverged" in note:
            raise Stop

    with pytest.raises(Stop):
        wirelessfl.run(settings, data=toy, on_note=on_note)
    assert RunFolder(settings.run.out).load()[1]["rows_bytes"] > 0


@pytest.fixture
def handlers():
    """The default handlers, which a run must not change; tests under nohup ignore SIGHUP."""
    usual = dict.fromkeys(ENDING, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield usual
    for number, handler in before.items():
        signal.signal(number, handler)


def during_round(number, signals, monkeypatch):
    """Raise signals in the middle of a round's training."""
    trained, rounds = Learner.learn, []

    def train(self, *plan):
        rounds.append(plan)
        if len(rounds) == number:
            for each in signals:
                signal.raise_signal(each)
        return trained(self, *plan)

    monkeypatch.setattr(Learner, "learn", train)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_a_run_after_the_current_round(
    config, toy, same, monkeypatch, handlers, number
):
    settings, notes = config(rounds=5, **NEVER), []
    with monkeypatch.context() as patch:
        during_round(3, [number], patch)
        with pytest.raises((KeyboardInterrupt, Terminated)) as caught:
            wirelessfl.run(settings, data=toy, on_note=notes.append)
    if number == signal.SIGINT:
        assert caught.type is KeyboardInterrupt
    else:
        assert caught.value.code == 128 + number
    assert notes[0].startswith("interrupted: a checkpoint follows")
    assert notes[1:] == [f"interrupted; to resume: wirelessfl resume {settings.run.out}"]
    assert {each: signal.getsignal(each) for each in ENDING} == handlers
    rows = []
    resumed = wirelessfl.resume(settings.run.out, data=toy, on_row=rows.append)
    assert [row["round"] for row in rows] == [4, 5]
    same(resumed, wirelessfl.run(config(rounds=5), data=toy))


def test_a_second_interrupt_ends_a_run_at_once(config, toy, same, monkeypatch):
    """Also in a callback; the last checkpoint remains."""
    for in_callback in (True, False):
        settings, rows = config(rounds=5, **NEVER), []

        def on_row(row, rows=rows, in_callback=in_callback):
            rows.append(row)
            if in_callback and row["round"] == 2:
                signal.raise_signal(signal.SIGTERM)
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            if not in_callback:
                during_round(3, [signal.SIGINT, signal.SIGINT], patch)
            with pytest.raises((KeyboardInterrupt, Terminated)):
                wirelessfl.run(settings, data=toy, on_row=on_row)
        assert rows[-1]["round"] == 2
        assert RunFolder(settings.run.out).load()[1]["rows_bytes"] == 0
        same(
            wirelessfl.resume(settings.run.out, data=toy),
            wirelessfl.run(config(rounds=5), data=toy),
        )


def test_handlers_of_the_caller_are_kept(config, toy, handlers):
    """Ignored signals, as under nohup, and signals that the caller handles do not end a run."""
    caught = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: caught.append("of the caller"))

    def on_row(row):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)

    result = wirelessfl.run(config(rounds=2), data=toy, on_row=on_row)
    assert caught == ["of the caller"] * len(result.rows)


def test_other_threads_change_no_handler(config, toy, handlers):
    """A run there neither fails nor changes what the main thread does with signals."""
    seen = []

    def on_row(row):
        seen.append({number: signal.getsignal(number) for number in ENDING})

    thread = threading.Thread(target=lambda: wirelessfl.run(config(), data=toy, on_row=on_row))
    thread.start()
    thread.join()
    assert len(seen) == 4
    assert all(each == handlers for each in seen)


class OfTwo(Shards):
    """The first of two processes, of which the second has been asked to end."""

    def all(self, thing):
        return [thing, True]


def test_processes_that_share_clients_end_together(config, toy):
    """The first one writes a checkpoint when another one has been asked to end."""
    setup = build(config(**NEVER), data=toy)
    directory = create(setup.config.run.out, setup.config)
    execution = Execution(Engine(setup), directory, None)
    execution.shards = OfTwo()
    with pytest.raises(TrainingError, match="process 1 of 2 has ended the run"):
        execution.run()
    assert directory.load()[1]["handler"]["totals"]
    assert [row["round"] for row in directory.rows()] == [0, 1]


def test_runs_that_start_at_once_get_folders_of_their_own(tmp_path, config, toy, monkeypatch):
    monkeypatch.chdir(tmp_path)
    setup = build(config(out=None), data=toy)
    starts, barrier = 8, threading.Barrier(8)

    def start(_):
        barrier.wait()
        return new_folder(setup.config, setup, NOTHING, {}).path

    with ThreadPoolExecutor(starts) as pool:
        for _ in range(2):
            paths = list(pool.map(start, range(starts)))
            assert len(set(paths)) == starts
    assert all(RunFolder.holds_run(path) for path in paths)


def test_one_of_several_runs_gets_the_same_folder(tmp_path, config, toy, monkeypatch):
    settings, barrier = build(config(), data=toy).config, threading.Barrier(4)
    check = creation.check_free

    def slow(path):
        check(path)
        time.sleep(0.02)  # all have found it free before one of them writes

    monkeypatch.setattr(creation, "check_free", slow)
    errors = []

    def start(number):
        barrier.wait()
        try:
            create(tmp_path / "shared", settings.with_run({"seed": number}))
        except ConfigError as error:
            errors.append(str(error))
            return None
        return number

    with ThreadPoolExecutor(4) as pool:
        (winner,) = [number for number in pool.map(start, range(4)) if number is not None]
    assert len(errors) == 3
    assert all("contains a run" in error for error in errors)
    _, stored = RunFolder.open(tmp_path / "shared", False)
    assert stored.run.seed == winner
