"""The result of a run."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from channels.concurrency import cached_property
from channels.notes import Notes
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import StyleName
from wirelessfl.base.import_paths import expanded, short
from wirelessfl.base.packages import pandas
from wirelessfl.base.wording import count_of, fixed, shown, suggestion
from wirelessfl.config import Config
from wirelessfl.config.choices import ENDLESS
from wirelessfl.config.stored import dataset_of, settings_by_flag
from wirelessfl.data.partition import ClientPartition
from wirelessfl.runs.folder.given_files import read_partition
from wirelessfl.runs.folder.log import Row
from wirelessfl.runs.folder.named_files import difference, named_hashes
from wirelessfl.runs.folder.parameters import checked_task, stored_model, task_params
from wirelessfl.runs.folder.run_folder import RunFolder
from wirelessfl.runs.plots import Log, plotted
from wirelessfl.runs.summaries import Transition, summary_of, summary_of_tasks, transitions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Lazily:
    """A field that is given as a value, or as a function that is called at the first access.

    Args:
        name: name of the field.
    """

    def __init__(self, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        """The value."""
        if instance is None:
            return self
        value = vars(instance)[self.name]
        if callable(value):
            value = vars(instance)[self.name] = value()
        return value

    def __set__(self, instance: object, value: Any) -> None:
        vars(instance)[self.name] = value


@dataclass(frozen=True, eq=False, repr=False)
class RunResult:
    """The result of a run, also of a run that has not finished (``wirelessfl.load``).

    >>> import wirelessfl
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="my-third-run")
    >>> result = wirelessfl.run(settings)
    >>> result.summary()["round"], list(result.params)[:2]
    (2, ['layers.1.weight', 'layers.1.bias'])

    Args:
        config: settings with all automatic values resolved; ``given`` names the objects passed to
            ``wirelessfl.run``, which replace settings.
        rows: one dict per evaluation: ``round``; in a redesigned run ``local_steps``,
            ``edge_rounds`` and ``clients_per_round`` of the rounds since the row before;
            ``sim_seconds``; cumulative ``uplink_mib``,
            ``downlink_mib`` and ``joules``, mean over clients; ``joules_max``, of the client that
            has used the most; cumulative ``backhaul_mib``, mean over edge servers; ``lost`` and
            ``silent``, cumulative numbers of updates that did not arrive and that were not sent;
            with a cut-off, ``late``, that of updates that missed it; if
            the uplink decides about bands, order, powers or clocks, cumulative ``round_seconds`` of
            the rounds or of all cells' rounds, and ``equal_seconds`` and ``equal_joules``, those of
            the same rounds with equal shares at full power and speed; ``accuracy`` in [0, 1];
            ``loss``, mean test cross-entropy, None if it or a parameter is not finite; with
            validation data ``validation_accuracy`` and ``validation_loss``, the same on the
            held-out training samples; ``numerics``, the version of the results
            (``wirelessfl.runs.folder.about``); ``wall_seconds`` since the start.
            Rows of tasks also have ``task``, ``version``, ``staleness_mean`` and ``staleness_max``
            since the task's previous row, the number of active ``requests``, ``buffer``,
            ``allocation``, ``updates`` and ``lost``. In rows of asynchronous cells ``round`` counts
            merges; they also have ``version``, ``staleness_mean``, ``staleness_max`` and
            ``updates``, the number of finished cell rounds. Rows of sessions have further fields,
            see docs/guides/sessions.md.
        params: final parameters by name, for ``module.load_state_dict(..., strict=False)``; a tied
            parameter appears under each of its names. If tasks have tables, names start with the
            task's name and a dot.
            Those of an unfinished run are of its last checkpoint, which may be older than the last
            row.
        directory: folder of the run; its ``about.json`` records version, commit, date and device.
        exhausted: why the run or some of its tasks ended early: no client could take part in a
            further round, or an observer ended them; None if nothing has.
        finished: whether the run has ended; otherwise it is training, or was interrupted.
        tables: the tables of the stored ``config.toml``; None for those of ``config``.
        notes: what the run has noted, such as values that are probably in the wrong unit.
    """

    config: Config
    rows: list[Row]
    params: dict[str, torch.Tensor]
    directory: Path
    exhausted: str | None = None
    finished: bool = True
    tables: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings with an effect, by flag name, e.g. ``settings["cells"]``.

        Unlike ``config`` they need no import of the code that they name.
        """
        return self.settings_of(None)

    def settings_of(self, task: str | None) -> dict[str, Any]:
        """The settings with an effect of a task, by flag name.

        Args:
            task: the task; None for the settings of the run, or of its only task.
        """
        tables = self.config.used_tables() if self.tables is None else self.tables
        names = [table["name"] for table in tables.get("task", ()) if "name" in table]
        return settings_by_flag(tables, names[0] if task is None and len(names) == 1 else task)

    @property
    def label(self) -> str:
        """Algorithm and data set, e.g. "hist on digits"."""
        tasks: list[str | None] = [*self.tasks] or [None]
        data = [dataset_of(self.settings_of(task)) for task in tasks]
        return f"{short(self.settings['algorithm'])} on {' and '.join(dict.fromkeys(data))}"

    @property
    def total_rounds(self) -> int | None:
        """Total number of rounds over all sessions, or of the longest task; None if unlimited."""
        tasks: list[str | None] = [*self.tasks] or [None]
        rounds = max(int(self.settings_of(task)["rounds"]) for task in tasks)
        return None if rounds == ENDLESS else rounds * int(self.settings.get("sessions", 1))

    @property
    def ended(self) -> str | None:
        """After which round and why the run ended before its last round; None if it did not."""
        if self.exhausted is None or not self.rows:
            return None
        done, total = self.rows[-1]["round"], self.total_rounds
        if done == total and len(self.tasks) < 2:
            return None
        if len(self.tasks) > 1:
            return f"ended before the last round of its tasks: {self.exhausted}"
        of_total = "" if total is None else f" of {total}"
        return f"ended after round {done}{of_total}: {self.exhausted}"

    def __repr__(self) -> str:
        """One line: algorithm, data set, progress, accuracy, simulated seconds and folder."""
        return f"{self.label}: {', '.join([*self._facts().values(), str(self.directory)])}"

    def _facts(self) -> dict[str, str]:
        """What the one line and the table of a run say, by heading."""
        if not self.rows:
            return {"rounds": "no rows yet"}
        summary, total = self.summary(), self.total_rounds
        done = summary["round"]
        whole = self.finished or total is None
        rounds = count_of(done, "round") if whole else f"{done} of {total} rounds"
        field = "accuracy" if "accuracy" in summary else "loss"
        value = summary[field]
        return {
            "rounds": rounds + ("" if self.finished else ", unfinished"),
            "accuracy": "diverged" if value is None else f"{field} {value:.3f}",
            "seconds": f"{fixed(summary['sim_seconds'], 1)} s simulated",
        }

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        facts = {"run": self.label, **self._facts()}
        if self.rows:
            last = self.rows[-1]
            facts["traffic"] = f"{fixed(last['uplink_mib'], 2)} MiB per client"
            facts["energy"] = f"{last['joules']:.3g} J per client"
        facts["folder"] = str(self.directory)
        lines = [*facts.items(), *(("note", note) for note in self.notes)]
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in lines
        )
        return f"<table>{cells}</table>"

    @cached_property
    def partition(self) -> ClientPartition | dict[str, ClientPartition]:
        """The training samples of each client, from the run's folder; by task with task tables.

        Raises:
            ConfigError: the folder has no partition, or it is damaged.
        """
        return read_partition(self.directory)

    def model(
        self,
        *,
        module: torch.nn.Module | None = None,
        task: str | None = None,
        trust: bool = False,
    ) -> torch.nn.Module:
        """The torch module with the run's parameters, in evaluation mode.

        Args:
            module: a module of the same layers that receives them; needed if the model or the data
                were given to the run as objects.
            task: the task, if several have models.
            trust: whether the settings may name code to import, such as ``my_module:MyModel``.

        Raises:
            ConfigError: ``module`` or ``task`` is missing or does not fit, or the settings name
                code without being trusted.
            DataError: the data set must be loaded to build the model, but is missing.
        """
        from wirelessfl.runs.build.task_schedules import task_stream  # loads PyTorch

        if module is not None and not self._titled:
            return stored_model(None, self.params, Stream(0), module)
        config = self.with_trust(trust)
        name = checked_task(task, list(config.tasks) if config.task else [])
        settings = config if name is None else config.tasks[name]
        stream = Stream(config.run.seed)
        stream = stream if name is None else task_stream(config, name, stream)
        named = {} if module is not None else named_hashes(config)
        if named and (changed := difference(RunFolder(self.directory).about(), named)):
            Notes()(f"{changed} has changed since this run.")
        return stored_model(settings, task_params(self.params, name), stream, module)

    def with_trust(self, trust: bool) -> Config:
        """The configuration; if ``trust`` is set, it may name code to import.

        Raises:
            ConfigError: it names code without being trusted, or is of another version.
        """
        try:
            return self.config
        except ConfigError:
            if not trust:
                raise
        return RunFolder.open(self.directory, trust)[1]

    @property
    def _titled(self) -> bool:
        """Whether tasks have tables, and names of parameters begin with those of tasks."""
        return bool(self.config.task if self.tables is None else self.tables.get("task"))

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``.

        Raises:
            ImportError: pandas is not installed.
        """
        return pandas().DataFrame(self.rows)

    def to_csv(self, path: str | Path) -> None:
        """Write the rows as CSV, one column per field; a missing folder is made."""
        path = expanded(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        names = dict.fromkeys(name for row in self.rows for name in row)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(names))
            writer.writeheader()
            writer.writerows(self.rows)

    def plot(
        self,
        x: str = "seconds",
        y: str | None = None,
        *,
        target: float | None = None,
        log: Log = "",
        smooth: int = 1,
        style: StyleName = "screen",
    ) -> Figure:
        """Plot a field of the rows against another one; one curve per task.

        Args:
            x: rounds, seconds, mib, joules, wall, or another field of the rows.
            y: accuracy, loss, or another field; None for the accuracy or, in regression, the loss.
            target: value of ``y`` to mark with a line; an accuracy is in [0, 1].
            log: axes with a logarithmic scale: x, y or xy.
            smooth: number of successive rows that are averaged for each point, odd.
            style: "ieee" for print in one column, "screen" for slides and notebooks.

        Returns:
            The figure; ``wirelessfl.results.save_figure`` saves it.

        Raises:
            ValueError: there are no rows, or none has the field.
        """
        curves = {task: [self.rows_of(task)] for task in self.tasks}
        curves = curves or {self.label: [self.rows]}
        return plotted(curves, x, y, target=target, log=log, smooth=smooth, style=style)

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, as in the rows' ``task``; empty for a run of one model."""
        return list(dict.fromkeys(row["task"] for row in self.rows if "task" in row))

    def rows_of(self, task: str) -> list[Row]:
        """The rows of one task.

        Raises:
            ValueError: the run has no such task.
        """
        if task not in self.tasks:
            remedy = f"Choose {', '.join(self.tasks)}." if self.tasks else "Use rows."
            raise ValueError(
                f"task is {shown(task)}, which the run does not have."
                f"{suggestion(task, self.tasks)} {remedy}"
            )
        return [row for row in self.rows if row.get("task") == task]

    def transitions(self, first: int = 10, tolerance: float = 0.01) -> list[Transition]:
        """Accuracy after each change of clients, see ``wirelessfl.runs.summaries``.

        Args:
            first, tolerance: as there.

        Raises:
            ValueError: the run has no sessions, or the first rounds of one were not evaluated.
        """
        return transitions(self.rows, first, tolerance)

    def summaries(self) -> list[dict[str, Any]]:
        """One summary per task, or only the ``summary`` of a run of one model."""
        return [
            {
                "label": task if self._titled else self.settings["algorithm"],
                "task": task,
                **self._summary(self.rows_of(task), self.settings_of(task)),
            }
            for task in self.tasks
        ] or [self.summary()]

    def summary(self) -> dict[str, Any]:
        """One line of the summary table: last row, best accuracy, and cost of reaching the target.

        With a validation set, ``best_accuracy`` is the test accuracy of the row with the best
        validation accuracy, and the validation accuracy must reach the target. Accuracies and
        losses of a diverged model are None, and its rows are neither the best nor reach the target.

        With several tasks, accuracy and loss are means over the tasks, and the cost counts until
        all tasks have reached their targets.

        Raises:
            ValueError: the run has no rows yet.
        """
        if not self.rows:
            raise ValueError(f"the run in {self.directory} has no rows yet.")
        if len(self.tasks) < 2:
            return self._summary(self.rows, self.settings_of(next(iter(self.tasks), None)))
        summary = summary_of_tasks(self.summaries(), self.rows[-1], self.settings, self.ended)
        return {**summary, "directory": str(self.directory)}

    def _summary(self, rows: list[Row], settings: Mapping[str, Any]) -> dict[str, Any]:
        ended = self.ended if len(self.tasks) < 2 else None
        return {**summary_of(rows, settings, ended), "directory": str(self.directory)}


for _name in ("config", "params"):  # a stored run reads them when they are needed
    setattr(RunResult, _name, Lazily(_name))
