"""Rows in TensorBoard and Trackio, read back by the packages themselves."""

import importlib
import json
import os
import subprocess
import sys

import pytest

import wirelessfl
from wirelessfl.observers import Observer

pytestmark = [
    pytest.mark.extras,
    # Warnings of the packages themselves, e.g. of functions that will change.
    pytest.mark.filterwarnings("default"),
]
SETTINGS = {
    "algorithm": {"name": "fedavg"},
    "network": {"clients": 4},
    "training": {"rounds": 4, "local_steps": 1, "batch_size": 8},
    "model": {"name": "linear"},
    "run": {"threads": 1, "checkpoint_seconds": 1e6},
}


class FailsAt(Observer):
    """Fails at a round."""

    def __init__(self, stop):
        self.stop = stop

    def row(self, run, row):
        assert row["round"] < self.stop


def settings(out, track):
    return SETTINGS | {"run": SETTINGS["run"] | {"out": str(out), "track": track}}


def interrupted_and_resumed(out, track):
    """The result of a run that fails at round 2 and is resumed."""
    with pytest.raises(wirelessfl.TrainingError):
        wirelessfl.run(settings(out, track), observers=[FailsAt(2)])
    return wirelessfl.resume(out)


def numbers(row):
    return {name: value for name, value in row.items() if name != "numerics"}


def test_tensorboard_has_each_number_of_each_row_once(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    result = interrupted_and_resumed(tmp_path / "run", "tensorboard")
    found = events.EventAccumulator(str(result.directory / "tensorboard"))
    found.Reload()
    assert set(found.Tags()["scalars"]) == numbers(result.rows[0]).keys()
    for name in numbers(result.rows[0]):
        scalars = found.Scalars(name)
        assert [one.step for one in scalars] == [0, 1, 2, 3, 4]
        expected = [row[name] for row in result.rows]
        assert [one.value for one in scalars] == pytest.approx(expected, rel=1e-6)


def test_trackio_has_each_number_of_each_row_once(tmp_path):
    """In a process of its own: Trackio reads the folder of its database when it is imported."""
    pytest.importorskip("trackio")
    environment = os.environ | {"TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-m", __name__, str(tmp_path / "run")]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)  # and nothing else: Trackio's own messages are not shown
    rows, found = told["rows"], told["found"]
    assert told["runs"] == ["run"]
    assert sorted(found) == sorted(numbers(rows[0]))
    for name, values in found.items():
        assert [step for step, _ in values] == [0, 1, 2, 3, 4]
        assert [value for _, value in values] == pytest.approx([row[name] for row in rows])


def test_a_missing_package_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for track in ("tensorboard", "trackio"):
        with pytest.raises(wirelessfl.ConfigError, match=r"pip install 'wirelessfl\[trackers\]'$"):
            wirelessfl.run(settings(tmp_path / "run", track))
    assert not (tmp_path / "run").exists()


if __name__ == "__main__":
    trackio = importlib.import_module("trackio")
    storage = importlib.import_module("trackio.sqlite_storage").SQLiteStorage
    result = interrupted_and_resumed(sys.argv[1], "trackio")
    logs = storage.get_logs("wirelessfl", "run")
    found = {
        name: [(log["step"], log[name]) for log in logs if name in log]
        for name in numbers(result.rows[0])
    }
    runs = [run.name for run in trackio.Api().runs("wirelessfl")]
    print(json.dumps({"rows": result.rows, "found": found, "runs": runs}))
