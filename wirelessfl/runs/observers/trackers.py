"""Writes the rows of a run to an experiment tracker: TensorBoard, Trackio, W&B or MLflow."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import time
import uuid
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import TEXT_BYTES, read_stored, replacing, writing
from wirelessfl.config import Config
from wirelessfl.config.stored import plain, settings_by_flag
from wirelessfl.runs.folder.run_folder import TRACKER_IDS, alone_in
from wirelessfl.runs.observers.observer import Observer, Row, Running

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

Name = Literal["tensorboard", "trackio", "wandb", "mlflow"]
"""The trackers."""
IDENTIFIER = re.compile(r"[A-Za-z0-9]{1,64}")
"""A run's name in W&B or MLflow, as both and this package generate it."""


def check_installed(package: Name) -> None:
    """Check that the package of a tracker is installed, without importing it.

    Raises:
        ConfigError: it is not.
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"track is {package!r}, but its package is not installed: pip install "
            "'wirelessfl[trackers]'"
        )


def numbers_of(row: Row) -> dict[str, float]:
    """The numeric fields of a row by name; those of a task below its name, as ``task/accuracy``."""
    mark = mark_of(row)
    return {
        f"{mark}{name}": float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and name != "numerics"
    }


def mark_of(row: Row) -> str:
    """What the names of a row's fields begin with: its task and a slash, if it has one."""
    return f"{row['task']}/" if "task" in row else ""


def flat_settings(config: Config) -> dict[str, Any]:
    """The settings with an effect by flag name; tables of tasks as JSON."""
    tables = plain(config.used_tables())
    tasks = {"task": json.dumps(tables["task"])} if tables.get("task") else {}
    return settings_by_flag(tables) | tasks


def stored_identifiers(folder: Path) -> dict[str, str]:
    """What trackers call the run in a folder, by package; empty if none is stored."""
    try:
        content = json.loads(read_stored(folder / TRACKER_IDS, TEXT_BYTES))
        return {k: v for k, v in content.items() if IDENTIFIER.fullmatch(v)}
    except (OSError, ValueError, TypeError, AttributeError, ConfigError):
        return {}


def store_identifier(folder: Path, package: Name, identifier: str) -> None:
    """Keep what a tracker calls the run, so that a resumed run continues there."""
    identifiers = stored_identifiers(folder) | {package: identifier}
    with writing(folder / TRACKER_IDS, folder), replacing(folder / TRACKER_IDS) as draft:
        draft.write_text(json.dumps(identifiers), encoding="utf-8")


TENSORBOARD_FOLDER = "tensorboard"
"""Folder of the event files in that of the run."""


class TensorBoard(Observer):
    """Writes every numeric field of each row to event files; show them by ``tensorboard --logdir``.

    The files are in the folder ``tensorboard`` of the run. A resumed run writes them anew from its
    rows, so that each row is there once. Steps are rounds, or a task's merges.

    >>> import wirelessfl
    >>> from wirelessfl.observers import TensorBoard
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=1, out="tracked-run")
    >>> result = wirelessfl.run(settings, observers=[TensorBoard()])
    >>> len([*result.directory.glob("tensorboard/events.out.tfevents.*")])
    1

    Raises:
        ConfigError: the package tensorboard is not installed.
    """

    def __init__(self) -> None:
        check_installed("tensorboard")
        self._writer: SummaryWriter | None = None

    def row(self, run: Running, row: Row) -> None:
        """Write a row, and before the first one all rows before an interruption."""
        if self._writer is not None:
            self._write(row)
            return
        from torch.utils.tensorboard import SummaryWriter

        folder = run.directory / TENSORBOARD_FOLDER
        if folder.is_symlink():
            raise ConfigError(f"{folder} is a link, which may lead elsewhere: remove it.")
        for file in folder.glob("events.out.tfevents.*"):
            file.unlink()
        self._writer = SummaryWriter(str(folder), flush_secs=5)
        for entry in run.rows:  # the last one is ``row``
            self._write(entry)

    def _write(self, row: Row) -> None:
        writer: Any = self._writer
        for name, value in numbers_of(row).items():
            writer.add_scalar(name, value, row["round"])

    def end(self, run: Running) -> None:
        """Write buffered rows."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


TRACKIO_FOLDER = "directory"
"""Entry of a run's configuration in Trackio: the absolute path of its folder here."""


class Trackio(Observer):
    """Writes every numeric field of each row to Trackio's database; show it by ``trackio show``.

    A run has the name of its folder. A resumed run is written anew from its rows, so that each row
    is there once. Steps are rounds, or a task's merges.

    >>> from wirelessfl.observers import Trackio
    >>> tracker = Trackio(project="hist-at-the-edge")  # for run(..., observers=[tracker])
    >>> tracker.project
    'hist-at-the-edge'

    Args:
        project: name of the project in Trackio.

    Raises:
        ConfigError: the package trackio is not installed.
    """

    def __init__(self, project: str = "wirelessfl") -> None:
        check_installed("trackio")
        self.project = project
        self._run: Any = None

    def row(self, run: Running, row: Row) -> None:
        """Write a row, and before the first one all rows before an interruption."""
        rows = [row]
        if self._run is None:
            self._run, rows = self._opened(run), [*run.rows]  # the last one is ``row``
        for entry in rows:
            self._run.log(numbers_of(entry), step=entry["round"])

    def _opened(self, run: Running) -> Any:
        """A new run in the database, in place of an earlier one of this folder."""
        trackio, folder = importlib.import_module("trackio"), str(run.directory.absolute())
        with redirect_stdout(StringIO()):  # stdout may be the JSON of a command
            with suppress(ValueError):  # there is no such project yet
                for stored in trackio.Api().runs(self.project):
                    if (stored.config or {}).get(TRACKIO_FOLDER) == folder:
                        stored.delete()
            return trackio.init(
                self.project,
                name=run.directory.name,
                config={TRACKIO_FOLDER: folder, **flat_settings(run.config)},
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )

    def end(self, run: Running) -> None:
        """Write buffered rows."""
        if self._run is not None:
            with redirect_stdout(StringIO()):
                importlib.import_module("trackio").finish()
            self._run = None


class WandB(Observer):
    """Writes every numeric field of each row to Weights & Biases, where the run has one page.

    Steps are rounds, which are also the axis of every field. ``seconds/accuracy`` and
    ``joules/accuracy`` are the accuracy over virtual seconds and over joules; so is ``loss``. A
    resumed run continues under its identifier in ``trackers.json``, and each row is there once.
    ``WANDB_MODE=offline`` writes to the folder ``wandb`` of the run, for ``wandb sync``.

    >>> from wirelessfl.observers import WandB
    >>> tracker = WandB(project="hist-at-the-edge")  # for run(..., observers=[tracker])
    >>> tracker.project
    'hist-at-the-edge'

    Args:
        project: name of the project; None for that of ``WANDB_PROJECT``, or wirelessfl.

    Raises:
        ConfigError: the package wandb is not installed.
    """

    def __init__(self, project: str | None = None) -> None:
        check_installed("wandb")
        self.project = project or os.environ.get("WANDB_PROJECT", "wirelessfl")
        self._run: Any = None

    def begin(self, run: Running) -> None:
        """Open the run, and write the rows before an interruption that it lacks."""
        wandb, self._outer = importlib.import_module("wandb"), sys.exc_info()[1]
        identifier = stored_identifiers(run.directory).get("wandb") or uuid.uuid4().hex
        self._run = wandb.init(
            project=self.project,
            id=identifier,
            name=run.directory.name,
            dir=str(run.directory.absolute()),  # its service may run in another folder
            config=flat_settings(run.config),
            resume="allow",
            settings=wandb.Settings(console="off"),
        )
        store_identifier(run.directory, "wandb", identifier)
        if self._run.offline:  # all rows are written again, and `wandb sync` must find them once
            for folder in (run.directory / "wandb").glob(f"offline-run-*-{identifier}*"):
                if folder.resolve() != Path(self._run.dir).resolve().parent:
                    shutil.rmtree(folder)
        self._fields, self._step = set[str](), -1
        self._first = self._run.starting_step  # after the rows that the server has
        for row in run.rows:
            self.row(run, row)

    def row(self, run: Running, row: Row) -> None:
        """Write a row."""
        self._step = max(row["round"], self._step + 1)  # W&B drops steps that do not increase
        if self._step < self._first:
            return
        mark, numbers = mark_of(row), numbers_of(row)
        axes = dict.fromkeys(numbers, f"{mark}round")
        for axis, field in (("seconds", "sim_seconds"), ("joules", "joules")):
            for name in ("accuracy", "loss"):
                if f"{mark}{name}" in numbers and f"{mark}{field}" in numbers:
                    numbers[f"{mark}{axis}/{name}"] = numbers[f"{mark}{name}"]
                    axes[f"{mark}{axis}/{name}"] = f"{mark}{field}"
        for name in axes.keys() - self._fields - {*axes.values()}:
            self._run.define_metric(name, step_metric=axes[name])
        self._fields |= axes.keys()
        self._run.log(numbers, step=self._step)

    def end(self, run: Running) -> None:
        """Write buffered rows; a run that an error or an interrupt ends counts as failed."""
        if self._run is not None:
            self._run.finish(exit_code=int(sys.exc_info()[1] is not self._outer))
            self._run = None


class MLflow(Observer):
    """Writes every numeric field of each row to MLflow as a metric, and settings as parameters.

    Steps are rounds, or a task's merges. ``sim_seconds`` and ``joules`` are metrics, which charts
    take as axes. A resumed run continues under its identifier in ``trackers.json``, and each row
    is there once.

    >>> from wirelessfl.observers import MLflow
    >>> tracker = MLflow("hist-at-the-edge", uri="sqlite:///mlflow.db")  # run(..., observers=[...])
    >>> tracker.experiment
    'hist-at-the-edge'

    Args:
        experiment: name of the experiment; None for that of ``MLFLOW_EXPERIMENT_NAME``, or
            wirelessfl.
        uri: address of the server or database; None for ``MLFLOW_TRACKING_URI``, or the file
            ``mlflow.db`` in the current folder.

    Raises:
        ConfigError: the package mlflow is not installed.
    """

    def __init__(self, experiment: str | None = None, uri: str | None = None) -> None:
        check_installed("mlflow")
        self.experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME", "wirelessfl")
        self.uri = uri
        self._identifier: str | None = None

    def begin(self, run: Running) -> None:
        """Open the run, and write the rows before an interruption that it lacks."""
        mlflow, self._outer = importlib.import_module("mlflow"), sys.exc_info()[1]
        with alone_in(run.directory.parent):  # runs of a sweep must not create its database at once
            self._client = mlflow.MlflowClient(self.uri)
        self._steps: dict[str, int] = {}
        self._known: dict[str, int] = {}
        self._identifier = self._resumed(run.directory) or self._created(run)
        store_identifier(run.directory, "mlflow", self._identifier)
        for row in run.rows:
            self.row(run, row)

    def _resumed(self, folder: Path) -> str | None:
        """The identifier of the run of a folder; None if MLflow has none, or has deleted it."""
        identifier = stored_identifiers(folder).get("mlflow")
        if identifier is None:
            return None
        exceptions = importlib.import_module("mlflow.exceptions")
        try:
            if self._client.get_run(identifier).info.lifecycle_stage != "active":
                return None
            self._client.update_run(identifier, status="RUNNING")
        except exceptions.MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            return None
        return identifier

    def _created(self, run: Running) -> str:
        """The identifier of a new run with the settings as parameters."""
        entities, client = importlib.import_module("mlflow.entities"), self._client
        experiment = client.get_experiment_by_name(self.experiment)
        number = (
            client.create_experiment(self.experiment)
            if experiment is None
            else experiment.experiment_id
        )
        identifier = str(client.create_run(number, run_name=run.directory.name).info.run_id)
        settings = flat_settings(run.config).items()
        parameters = [entities.Param(key, str(value)[:6000]) for key, value in settings]
        for start in range(0, len(parameters), 100):  # most of a call
            client.log_batch(identifier, params=parameters[start : start + 100])
        return identifier

    def row(self, run: Running, row: Row) -> None:
        """Write a row, unless an interrupted process has."""
        mark = mark_of(row)
        step = self._steps[mark] = max(row["round"], self._steps.get(mark, -1) + 1)
        if mark not in self._known:
            history = self._client.get_metric_history(self._identifier, f"{mark}sim_seconds")
            self._known[mark] = max((metric.step for metric in history), default=-1)
        if step <= self._known[mark]:
            return
        entities, now = importlib.import_module("mlflow.entities"), int(1000 * time.time())
        numbers = numbers_of(row).items()
        metrics = [entities.Metric(name, value, now, step) for name, value in numbers]
        self._client.log_batch(self._identifier, metrics=metrics)

    def end(self, run: Running) -> None:
        """Say that the run has ended; one that an error or an interrupt ends counts as failed."""
        if self._identifier is not None:
            failed = sys.exc_info()[1] is not self._outer
            self._client.set_terminated(self._identifier, "FAILED" if failed else "FINISHED")
            self._identifier = None
