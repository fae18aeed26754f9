"""Starting a run, going on with one, and what either returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.errors import ConfigError, DataError, TrainingError
from wirelessfl.runs.build import Parts, build
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.runs.progress import Progress, RowCallback, check_marks, settings_mark
from wirelessfl.simulation.shards import Shards
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.workers import WorkerDiedError

ALONE = Shards()


@dataclass(frozen=True)
class RunResult:
    """What a run leaves.

    Args:
        config: its settings, everything automatic resolved.
        rows: one dict an evaluation: ``round``; ``sim_seconds``; ``uplink_mib``, ``downlink_mib``
            and ``joules``, mean over clients so far; ``backhaul_mib``, mean over edge servers so
            far; ``accuracy`` in [0, 1]; ``loss``, mean test cross-entropy, None where it is not
            finite; ``wall_seconds`` since the start.
        params: the final parameters by name, for ``module.load_state_dict(..., strict=False)``.
        directory: the run's folder.
    """

    config: Config
    rows: list[Row]
    params: dict[str, Tensor]
    directory: Path

    def summary(self) -> dict[str, Any]:
        """One line of a closing table: the last row, the best accuracy, the cost of the target."""
        last, target = self.rows[-1], self.config.evaluation.target
        summary: dict[str, Any] = {
            "algorithm": self.config.algorithm["name"],
            "dataset": self.config.data.dataset,
            "uplink": self.config.uplink["name"],
            **{key: last[key] for key in ("round", "accuracy", "loss")},
            "best_accuracy": max(row["accuracy"] for row in self.rows),
            **{key: last[key] for key in ("uplink_mib", "sim_seconds", "joules", "wall_seconds")},
        }
        if target is not None:
            hit = next((row for row in self.rows if row["accuracy"] >= target), None)
            summary["target"] = target
            for key, name in (
                ("round", "rounds_to_target"),
                ("uplink_mib", "mib_to_target"),
                ("sim_seconds", "seconds_to_target"),
            ):
                summary[name] = None if hit is None else hit[key]
        return {**summary, "directory": str(self.directory)}


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
        network: used instead of the configured network, whose other settings then say nothing.
        on_row: called with each row as it is written.
        on_note: called with each line the user should know.
        shards: the processes that share the clients, from ``wirelessfl.simulation.shards.sharded``
            in a script that ``torchrun`` starts; the first one writes the folder.

    Raises:
        ConfigError: wrong settings, found before anything is written.
        DataError: absent or damaged data, likewise.
        TrainingError: a client failed.
    """
    config = _config(config)
    out, given = config.run.out, _given(model=model, data=data, network=network)
    if out is not None:
        shards.by_first(partial(RunDirectory.check_free, out))
    parts = _build(config, shards, model=model, data=data, network=network)
    directory = shards.by_first(partial(_directory, parts.config))
    return _go(parts, given, directory, on_row, on_note)


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
    """Go on with the run in the folder ``path``; a finished one is read and left as it is.

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
    directory, config = shards.by_first(partial(RunDirectory.open, Path(path)))
    given = _given(model=model, data=data, network=network)
    checkpoint = shards.by_first(directory.load)
    if checkpoint is not None and checkpoint[1]["finished"]:  # needs no data and no device
        tensors, state = checkpoint
        shards.by_first(lambda: check_marks(directory, state, settings_mark(directory)))
        spec = ParamSpec({name: tuple(shape) for name, shape in state["shapes"].items()})
        params, rows = spec.views(tensors["cloud.params"]), shards.by_first(directory.rows)
        return RunResult(config, rows, params, directory.path)
    if checkpoint is not None and checkpoint[1]["given"] != given:
        began = ", ".join(f"{name}=..." for name in checkpoint[1]["given"]) or "none of them"
        raise ConfigError(
            f"the run in {path} began with {began} given to wirelessfl.run, and resume got "
            f"{', '.join(f'{name}=...' for name in given) or 'none'}: give it the same."
        )
    parts = _build(config, shards, model=model, data=data, network=network)
    return _go(parts, given, directory, on_row, on_note)


def _build(config: Config, shards: Shards, **things: Any) -> Parts:
    """The objects of the run in every process, with what the first one has found by timing."""
    parts: Parts | None = None
    error: Exception | None = None
    for leading in (True, False):
        if leading == (shards.rank == 0) and error is None:
            try:
                parts = build(config, shards=shards, **things)
            except (ConfigError, DataError, TrainingError) as caught:
                error = caught
        if leading and shards.count > 1:
            settled, error = shards.from_first((parts.config.run if parts else None, error))
            config = config if settled is None else config.model_copy(update={"run": settled})
    failed = next((own for own in shards.all(error) if own is not None), None)
    if failed is not None:
        raise failed
    assert parts is not None
    return parts


def _given(**things: object) -> list[str]:
    """Names of what a user handed over from Python."""
    return [name for name, thing in things.items() if thing is not None]


def _config(config: Config | Mapping[str, Any] | str | Path) -> Config:
    if isinstance(config, str | Path):
        return Config.from_toml(Path(config))
    return Config.of(config.model_dump() if isinstance(config, Config) else config)


def _directory(config: Config) -> RunDirectory:
    """The folder of a new run."""
    if config.run.out is not None:
        return RunDirectory.create(config.run.out, config)
    return _new_directory(config)


def _new_directory(config: Config) -> RunDirectory:
    """A folder below ``runs/`` that nobody else has."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{config.algorithm['name'].replace(':', '.')}-{config.data.dataset}-{stamp}"
    for number in itertools.count(1):
        path = Path("runs", name if number == 1 else f"{name}-{number}")
        try:
            if not path.exists():
                return RunDirectory.create(path, config, new=True)
        except FileExistsError:
            pass  # another process took it between the two lines above
    raise AssertionError("there are endless names")


def _go(
    parts: Parts,
    given: list[str],
    directory: RunDirectory,
    on_row: RowCallback | None,
    on_note: Callable[[str], None] | None,
) -> RunResult:
    """Run the event loop from the folder's checkpoint, or from the start, to the end."""
    shards = parts.world.shards
    with ExitStack() as stack:
        shards.by_first(lambda: stack.enter_context(directory.at_work()))
        progress = Progress(parts, given, directory, on_row, on_note)
        if not progress.finished:
            for note in parts.notes:
                if on_note is not None:
                    on_note(note)
            try:
                with closing(parts.world.executor):
                    progress.run()
            except (KeyboardInterrupt, WorkerDiedError):
                if on_note is not None:
                    on_note(f"stopped; to go on: wirelessfl resume {directory.path}")
                raise
    params = parts.task.spec.views(parts.world.cloud["params"].cpu())
    return RunResult(parts.config, shards.by_first(directory.rows), params, directory.path)
