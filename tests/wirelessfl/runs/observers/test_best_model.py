"""The best model is that of the best row, whatever happens between rows and checkpoints."""

import errno
import os
import shutil

import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

import wirelessfl
from wirelessfl.observers import BestModel, Observer
from wirelessfl.results import Runs
from wirelessfl.results.export import export
from wirelessfl.runs.folder.identity import settings_hash
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.observers.best_model import best_file, best_row

UNSTEADY = {"lr": 2.0, "rounds": 10, "keep_best": True}
"""Accuracies that go up and down."""


class Params(Observer):
    """Keeps the parameters of all rows."""

    def begin(self, run):
        self.kept = [None] * len(run.rows)

    def row(self, run, row):
        self.kept.append(run.params())


def best_of(rows):
    return max(range(len(rows)), key=lambda place: rows[place]["accuracy"])


def agrees(folder, rows, params=None):
    """Whether the file has the first best row, and its parameters."""
    place = best_of(rows)
    assert best_row(best_file(folder)) == rows[place]
    if params is not None:
        found = load_file(best_file(folder))
        assert found.keys() == params[place].keys()
        assert all(torch.equal(value, params[place][name]) for name, value in found.items())


@pytest.mark.parametrize(
    ("algorithm", "flags"),
    [
        ("fedavg", {}),
        ("hfedavg", {"schedule": "buffered", "buffer": 1, "step_seconds": 0.1, "eval_every": 1}),
    ],
)
def test_the_file_has_the_best_row_and_its_parameters(config, toy, algorithm, flags):
    params = Params()
    result = wirelessfl.run(config(algorithm, **UNSTEADY, **flags), data=toy, observers=[params])
    assert 0 < best_of(result.rows) < len(result.rows) - 1
    agrees(result.directory, result.rows, params.kept)
    names = {file.name for file in result.directory.iterdir()}
    assert names == {
        *("about.json", "config.toml", "rows.jsonl", "partition.npz"),
        *("best.safetensors", "checkpoint.safetensors"),
    }  # fmt: skip


def test_runs_that_are_killed_or_interrupted_anywhere_end_with_the_same_file(
    config, toy, copies, bare
):
    """Copies of the folder after each row are those of a killed process: checkpoints lag behind."""

    class Copied(Observer):
        def row(self, run, row):
            copies.of(run.directory)(row)

    params = Params()
    settings = config("fedavg", **UNSTEADY, checkpoint_seconds=1e6)
    watching = [params, Copied()]
    result = wirelessfl.run(settings, data=toy, observers=watching)
    stored = load_file(best_file(result.directory))
    for copy in copies[1::2]:
        resumed = wirelessfl.resume(copy, data=toy)
        assert bare(resumed.rows) == bare(result.rows)
        agrees(copy, resumed.rows, params.kept)
    settings = config("fedavg", **UNSTEADY, checkpoint_seconds=1e6)
    for stop in (2, 4, 6):  # after each, the file is of rows that the checkpoint covers

        class Fails(Observer):
            def row(self, run, row, stop=stop):
                assert row["round"] < stop

        act = wirelessfl.run if stop == 2 else wirelessfl.resume
        with pytest.raises(wirelessfl.TrainingError, match="AssertionError"):
            act(settings if stop == 2 else settings.run.out, data=toy, observers=[Fails()])
        rows = RunFolder(settings.run.out).rows()
        agrees(settings.run.out, rows, params.kept)
        assert not [*settings.run.out.glob("*.before")]
    resumed = wirelessfl.resume(settings.run.out, data=toy)
    agrees(settings.run.out, resumed.rows, params.kept)
    found = load_file(best_file(resumed.directory))
    assert all(torch.equal(value, stored[name]) for name, value in found.items())


def test_rows_after_the_checkpoint_leave_the_best_up_to_there(config, toy, copies):
    """Killed after a better row that no checkpoint covers, and resumed with another end."""

    class Copied(Observer):
        def row(self, run, row):
            if row["round"] == 2:
                raise KeyboardInterrupt
            copies.of(run.directory)(row)

    settings = config("fedavg", **UNSTEADY | {"lr": 0.3}, checkpoint_seconds=1e6)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, observers=[Copied()])
    params = Params()
    copies.clear()

    class Late(Observer):
        def row(self, run, row):
            shutil.copytree(run.directory, copies.parent / f"late{row['round']}")

    wirelessfl.resume(settings.run.out, data=toy, observers=[Late()])
    killed = copies.parent / "late5"  # rows 3 to 5 are better, and not in the checkpoint
    assert best_row(best_file(killed))["round"] > 2
    assert [file.name for file in killed.glob("*.before")] == ["best.before"]

    class Ends(Observer):
        def begin(self, run):
            self.rows = [*run.rows]
            agrees(killed, self.rows)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wirelessfl.resume(killed, data=toy, observers=[params, Ends()])
    agrees(killed, wirelessfl.resume(killed, data=toy).rows)


def test_parameters_that_were_not_kept_are_not_invented(config, toy):
    """The observer joins a run that has begun without it."""
    settings, notes = config("fedavg", **UNSTEADY | {"keep_best": False}), []

    class Fails(Observer):
        def row(self, run, row):
            assert row["round"] < 6

    with pytest.raises(wirelessfl.TrainingError):
        wirelessfl.run(settings, data=toy, observers=[Fails()])
    best = BestModel()
    result = wirelessfl.resume(settings.run.out, data=toy, observers=[best], on_note=notes.append)
    place = best_of(result.rows)
    assert any("were not kept" in note for note in notes)
    found = best_row(best_file(result.directory))
    assert found == (result.rows[place] if place > 6 else None)


def test_each_task_has_its_file(config):
    flags = {"schedule": "simultaneous", "rounds": 4, "lr": 1.0, "local_steps": 2}
    tasks = {"task": ["digits,name=a,model=linear", "digits,name=b,model=linear"]}
    result = wirelessfl.run(config("fedavg", **flags, **tasks, keep_best=True))
    for number, task in enumerate("ab"):
        rows = result.rows_of(task)
        file = best_file(result.directory, number)
        assert best_row(file) == rows[best_of(rows)]
        names = {name.removeprefix(f"{task}.") for name in result.params if name[0] == task}
        assert load_file(file).keys() == names


def test_a_diverged_run_has_no_best_model_after_its_start(config, toy):
    result = wirelessfl.run(config("fedavg", lr=1e30, rounds=2, keep_best=True), data=toy)
    assert best_row(best_file(result.directory)) == result.rows[0]


def test_a_run_that_fails_at_its_start_leaves_nothing(config, toy, monkeypatch):
    def train(*_):
        raise wirelessfl.TrainingError("failed")

    monkeypatch.setattr("wirelessfl.engine.server.learner.Learner.learn", train)
    settings = config("fedavg", keep_best=True)
    with pytest.raises(wirelessfl.TrainingError):
        wirelessfl.run(settings, data=toy)
    assert not settings.run.out.exists()


def test_settings_that_change_no_results_do_not_change_names_of_runs(config):
    plain = settings_hash(config("fedavg"))
    assert settings_hash(config("fedavg", keep_best=True)) == plain
    assert settings_hash(config("fedavg", track="tensorboard")) == plain
    assert settings_hash(config("fedavg", patience=3)) != plain


def test_a_flipped_bit_of_the_best_parameters_is_noticed(config, toy, tmp_path):
    result = wirelessfl.run(config("fedavg", **UNSTEADY), data=toy)
    file = best_file(result.directory)
    whole = file.read_bytes()
    for place in (60, len(whole) - 30):  # in the row, and in the parameters
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        assert best_row(file) is None
        with pytest.raises(wirelessfl.ConfigError, match=r"best\.safetensors is damaged: "):
            export(Runs([wirelessfl.load(result.directory)]), tmp_path / "m.pt", best=True)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free disk space"), (errno.EACCES, "Allow this user to write there")],
)
def test_best_parameters_that_cannot_be_written_do_not_blame_the_observer(
    config, toy, monkeypatch, number, remedy
):
    saved = safetensors.torch.save_file

    def fail(tensors, file, metadata):
        if "row" not in metadata:  # a checkpoint
            return saved(tensors, file, metadata)
        raise SafetensorError(f"I/O error: {os.strerror(number)} (os error {number})")

    monkeypatch.setattr("safetensors.torch.save_file", fail)
    settings = config(keep_best=True)
    with pytest.raises(wirelessfl.ConfigError) as caught:
        wirelessfl.run(settings, data=toy)
    folder = settings.run.out
    assert str(caught.value).startswith(f"{best_file(folder)} cannot be written: ")
    assert str(caught.value).endswith(f" {remedy}, then resume: wirelessfl resume {folder}")
