"""Which engine drives a run."""

from __future__ import annotations

from torch import nn

from channels import Network
from wirelessfl.build.rounds import build
from wirelessfl.build.tasks import build_tasks
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.runs.progress import Engine
from wirelessfl.runs.rounds import RoundsEngine
from wirelessfl.runs.sessions import SessionsEngine
from wirelessfl.runs.tasks import TasksEngine
from wirelessfl.training.shards import Shards


def build_engine(
    config: Config,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    shards: Shards,
) -> Engine:
    """What drives the run of these settings: rounds of one model, in sessions or not, or tasks.

    Args and errors are those of ``wirelessfl.build.rounds.build`` and ``build_tasks``.
    """
    if config.build_algorithm().timing.rounds:
        parts = build(config, model=model, data=data, network=network, shards=shards)
        sessions = parts.config.sessions.sessions is not None
        return SessionsEngine(parts) if sessions else RoundsEngine(parts)
    return TasksEngine(build_tasks(config, model=model, data=data, network=network, shards=shards))
