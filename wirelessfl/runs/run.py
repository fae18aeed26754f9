"""Starting a run, resuming one, and what either returns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from channels import Network
from wirelessfl.build.executors import computing, default_threads, fewer_workers
from wirelessfl.build.given import check_given
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.runs.about import about
from wirelessfl.runs.arguments import check_path, check_settings, check_things
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.engines import build_engine
from wirelessfl.runs.marks import check_marks, check_version, settings_mark
from wirelessfl.runs.progress import Engine, Progress, RowCallback
from wirelessfl.runs.tasks import named_params
from wirelessfl.runs.transitions import Transition, transitions
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.shards import Shards
from wirelessfl.training.workers import WorkerDiedError, leave_if_worker

ALONE = Shards()
TO_TARGET = {
    "rounds_to_target": "round",
    "mib_to_target": "uplink_mib",
    "seconds_to_target": "sim_seconds",
}
"""What a summary says of the first row with the target, and where the row has it."""


@dataclass(frozen=True)
class RunResult:
    """What a run leaves.

    Args:
        config: its settings, everything automatic resolved; ``given`` marks the objects that were
            given beside them, which replace settings.
        rows: one dict an evaluation: ``round``; ``sim_seconds``; ``uplink_mib``, ``downlink_mib``
            and ``joules``, mean over clients so far; ``backhaul_mib``, mean over edge servers so
            far; ``accuracy`` in [0, 1]; ``loss``, mean test cross-entropy, None where it is not
            finite; ``numerics``, raised when results change on purpose (``wirelessfl.runs.about``);
            ``wall_seconds`` since the start. Rows of tasks name their ``task``, and carry its
            ``version``, ``staleness_mean`` and ``staleness_max`` since its last row, ``requests``
            that are out, ``buffer``, ``allocation``, ``updates`` and ``lost``. Rows of sessions
            have more, see docs/sessions.md.
        params: the final parameters by name, for ``module.load_state_dict(..., strict=False)``,
            tied ones under each of their names; of tasks in tables, with the task's name and a dot
            in front.
        directory: the run's folder; ``about.json`` in it tells version, commit, date and device.
    """

    config: Config
    rows: list[Row]
    params: dict[str, Tensor]
    directory: Path

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks, as in the rows' ``task``; none where the run had but one model."""
        return list(dict.fromkeys(row["task"] for row in self.rows if "task" in row))

    def rows_of(self, task: str) -> list[Row]:
        """The rows of one task."""
        return [row for row in self.rows if row.get("task") == task]

    def transitions(self, first: int = 10, tolerance: float = 0.01) -> list[Transition]:
        """What each change of clients cost, in sessions: see ``wirelessfl.runs.transitions``.

        Raises:
            ValueError: the run had no sessions, or first rounds were not tested.
        """
        return transitions(self.rows, first, tolerance)

    def summaries(self) -> list[dict[str, Any]]:
        """One line for each task, as ``summary`` gives for a run of one model."""
        configs = self.config.tasks
        return [
            {
                "label": task,
                "task": task,
                **self._summary(self.rows_of(task), configs[task]),
            }
            for task in self.tasks
        ] or [self.summary()]

    def summary(self) -> dict[str, Any]:
        """One line of a closing table: the last row, the best accuracy, the cost of the target.

        Of several tasks: means of what models reach, and the cost until the last of them has
        reached its target.
        """
        if len(self.tasks) < 2:
            own = self.config.tasks[self.tasks[0]] if self.tasks else self.config
            return self._summary(self.rows, own)
        each = self.summaries()
        last, common = self.rows[-1], {summary.get("target") for summary in each}
        summary = {
            "algorithm": self.config.algorithm["name"],
            "dataset": "+".join(dict.fromkeys(own["dataset"] for own in each)),
            "uplink": self.config.uplink["name"],
            "round": max(own["round"] for own in each),
            **{key: _mean([own[key] for own in each]) for key in ("accuracy", "loss")},
            "best_accuracy": _mean([own["best_accuracy"] for own in each]),
            **{key: last[key] for key in ("uplink_mib", "sim_seconds", "joules", "wall_seconds")},
        }
        if None not in common:
            summary["target"] = common.pop() if len(common) == 1 else "of each task"
            for name in TO_TARGET:
                values = [own[name] for own in each]
                summary[name] = None if None in values else max(values)
        return {**summary, "directory": str(self.directory)}

    def _summary(self, rows: list[Row], config: Config) -> dict[str, Any]:
        last, target = rows[-1], config.evaluation.target
        summary: dict[str, Any] = {
            "algorithm": config.algorithm["name"],
            "dataset": config.data.dataset,
            "uplink": config.uplink["name"],
            **{key: last[key] for key in ("round", "accuracy", "loss")},
            "best_accuracy": max(row["accuracy"] for row in rows),
            **{key: last[key] for key in ("uplink_mib", "sim_seconds", "joules", "wall_seconds")},
        }
        if config.sessions.sessions is not None:
            summary["transition_accuracy"] = self._after_transitions()
        if target is not None:
            hit = next((row for row in rows if row["accuracy"] >= target), None)
            summary["target"] = target
            for name, key in TO_TARGET.items():
                summary[name] = None if hit is None else hit[key]
        return {**summary, "directory": str(self.directory)}

    def _after_transitions(self) -> float | None:
        """Mean accuracy of the first ten rounds of all sessions after the first; None: untested."""
        try:
            found = self.transitions()
        except ValueError:
            return None
        return _mean([one.mean_accuracy for one in found]) if found else None


def _mean(values: list[float | None]) -> float | None:
    """None where one of them is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def run(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    shards: Shards = ALONE,
) -> RunResult:
    """Train as ``config`` says, writing rows and checkpoints to its folder.

    Args:
        config: settings; nested tables or a TOML file will do.
        model: trained instead of the configured model, starting from the weights it has.
        data: used instead of the configured data set.
        network: used instead of the configured network. Settings that it replaces must not be given
            beside it, not even with their default values: all of ``[network]`` but ``coherence``,
            ``delays``, ``delay_scale``, ``availability``, ``busy_clients``, ``drop_out``,
            ``downlink_mbps``, ``backhaul_mbps``, and ``step_seconds`` of shifted-exponential
            delays.
        on_row: called with each row as it is written.
        on_note: called with each line the user should know.
        shards: the processes that share the clients, from ``wirelessfl.training.shards.sharded``
            in a script that ``torchrun`` starts; the first one writes the folder.

    Raises:
        ConfigError: wrong settings, found before anything is written.
        DataError: absent or damaged data, likewise.
        TrainingError: a client failed.
    """
    leave_if_worker()
    check_settings(config)
    check_things(
        model=model, data=data, network=network, on_row=on_row, on_note=on_note, shards=shards
    )
    config = _config(config)
    check_given(config, model=model, data=data, network=network)
    out = config.run.out
    if out is not None:
        shards.by_first(partial(RunDirectory.check_free, out))
    with closing(_build(config, shards, model=model, data=data, network=network)) as engine:
        directory = shards.by_first(partial(_directory, engine.config))
        return _go(engine, directory, on_row, on_note)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
    shards: Shards = ALONE,
) -> RunResult:
    """Resume the interrupted run in the folder ``path``; a finished one is read and left as it is.

    Args:
        path: the run's folder.
        model, data, network: what was given to ``run``, if anything was.
        on_row: called with each new row.
        on_note: called with each line the user should know.
        shards: as for ``run``; their number may differ from before.

    Raises:
        ConfigError: there is no run in it, it is damaged, its settings or what was given to it are
            not those it began with, or another process is at work on it.
    """
    leave_if_worker()
    check_path(path)
    check_things(
        model=model, data=data, network=network, on_row=on_row, on_note=on_note, shards=shards
    )
    directory, config = shards.by_first(partial(RunDirectory.open, Path(path)))
    given = _given(model=model, data=data, network=network)
    checkpoint = shards.by_first(directory.load)
    if checkpoint is not None:
        check_version(directory, checkpoint[1])
    if checkpoint is not None and checkpoint[1]["finished"]:  # needs no data and no device
        tensors, state = checkpoint
        shards.by_first(lambda: check_marks(directory, state, settings_mark(directory)))
        rows = shards.by_first(directory.rows)
        return RunResult(config, rows, _stored_params(tensors, state, config), directory.path)
    if config.given.names != given:
        began = ", ".join(f"{name}=..." for name in config.given.names) or "none of them"
        raise ConfigError(
            f"the run in {path} began with {began} given to wirelessfl.run, and resume got "
            f"{', '.join(f'{name}=...' for name in given) or 'none'}: give it the same."
        )
    config = fewer_workers(config)
    with closing(_build(config, shards, model=model, data=data, network=network)) as engine:
        return _go(engine, directory, on_row, on_note, resumed=True)


def _build(config: Config, shards: Shards, **things: Any) -> Engine:
    """The objects of the run in every process, as the first one has resolved the settings."""
    engine: Engine | None = None
    error: Exception | None = None
    for leading in (True, False):
        if leading == (shards.rank == 0) and error is None:
            try:
                with computing(default_threads(config)):
                    engine = build_engine(config, shards=shards, **things)
                    engine.prepare()
            except (ConfigError, DataError, TrainingError) as caught:
                error = caught
        if leading and shards.count > 1:
            settled, error = shards.from_first((engine.config.run if engine else None, error))
            config = config if settled is None else config.model_copy(update={"run": settled})
    failed = next((own for own in shards.all(error) if own is not None), None)
    if failed is not None:
        if engine is not None:
            engine.close()
        raise failed
    assert engine is not None
    return engine


def _stored_params(
    tensors: dict[str, Tensor], state: dict[str, Any], config: Config
) -> dict[str, Tensor]:
    """The parameters in a checkpoint, by name."""

    def named(
        shapes: dict[str, list[int]], ties: dict[str, str], flat: Tensor
    ) -> dict[str, Tensor]:
        return ParamSpec({name: tuple(shape) for name, shape in shapes.items()}, ties).named(flat)

    if "task_specs" not in state:
        return named(state["shapes"], state["ties"], tensors["server.cloud.params"])
    found: dict[str, Tensor] = {}
    for number, (task, (shapes, ties)) in enumerate(state["task_specs"].items()):
        own = named(shapes, ties, tensors[f"task{number}.server.cloud.params"])
        found |= named_params(own, task if config.task else None)
    return found


def _given(**things: object) -> list[str]:
    """Names of what a user handed over from Python."""
    return [name for name, thing in things.items() if thing is not None]


def _config(config: Config | Mapping[str, Any] | str | Path) -> Config:
    if isinstance(config, str | Path):
        return fewer_workers(Config.from_toml(Path(config)))
    if isinstance(config, Config):  # without defaults, which a given network may replace
        config = config.model_dump(exclude_unset=True)
    return Config.of(config)


def _directory(config: Config) -> RunDirectory:
    """The folder of a new run."""
    if config.run.out is not None:
        return RunDirectory.create(config.run.out, config)
    return _new_directory(config)


def _new_directory(config: Config) -> RunDirectory:
    """A folder below ``runs/`` that nobody else has."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    data = "+".join(dict.fromkeys(own.data.dataset for own in config.tasks.values()))
    name = re.sub(r"[^\w.+-]", ".", f"{config.algorithm['name']}-{data}-{stamp}")
    for number in itertools.count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        try:
            if not path.exists():
                return RunDirectory.create(path, config, new=True)
        except FileExistsError:
            pass  # another process took it between the two lines above
    raise AssertionError("there are endless names")


def _go(
    engine: Engine,
    directory: RunDirectory,
    on_row: RowCallback | None,
    on_note: Callable[[str], None] | None,
    *,
    resumed: bool = False,
) -> RunResult:
    """Run the event loop from the folder's checkpoint, or from the start, to the end."""
    shards = engine.shards
    with ExitStack() as stack:
        shards.by_first(lambda: stack.enter_context(directory.at_work()))
        progress = Progress(engine, directory, on_row, on_note)
        if resumed:
            shards.by_first(lambda: directory.note_resumed(about(engine.config.run.device)))
        if not progress.finished:
            for note in engine.notes:
                if on_note is not None:
                    on_note(note)
            try:
                progress.run()
            except (KeyboardInterrupt, WorkerDiedError):
                if on_note is not None:
                    on_note(f"interrupted; to resume: wirelessfl resume {directory.path}")
                raise
    rows = shards.by_first(directory.rows)
    return RunResult(engine.config, rows, engine.params(), directory.path)
