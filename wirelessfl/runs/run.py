"""Starting a run, going on with one, and what either returns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.runs.build import Parts, build, cpu_threads
from wirelessfl.runs.directory import Row, RunDirectory
from wirelessfl.schedules import Clock, Synchronous
from wirelessfl.simulation.loop import simulate
from wirelessfl.training.evaluate import evaluate

RowCallback = Callable[[Row], None]


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
) -> RunResult:
    """Train as ``config`` says, writing rows and checkpoints to its folder.

    Args:
        config: settings; nested tables or a TOML file will do.
        model: trained instead of the configured model, starting from the weights it has.
        data: used instead of the configured data set.
        network: used instead of the configured network.
        on_row: called with each row as it is written.
        on_note: called with each line the user should know.

    Raises:
        ConfigError: wrong settings, found before anything is written.
        DataError: absent or damaged data, likewise.
        TrainingError: a client failed (executor ``loop``).
    """
    config = _config(config)
    out = config.run.out or _new_folder(config)
    RunDirectory.check_free(out)
    parts = build(config, model=model, data=data, network=network)
    directory = RunDirectory.create(out, parts.config)
    return _go(parts, directory, on_row, on_note)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    on_row: RowCallback | None = None,
    on_note: Callable[[str], None] | None = None,
) -> RunResult:
    """Go on with the run in the folder ``path``; a finished one is returned as it is.

    Args:
        path: the run's folder.
        model, data, network: what was given to ``run``, if anything was.
        on_row: called with each new row.
        on_note: called with each line the user should know.

    Raises:
        ConfigError: there is no run in it.
    """
    directory, config = RunDirectory.open(Path(path))
    return _go(build(config, model=model, data=data, network=network), directory, on_row, on_note)


def _config(config: Config | Mapping[str, Any] | str | Path) -> Config:
    if isinstance(config, Config):
        return config
    return Config.of(config) if isinstance(config, Mapping) else Config.from_toml(Path(config))


def _new_folder(config: Config) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = config.algorithm["name"].replace(":", ".")
    base = Path("runs") / f"{name}-{config.data.dataset}-{stamp}"
    taken = 1
    path = base
    while path.exists():
        taken += 1
        path = base.with_name(f"{base.name}-{taken}")
    return path


def _go(
    parts: Parts,
    directory: RunDirectory,
    on_row: RowCallback | None,
    on_note: Callable[[str], None] | None,
) -> RunResult:
    """Run the event loop from the folder's checkpoint, or from the start, to the end."""
    config, world = parts.config, parts.world
    schedule = Synchronous(config.training.rounds, config.evaluation.eval_every)
    clock, wall_before, finished = Clock(), 0.0, False
    if (checkpoint := directory.load()) is not None:
        tensors, state = checkpoint
        world.restore(tensors, state["totals"])
        schedule.restore(state["schedule"])
        clock.now, wall_before = state["sim_seconds"], state["wall_seconds"]
        finished = state["finished"]
        if not finished:
            directory.cut_rows(state["rows_bytes"])
    else:
        directory.cut_rows(0)
    started = saved = time.monotonic()

    def wall_seconds() -> float:
        return wall_before + time.monotonic() - started

    def report(number: int) -> None:
        params = world.cloud["params"]
        accuracy, loss = evaluate(parts.task, params, parts.test_inputs, parts.test_labels)
        row = {
            "round": number,
            "sim_seconds": clock.now,
            **asdict(world.totals),
            "accuracy": accuracy,
            "loss": loss if math.isfinite(loss) else None,
            "wall_seconds": wall_seconds(),
        }
        directory.append(row)
        if on_row is not None:
            on_row(row)

    def write_checkpoint(finished: bool) -> None:
        state = {
            "schedule": schedule.snapshot(),
            "totals": asdict(world.totals),
            "sim_seconds": clock.now,
            "wall_seconds": wall_seconds(),
            "finished": finished,
        }
        directory.save(world.tensors(), state)

    def save() -> None:
        nonlocal saved
        if time.monotonic() - saved >= config.run.checkpoint_seconds:
            write_checkpoint(finished=False)
            saved = time.monotonic()

    if not finished:
        for note in parts.notes:
            if on_note is not None:
                on_note(note)
        with cpu_threads(config.run.threads or torch.get_num_threads()):
            simulate(schedule, parts.planner, world, clock, report, save)
        write_checkpoint(finished=True)
    params = parts.task.spec.views(world.cloud["params"].cpu())
    return RunResult(config, directory.rows(), params, directory.path)
