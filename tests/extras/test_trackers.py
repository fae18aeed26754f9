"""Rows in TensorBoard, Trackio, W&B and MLflow, read back by the packages themselves."""

import importlib
import json
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

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


class KilledAt(Observer):
    """Kills the process at a round, after the tracker has seen its row."""

    def __init__(self, stop):
        self.stop = stop

    def row(self, run, row):
        if row["round"] == self.stop:
            os.kill(os.getpid(), signal.SIGKILL)


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


TASKS = [{"name": "even", "rounds": 4}, {"name": "odd", "rounds": 3}]
KINDS = {
    # Without a checkpoint a resumed run begins anew; with one it lacks no row, or repeats one.
    "no checkpoint": {},
    "checkpoints": {"run": SETTINGS["run"] | {"checkpoint_seconds": 0}},
    "tasks": {
        "algorithm": {"name": "fedasync"},
        "training": {"local_steps": 1, "batch_size": 8},
        "schedule": {"name": "simultaneous"},
        "task": TASKS,
    },
}


def killed_and_resumed(out, track, kind):
    """The result of a run whose process is killed at round 2, and which is resumed."""
    tables = settings(out, track) | KINDS[kind]
    tables["run"] |= {"out": str(out), "track": track}
    words = [sys.executable, "-m", __name__, "kill", json.dumps(tables)]
    # Without the service of W&B that earlier tests have started in this process.
    environment = {k: v for k, v in os.environ.items() if k != "WANDB_SERVICE"}
    killed = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return wirelessfl.resume(out)


def steps_and_values(rows, mark):
    """Round and value of each number of the rows, by the name that a tracker has for it."""
    return {
        f"{mark}{name}": [(row["round"], row[name]) for row in rows]
        for name in numbers(rows[0])
        if name not in ("wall_seconds", "task") and isinstance(rows[0][name], int | float)
    }


def expected_metrics(result):
    parts = {f"{task}/": result.rows_of(task) for task in result.tasks} or {"": result.rows}
    return {k: v for mark, rows in parts.items() for k, v in steps_and_values(rows, mark).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_mlflow_has_one_run_with_each_row_once(tmp_path, monkeypatch, kind):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    result = killed_and_resumed(tmp_path / "run", "mlflow", kind)
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("wirelessfl")
    [run] = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["clients"] == "4"
    assert run.data.params["algorithm"] == result.settings["algorithm"]
    for name, values in expected_metrics(result).items():
        history = client.get_metric_history(run.info.run_id, name)
        assert [(entry.step, entry.value) for entry in history] == values, name


@pytest.mark.parametrize("kind", KINDS)
def test_wandb_has_one_run_with_each_row_once(tmp_path, monkeypatch, kind):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    result = killed_and_resumed(tmp_path / "run", "wandb", kind)
    [folder] = (tmp_path / "run" / "wandb").glob("offline-run-*")
    [file] = folder.glob("run-*.wandb")
    records = [*wandb_records(file)]
    [run] = [record.run for record in records if record.HasField("run")]
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert (run.project, run.display_name, config["clients"]) == ("wirelessfl", "run", 4)
    histories = [record.history for record in records if record.HasField("history")]
    logged = [
        {item.key or item.nested_key[0]: json.loads(item.value_json) for item in history.item}
        for history in histories
    ]
    if not result.tasks:
        assert [history.step.num for history in histories] == [0, 1, 2, 3, 4]
    for name, values in expected_metrics(result).items():
        mark = name.rpartition("/")[0]
        rounds = f"{mark}/round" if mark else "round"
        assert [(row[rounds], row[name]) for row in logged if name in row] == values, name
    axes = {r.metric.name: r.metric.step_metric for r in records if r.HasField("metric")}
    mark = f"{result.tasks[0]}/" if result.tasks else ""
    assert axes[f"{mark}accuracy"] == f"{mark}round"
    assert axes[f"{mark}seconds/accuracy"] == f"{mark}sim_seconds"
    assert axes[f"{mark}joules/accuracy"] == f"{mark}joules"
    for row in logged:
        assert row.get(f"{mark}seconds/loss") == row.get(f"{mark}loss")


def wandb_records(file):
    """The records of an offline run, from blocks of 32 KiB as in logs of LevelDB."""
    wandb_internal = importlib.import_module("wandb.proto.wandb_internal_pb2")
    content, place, parts = file.read_bytes(), 7, []  # after ":W&B" and its version
    while place + 7 <= len(content):
        if 32768 - place % 32768 < 7:  # no header fits into the rest of the block
            place += 32768 - place % 32768
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        parts.append(content[place + 7 : place + 7 + size])
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal.Record()
            record.ParseFromString(b"".join(parts))
            parts = []
            yield record


def test_wandb_writes_to_relative_folders_wherever_its_service_started(tmp_path, monkeypatch):
    """The service, which writes the files, keeps the folder in which the first run began."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        wirelessfl.run(settings("run", "wandb"))
        [file] = tmp_path.glob(f"{name}/run/wandb/offline-run-*/run-*.wandb")
        assert sum(record.HasField("history") for record in wandb_records(file)) == 5


def test_wandb_has_one_folder_after_runs_that_began_in_one_second(tmp_path, monkeypatch):
    """W&B numbers the folder of the second."""
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    wirelessfl.run(settings(tmp_path / "run", "wandb"))
    [folder] = (tmp_path / "run" / "wandb").glob("offline-run-*")
    folder.rename(folder.with_name(f"{folder.name}-1"))
    wirelessfl.resume(tmp_path / "run", rounds=5)
    [file] = tmp_path.glob("run/wandb/offline-run-*/run-*.wandb")
    assert sum(record.HasField("history") for record in wandb_records(file)) == 6


def test_wandb_gets_only_the_rows_that_its_server_lacks(tmp_path, monkeypatch):
    """Online, W&B says after which step a resumed run continues."""
    wandb, logged = pytest.importorskip("wandb"), []
    run = SimpleNamespace(
        offline=False,
        starting_step=3,
        log=lambda numbers, step: logged.append((step, numbers["round"])),
        define_metric=lambda name, step_metric: None,
        finish=lambda exit_code: logged.append(exit_code),
    )
    monkeypatch.setattr(wandb, "init", lambda **options: run)
    wirelessfl.run(settings(tmp_path / "run", "wandb"))
    assert logged == [(3, 3), (4, 4), 0]


@pytest.mark.parametrize("content", ["{", "[1]", '{"mlflow": 3}', '{"mlflow": "../x"}', "{}"])
def test_a_run_without_a_valid_identifier_is_a_new_one(tmp_path, content):
    mlflow = pytest.importorskip("mlflow")
    uri, out = f"sqlite:///{tmp_path}/mlflow.db", tmp_path / "run"
    trackers = [wirelessfl.observers.MLflow("mine", uri)]
    with pytest.raises(wirelessfl.TrainingError):
        wirelessfl.run(settings(out, None), observers=[*trackers, FailsAt(2)])
    (out / "trackers.json").write_text(content)
    wirelessfl.resume(out, observers=trackers)
    client = mlflow.MlflowClient(uri)
    runs = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    identifiers = {run.info.status: run.info.run_id for run in runs}
    assert (len(runs), {*identifiers}) == (2, {"FINISHED", "FAILED"})
    assert len(client.get_metric_history(identifiers["FINISHED"], "accuracy")) == 5


def test_a_run_that_was_deleted_in_mlflow_is_a_new_one(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    uri, out = f"sqlite:///{tmp_path}/mlflow.db", tmp_path / "run"
    trackers, client = [wirelessfl.observers.MLflow("mine", uri)], mlflow.MlflowClient(uri)
    with pytest.raises(wirelessfl.TrainingError):
        wirelessfl.run(settings(out, None), observers=[*trackers, FailsAt(2)])
    numbers = [client.get_experiment_by_name("mine").experiment_id]
    client.delete_run(client.search_runs(numbers)[0].info.run_id)
    wirelessfl.resume(out, observers=trackers)
    [run] = client.search_runs(numbers)
    assert run.info.status == "FINISHED"
    assert len(client.get_metric_history(run.info.run_id, "accuracy")) == 5


def test_a_missing_package_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for track in ("tensorboard", "trackio", "wandb", "mlflow"):
        with pytest.raises(wirelessfl.ConfigError, match=r"pip install 'wirelessfl\[trackers\]'$"):
            wirelessfl.run(settings(tmp_path / "run", track))
    assert not (tmp_path / "run").exists()


if __name__ == "__main__" and sys.argv[1] == "kill":
    wirelessfl.run(json.loads(sys.argv[2]), observers=[KilledAt(2)])
elif __name__ == "__main__":
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
