"""Builds the executor of a run whose clients a given trainer trains."""

from __future__ import annotations

import numpy as np

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.runs.build.computing import Computing, default_threads
from wirelessfl.runs.build.executors import ModelAndData
from wirelessfl.training.trainer import Trainer, TrainerExecutor, check_rule
from wirelessfl.training.trial import check_model


def check_trainer(config: Config, trainer: Trainer) -> None:
    """Refuse settings that do not suit a trainer, which trains one client after the other.

    Raises:
        ConfigError: a setting conflicts; the message names it.
    """
    run, assigner = config.run, config.used_assigner
    if config.hierarchical:
        raise ConfigError(
            f'algorithm "{config.named("algorithm")}" has cells, and {trainer.title} trains '
            "clients of one server: choose fedavg, fedadam, fedyogi, fedadagrad or fedbuff."
        )
    check_rule(config.rule, trainer.title)
    warm_start = config.warm_start
    conflicts = {
        f"executor={run.executor}": run.executor not in ("auto", "loop"),
        f"chunk={run.chunk}": run.chunk == "tune",
        f"replay={run.replay}": run.replay == "on",
        f"precision={config.training.precision}": config.training.precision != "float32",
        f"workers={run.workers}": run.workers not in (None, "auto", 1),
        f"augment={config.given.augment or config.data.augment}": bool(
            config.given.augment or config.data.augment
        ),
        f"algorithm={config.named('algorithm')}, which assigns submodels,": (
            assigner.of_cells or assigner.of_clients
        ),
        "warm_start, which trains trial rounds or changes the loss,": warm_start is not None
        and bool(warm_start.trials(1) or warm_start.penalties(1, ())),
    }
    for name, true in conflicts.items():
        if true:
            raise ConfigError(
                f"{name} conflicts with trainer=..., {trainer.title}, which trains whole models, "
                "one client after the other: leave it out."
            )


def trainer_executor(
    config: Config, trained: ModelAndData, trainer: Trainer, sizes: IntArray, stream: Stream
) -> tuple[TrainerExecutor, Computing]:
    """The executor of a trainer, and its resolved settings.

    Args:
        config: settings of the model.
        trained: the model and its data.
        trainer: the given trainer.
        sizes: [clients], number of samples of each client in the run's split.
        stream: random stream of the run.
    """
    objective, data = trained.objective, trained.data
    check_model(objective, *data.first(4), trained.classes, trained.label_hint)
    weights = sizes.astype(np.float64)
    if config.training.weighting == "uniform":
        weights = np.broadcast_to(weights.mean(), weights.shape)
    chunk = config.run.chunk if isinstance(config.run.chunk, int) else 1
    executor = TrainerExecutor(
        objective,
        data,
        chunk,
        trainer.begin(objective.module, objective.spec, trained.clients),
        trainer.title,
        weights,
        stream,
    )
    device, threads = str(data.inputs.device), default_threads(config.run)
    return executor, Computing(device, "loop", chunk, False, 1, threads)
