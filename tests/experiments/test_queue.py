"""The queue makes every missing run once, in order, and goes on after an interruption."""

import json
import os
import signal
from dataclasses import replace

import pytest

from experiments import check as check_module
from experiments import queue as queue_module
from experiments.__main__ import main
from experiments.check import differences
from experiments.papers import papers
from experiments.queue import (
    Entry,
    entries,
    finished,
    gpu_entries,
    run_queue,
    stored,
)
from experiments.runs import Planned, Store, identity
from tests.launching import wait_until
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun


def config(seed=1, **flags):
    small = {"clients": 4, "rounds": 2, "local_steps": 1, "threads": 1, "chunk": 2}
    return Config.from_flags("fedavg", seed=seed, **small | flags)


@pytest.fixture
def few(tmp_path, monkeypatch):
    """A queue of three runs, one of which fails because its data are missing."""
    store = Store(tmp_path / "rows", tmp_path / "scratch")
    configs = [config(1), config(2, dataset="mnist", data_dir=tmp_path / "none"), config(3)]
    (tmp_path / "none").write_text("")
    found = [
        Entry("hist", "fig3", Planned(f"run {i}", one), store) for i, one in enumerate(configs)
    ]
    monkeypatch.setattr(os, "nice", lambda more: 0)
    return found


def test_the_queue_of_some_studies(tmp_path, capsys):
    """In the order of the queue, with the runs that they share with other studies."""
    names = ["hist/table2", "fedast/fig12"]
    found = entries("small", tmp_path, tmp_path / "scratch", names=names)
    assert {entry.name for entry in found} == set(names)
    assert [entry.run.rank for entry in found] == sorted(entry.run.rank for entry in found)
    shared = entries("small", tmp_path, tmp_path / "scratch", names=["hist/fig6"])
    study = papers()["hist"].study("fig6", "small")
    assert len(shared) == len(study.planned()) == sum(len(case.seeds) for case in study.cases)
    for name, advice in (
        ("hist/tabel2", "Do you mean 'hist/table2'?"),
        ("x", "Give PAPER/STUDY, such as hist/fig6."),
    ):
        assert main(["queue", "--study", name, "--into", str(tmp_path)]) == 2
        said = f"study is '{name}', which has no runs in the queue. {advice}\n"
        assert capsys.readouterr().err.endswith(said)


def test_runs_of_this_repository_are_not_made_again_elsewhere(tmp_path):
    """Their rows need not be in the other folder; those of an unfinished run belong there."""
    every = entries("small", tmp_path, tmp_path / "scratch", names=["fedast/fig5"])
    assert all(map(finished, every))
    assert not any(finished(entry._replace(earlier=None)) for entry in every)
    assert {entry.store.rows for entry in every} == {tmp_path / "fedast" / "rows"}
    (own,) = {entry.store.rows for entry in entries("small", None, tmp_path, names=[every[0].name])}
    assert own == papers()["fedast"].store("small", tmp_path).rows


def test_studies_for_a_gpu_fall_back_to_small_data(tmp_path, monkeypatch):
    """A study runs at scale paper if its data are there, else at scale small, else not at all."""
    absent = {"cifar10", "cifar100"}
    monkeypatch.setattr(queue_module, "is_there", lambda name, _: name not in absent)
    names = ["fedast/fig10", "hist/table1", "fadamgc/fig4", "hist/labels"]
    monkeypatch.setattr(queue_module, "GPU", names)
    every, missing = gpu_entries(tmp_path, tmp_path / "scratch")
    assert missing == ["fedast/fig10 needs cifar10"]
    assert [entry.name for entry in every if entry.run.rank == 0][:1] == ["hist/table1"]
    rounds = {entry.name: entry.run.config.total_rounds for entry in every}
    assert rounds == {"hist/table1": 400, "fadamgc/fig4": 150, "hist/labels": 500}
    assert [entry.run.rank for entry in every] == sorted(entry.run.rank for entry in every)


def test_data_that_are_there(tmp_path, capsys):
    """A folder with files is enough; a scale with --gpu is refused."""
    assert queue_module.is_there("digits", tmp_path)
    assert not queue_module.is_there("mnist", tmp_path)
    (tmp_path / "mnist").mkdir()
    assert not queue_module.is_there("mnist", tmp_path)
    (tmp_path / "mnist" / "file").write_text("")
    assert queue_module.is_there("mnist", tmp_path)
    assert main(["queue", "--gpu", "--scale", "paper"]) == 2
    assert "--gpu chooses it by study" in capsys.readouterr().err


def test_studies_for_a_gpu_have_published_runs():
    for name in queue_module.GPU:
        paper, _, study = name.partition("/")
        assert papers()[paper].study(study, "paper").cases


def test_failures_do_not_stop_the_queue(few, tmp_path, capsys):
    """Failed runs are reported; a second queue makes only what is missing."""
    failures = run_queue(few, tmp_path / "scratch", 1)
    assert [failure.config.run.seed for failure in failures] == [2]
    assert "mnist" in capsys.readouterr().err
    assert [stored(entry) is not None for entry in few] == [True, False, True]
    assert [run.seed for entry in few if (run := stored(entry))] == [1, 3]
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()}
    assert len(run_queue(few, tmp_path / "scratch", 1)) == 1
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "rows").iterdir()} == before


def test_a_damaged_file_is_made_again(few, tmp_path):
    run_queue(few, tmp_path / "scratch", 1)
    (file,) = (tmp_path / "rows").glob(identity(few[0].run.config) + "*")
    before = stored(few[0])
    file.write_bytes(file.read_bytes()[:100])
    assert stored(few[0]) is None
    assert few[0].store.missing([few[0].run]) == [few[0].run]
    run_queue(few, tmp_path / "scratch", 1)
    assert stored(few[0]).rows == before.rows


def test_a_second_queue_with_the_same_folder_is_refused(few, tmp_path):
    with (
        queue_module.alone(tmp_path / "scratch"),
        pytest.raises(ConfigError, match="another queue uses it"),
    ):
        run_queue(few, tmp_path / "scratch", 1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"scratch is .*file: .*file is not a folder"):
        run_queue(few, tmp_path / "file", 1)


def test_the_queue_ends_if_all_runs_fail_for_one_reason(few, tmp_path, monkeypatch):
    """Without data, hundreds of runs would fail one after the other."""
    monkeypatch.setattr(queue_module, "BATCH", 2)
    bad = few[1].run.config
    found = [
        few[1]._replace(run=Planned(f"run {seed}", bad.with_run({"seed": seed})))
        for seed in (7, 8, 9)
    ]
    assert len(run_queue(found, tmp_path / "scratch", 1)) == 2


@pytest.mark.thorough
def test_a_killed_queue_goes_on(tmp_path, launcher):
    """After kill -9, the queue goes on with the unfinished run from its checkpoint."""
    script = tmp_path / "queue_of_two.py"
    script.write_text(QUEUE)
    process = launcher.start(tmp_path, script=script)

    def second():
        """The folder of the second run, once the first is stored and it has some rows."""
        if len(list(tmp_path.glob("rows/*.xz"))) != 1:
            return None
        files = [file.parent for file in tmp_path.glob("scratch/*/rows.jsonl")]
        return next((f for f in files if (f / "rows.jsonl").read_bytes().count(b"\n") > 9), None)

    wait_until(second, 90)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the queue ended before it was killed"
    (old,) = tmp_path.glob("rows/*.xz")
    date = json.loads((second() / "about.json").read_text())["date"]
    assert launcher.start(tmp_path, script=script).wait() == 0
    (new,) = set(tmp_path.glob("rows/*.xz")) - {old}
    run = StoredRun.load(new)
    assert run.about["date"] == date, "it goes on from its checkpoint"
    assert [row["round"] for row in run.rows] == [*range(81)]
    assert [file.name for file in (tmp_path / "scratch").iterdir()] == [".lock"]


QUEUE = """
import sys
from pathlib import Path
from experiments.queue import Entry, run_queue
from experiments.runs import Planned, Store
from wirelessfl.config import Config
from wirelessfl.base.errors import ConfigError

root = Path(sys.argv[1])
store = Store(root / "rows", root / "scratch")
small = {"clients": 8, "local_steps": 4, "threads": 1, "chunk": 4, "checkpoint_seconds": 0}
configs = [Config.from_flags("fedavg", rounds=n, **small) for n in (1, 80)]
entries = [Entry("hist", "x", Planned("x", c), store) for c in configs]
assert not run_queue(entries, store.scratch, 1)
"""


def test_a_folder_that_does_not_exist_is_refused(tmp_path, capsys):
    assert main(["queue", "--into", str(tmp_path / "no")]) == 2
    assert "it is not a folder" in capsys.readouterr().err


def test_a_sample_is_made_again_and_compared(few, tmp_path, capsys, monkeypatch):
    """Equal runs are equal to the bit; a changed value is named."""
    run_queue(few, tmp_path / "scratch", 1)
    monkeypatch.setattr(check_module, "entries", lambda *a: few)
    assert check_module.check(count=2) == 0
    assert "2 of 2 runs are equal" in capsys.readouterr().out
    run = stored(few[0])
    run.rows[1]["loss"] += 1e-9
    (file,) = (tmp_path / "rows").glob(identity(few[0].run.config) + "*")
    run.save(file)
    assert check_module.check(count=2) == 1
    assert "row 1: loss is " in capsys.readouterr().out


def test_a_check_without_runs_is_an_error(few, monkeypatch, capsys):
    monkeypatch.setattr(check_module, "entries", lambda *a: few)
    assert main(["check"]) == 2
    assert "no run of scale small is stored: choose another scale" in capsys.readouterr().err
    assert main(["check", "--sample", "0"]) == 2
    assert "sample is 0: give a number of runs >= 1" in capsys.readouterr().err


def rows(**values):
    return [{"uplink_mib": 1.0, "sim_seconds": 2.0, "accuracy": 0.5, "loss": 1.0} | values]


@pytest.mark.parametrize(
    ("values", "bits", "found"),
    [
        ({}, True, ""),
        ({"loss": 1.0000001}, True, "loss"),
        ({"loss": 1.1}, False, ""),
        ({"accuracy": 0.5049}, False, ""),
        ({"accuracy": 0.506}, False, "accuracy"),
        ({"accuracy": 0.519}, False, "accuracy"),
        ({"accuracy": 0.521}, False, "accuracy"),
        ({"sim_seconds": 2.0 * (1 + 1e-10)}, False, ""),
        ({"sim_seconds": 2.0 * (1 + 1e-8)}, False, "sim_seconds"),
        ({"uplink_mib": 1.0 + 1e-12}, False, "uplink_mib"),
    ],
)
def test_tolerances_on_another_processor(values, bits, found):
    """Bytes are exact, seconds within 1e-9, accuracies within half a point or two points."""
    old = StoredRun({}, rows(), {}, {}, 0.0)
    lines = list(differences(old, replace(old, rows=rows(**values)), bits=bits))
    assert len(lines) == bool(found)
    assert found in "".join(lines)
    depends = replace(old, settings={"tasks": {}})
    again = list(differences(depends, replace(depends, rows=rows(**values) * 2), bits=False))
    assert bool(again) == (rows(**values)[0]["accuracy"] > 0.52)


def test_rows_of_tasks_are_paired_by_task():
    """A task may end earlier; the rows of the others keep their partners."""

    def run(*named):
        rows = [{"task": task, "accuracy": accuracy} for task, accuracy in named]
        return StoredRun({"tasks": {}}, rows, {}, {}, 0.0)

    old = run(("a", 0.1), ("b", 0.8), ("a", 0.2), ("b", 0.9), ("b", 0.95))
    assert not list(
        differences(old, run(("a", 0.1), ("b", 0.8), ("b", 0.9), ("b", 0.95)), bits=False)
    )
    near = run(("a", 0.1), ("b", 0.8), ("a", 0.2), ("b", 0.87), ("b", 0.95))
    assert not list(differences(old, near, bits=False))  # 3 points in one row
    (line,) = differences(old, run(("a", 0.1), ("b", 0.8), ("b", 0.7)), bits=False)
    assert line == "accuracies differ by 6.7 points in the mean over 3 rows"
    (line,) = differences(old, run(("a", 0.1)), bits=False)
    assert line == "5 rows, of which 1 have a partner now"


def test_other_numbers_of_rows_are_reported():
    old = StoredRun({}, rows(), {}, {}, 0.0)
    (line,) = differences(old, replace(old, rows=rows() * 2), bits=True)
    assert line == "1 rows, and 2 rows now"
    more = replace(old, rows=rows(other=1))
    assert not list(differences(old, more, bits=True)), "stored rows may have fewer fields"
    assert list(differences(more, old, bits=True)) == ["row 0: without other now"]
