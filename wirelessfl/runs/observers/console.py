"""Shows the progress of a run: bars on a terminal and in notebooks, otherwise a line per row."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Timer
from typing import TYPE_CHECKING

from wirelessfl.base.import_paths import short
from wirelessfl.base.rows import has_diverged
from wirelessfl.base.terminal import Terminal
from wirelessfl.base.wording import fixed
from wirelessfl.config import Config
from wirelessfl.config.choices import ENDLESS
from wirelessfl.runs.observers.observer import Observer, Row, Running

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.progress import Progress, TaskID

VALIDATION = {"validation_accuracy": ".3f", "validation_loss": ".2f"}
"""Metrics that are shown if the target is one of validation data, with their formats."""
DIVERGED = "diverged"
"""Stands for the metrics of a model whose loss or parameters are not finite."""
KERNEL = "ZMQInteractiveShell"
"""Class of IPython's shell in the kernel of a notebook."""
SILENT_SECONDS = 5.0
"""After this time without a first row, a line says what the run does."""
WIDTH = 24
"""Characters of a bar in a notebook."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook; IPython is not imported for this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == KERNEL


def metrics_of(row: Row, names: Mapping[str, str] | None = None) -> str:
    """Metrics of a row in words, e.g. "accuracy 0.812  loss 0.52".

    Args:
        row: the row.
        names: fields to show, with their formats; None for accuracy and loss.
    """
    if has_diverged(row):
        return DIVERGED
    shown = names or {"accuracy": ".3f", "loss": ".2f"}
    forms = {name: form for name, form in shown.items() if row.get(name) is not None}
    return "  ".join(f"{name.replace('_', ' ')} {row[name]:{form}}" for name, form in forms.items())


def line_of(row: Row, of_total: str = "", names: Mapping[str, str] | None = None) -> str:
    """A row in one line.

    Args:
        row: the row.
        of_total: follows the round, as in "round 12/30".
        names: see ``metrics_of``.
    """
    seconds = f"{fixed(row['sim_seconds'], 1)} s simulated"
    task = f"{row['task']}  " if "task" in row else ""
    metrics = metrics_of(row, names)
    return f"{task}{session_of(row)}round {row['round']}{of_total}  {metrics}  {seconds}"


def _of_target(config: Config, row: Row) -> Mapping[str, str] | None:
    """The validation metrics, if the target is one of validation data; None for test metrics."""
    evaluation = config.evaluation
    if evaluation.target is None or evaluation.monitor is not None:
        return None
    return VALIDATION if "validation_accuracy" in row else None


def session_of(row: Row) -> str:
    """The session of a row, which tests the model on the labels of this session; "" without."""
    return f"session {row['session']}  " if "session" in row else ""


@dataclass
class _Scale:
    """How far a run, or one of its tasks, has come.

    Args:
        label: what trains.
        unit: "round", or "second" with a limit of simulated time.
        total: number of units; None without a limit.
    """

    label: str
    unit: str
    total: float | None

    @classmethod
    def of(cls, config: Config, task: str | None, label: str | None) -> _Scale:
        """The scale of a run, or of one of its tasks."""
        trained = config if task is None else config.tasks[task]
        name, limit = short(config.named("algorithm")), config.training.max_seconds
        endless = trained.training.rounds == ENDLESS
        rounds = None if endless else float(trained.total_rounds)
        if task is not None:
            title = f"{label or name} on {task}"
        else:
            title = label or f"{name} on {trained.dataset.title}"
        return cls(title, *(("round", rounds) if limit is None else ("second", limit)))

    def done(self, row: Row) -> float:
        """Units done at a row."""
        return float(row["round"] if self.unit == "round" else row["sim_seconds"])

    @property
    def of_total(self) -> str:
        """The total as ``/30``; empty without a limit."""
        return "" if self.total is None else f"/{self.total:.0f}"


@dataclass(eq=False)
class Console(Observer):
    """Shows bars on a terminal, one line that changes in a notebook, and otherwise a line per row.

    A bar shows rounds or, with a limit of simulated time, seconds. Each task has its own.

    >>> import wirelessfl
    >>> from wirelessfl.observers import Console
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=1, out="shown-run")
    >>> shown = Console(label="my first run")  # on stderr
    >>> result = wirelessfl.run(settings, observers=[shown])
    >>> result.finished
    True

    Args:
        terminal: rich console that shows them; None for stderr.
        label: title of the run; None for its algorithm and data set.
        lines: whether to print lines without a terminal.
        quiet: whether to show nothing, instead of the bar that is the default in notebooks.
    """

    terminal: RichConsole | None = None
    label: str | None = None
    lines: bool = True
    quiet: bool = False
    _scales: dict[str | None, _Scale] = field(default_factory=dict, init=False, repr=False)
    _bars: dict[str | None, TaskID] = field(default_factory=dict, init=False, repr=False)
    _progress: Progress | None = field(default=None, init=False, repr=False)
    _length: int = field(default=0, init=False, repr=False)
    _waiting: Timer | None = field(default=None, init=False, repr=False)

    def begin(self, run: Running) -> None:
        """Show the bars; those of a resumed run begin at its last rows."""
        self._scales, self._bars, self._length = {}, {}, 0
        self._notebook = self.terminal is None and in_notebook()
        if self.terminal is None and not self._notebook:
            self.terminal = Terminal(stderr=True)
        if not (self.quiet or run.rows or self.terminal is None) and (
            self.lines or self.terminal.is_terminal
        ):
            self._waiting = Timer(SILENT_SECONDS, self._explain, (run.config,))
            self._waiting.daemon = True
            self._waiting.start()
        if self.quiet or self.terminal is None or not self.terminal.is_terminal:
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[unit]} {task.completed:.0f}{task.fields[of]}"),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(),
            console=self.terminal,
        )
        self._progress.start()
        for row in {row.get("task"): row for row in run.rows}.values():
            self.row(run, row)

    def _explain(self, config: Config) -> None:
        """Say why there is no row yet."""
        count = config.evaluation.eval_samples
        every = "all test samples (fewer: --eval-samples N)"
        tested = every if count is None else f"{count:,} test samples"
        assert self.terminal is not None
        self.terminal.print(f"evaluating the initial model on {tested}", highlight=False)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def row(self, run: Running, row: Row) -> None:
        """Show a row."""
        self._stop_waiting()
        if self.quiet:
            return
        task = row.get("task")
        scale = self._scales.get(task)
        if scale is None:
            scale = self._scales[task] = _Scale.of(run.config, task, self.label)
        names = _of_target(run.config if task is None else run.config.tasks[task], row)
        seconds = f"{fixed(row['sim_seconds'], 1)} s simulated"
        if self._progress is not None:
            if task not in self._bars:
                self._bars[task] = self._progress.add_task(
                    scale.label, total=scale.total, note="", unit=scale.unit, of=scale.of_total
                )
            first = {"accuracy": ".3f"} if names is None else {"validation_accuracy": ".3f"}
            note = f"{session_of(row)}{metrics_of(row, first)}  {seconds}"
            self._progress.update(self._bars[task], completed=scale.done(row), note=note)
        elif self._notebook:
            metrics = f"{session_of(row)}{metrics_of(row, names)}"
            self._change(f"{scale.label} {_bar(scale, row)}{metrics}  {seconds}")
        elif self.lines and self.terminal is not None:
            text = line_of(row, scale.of_total if scale.unit == "round" else "", names)
            text = text if self.label is None else f"{self.label}  {text}"
            self.terminal.print(text, markup=False, highlight=False, soft_wrap=True)

    def _change(self, text: str) -> None:
        print("\r" + text.ljust(self._length), end="", flush=True)
        self._length = len(text)

    def end(self, run: Running) -> None:
        """Leave the bars as they are."""
        self._stop_waiting()
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
        elif self._length:
            print(flush=True)
            self._length = 0


def _bar(scale: _Scale, row: Row) -> str:
    """A bar in characters, and the units done."""
    done = scale.done(row)
    filled = 0 if not scale.total else min(WIDTH, round(WIDTH * done / scale.total))
    bar = "" if scale.total is None else "█" * filled + "░" * (WIDTH - filled) + " "
    return f"{bar}{scale.unit} {done:.0f}{scale.of_total}  "
