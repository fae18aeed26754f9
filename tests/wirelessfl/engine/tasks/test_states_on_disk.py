"""Runs with client states on disk and in memory are equal; each task with states has a log."""

import pytest
import torch

import wirelessfl
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config

FLAGS = {
    "clients": 5, "local_steps": 2, "batch_size": 8, "rounds": 6, "eval_every": 1, "threads": 1,
    "step_seconds": 0.01, "uplink": "fixed", "chunk": 4, "checkpoint_seconds": 0,
}  # fmt: skip
TASKS = [
    "digits,name=a,hidden=4,algorithm=fadamgc",
    "digits,name=b,hidden=6,algorithm=ram-fed",
    "digits,name=c,hidden=6,algorithm=fedavg",
]
CASES = {
    "one task": ("scaffold", {"dataset": "digits", "hidden": (6,), "schedule": "buffered"}),
    "requests": ("fedavg", {"task": TASKS, "schedule": "buffered"}),
    "rounds": ("fedavg", {"task": TASKS[:2], "schedule": "simultaneous", "first": 2}),
}


class StoppedError(Exception):
    """Stands for an interruption of the process."""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", CASES)
def test_runs_on_disk_and_in_memory_are_equal(tmp_path, case):
    """A resumed run with states on disk equals an uninterrupted run in memory.

    If the log of any task is damaged, the run is not resumed.
    """
    name, own = CASES[case]
    if own["schedule"] == "buffered":
        own = own | {"requests": 6, "buffer": 2}

    def settings(kind, folder):
        return Config.from_flags(name, **FLAGS | own, client_states=kind, out=tmp_path / folder)

    def plain(result):
        return [row | {"wall_seconds": 0.0} for row in result.rows]

    memory = wirelessfl.run(settings("memory", "memory"))
    assert not list(memory.directory.glob("*clients-*.log"))
    rows = []

    def stop(row):
        rows.append(row)
        if len(rows) == len(memory.rows) // 2:
            raise StoppedError

    with pytest.raises(StoppedError):
        wirelessfl.run(settings("disk", "disk"), on_row=stop)
    for log in (tmp_path / "disk").glob("*clients-*.log"):
        whole = log.read_bytes()
        if whole:
            log.write_bytes(bytes(255 - byte for byte in whole))
            with pytest.raises(ConfigError, match=f"{log.name} is damaged"):
                wirelessfl.resume(tmp_path / "disk")
            log.write_bytes(whole)
    disk = wirelessfl.resume(tmp_path / "disk")
    assert disk.config.run.client_states == "disk"
    assert plain(disk) == plain(memory)
    assert all(torch.equal(disk.params[key], value) for key, value in memory.params.items())
    logs = sorted(log.name for log in disk.directory.glob("*clients-*.log") if log.stat().st_size)
    marks = [""] if "task" not in own else ["task0-", "task1-"]
    assert len(logs) == len(marks)
    assert all(log.startswith(f"{mark}clients-") for log, mark in zip(logs, marks, strict=True))


def test_automatic_storage_is_stored_as_auto(tmp_path, monkeypatch):
    """States beyond the memory limit are kept on disk, but the stored setting remains "auto"."""
    monkeypatch.setattr("wirelessfl.engine.server.client_states.MEMORY_BYTES", 100)
    own = CASES["requests"][1] | {"requests": 6, "buffer": 2, "out": tmp_path / "run"}
    result = wirelessfl.run(Config.from_flags("fedavg", **FLAGS | own))
    assert result.config.run.client_states == "auto"
    marks = {log.name.split("-")[0] for log in result.directory.glob("*clients-*.log")}
    assert marks == {"task0", "task1"}
