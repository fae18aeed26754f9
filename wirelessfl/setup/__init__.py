"""From settings to everything that a run needs, built once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import nn

from channels import Network
from wirelessfl.config import Config
from wirelessfl.data import Dataset
from wirelessfl.setup.arguments import check_objects
from wirelessfl.setup.cells import build_cells
from wirelessfl.setup.given_objects import GivenObjects, configured
from wirelessfl.setup.rounds import build_rounds
from wirelessfl.setup.sessions import build_sessions
from wirelessfl.setup.setups import CellsSetup, RoundsSetup, SessionsSetup, Setup, TasksSetup
from wirelessfl.setup.tasks import build_tasks
from wirelessfl.training.shards import ALONE, Shards

AnySetup = RoundsSetup | CellsSetup | SessionsSetup | TasksSetup
"""What ``build`` gives."""


def build(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    shards: Shards = ALONE,
) -> AnySetup:
    """Everything that a run of these settings needs; nothing is written.

    Args:
        config: settings: a configuration, nested tables, or the path of a TOML file.
        model: used instead of the configured one, with the weights it has.
        data: used instead of the configured data set.
        network: used instead of the configured network and the settings that describe it.
        shards: the processes that share the clients.

    Raises:
        ConfigError: settings that are wrong, or do not go together, or an object of a wrong type.
        DataError: no such data, or a split that cannot be made.
    """
    check_objects(model=model, data=data, network=network, shards=shards)
    given = GivenObjects(model, data, network)
    config = configured(config, given)
    match config.regime:
        case "rounds":
            return build_rounds(config, given, shards)
        case "sessions":
            return build_sessions(config, given, shards)
        case "tasks":
            return build_tasks(config, given, shards)
        case "cells":
            return build_cells(config, given, shards)


__all__ = [
    "AnySetup",
    "CellsSetup",
    "RoundsSetup",
    "SessionsSetup",
    "Setup",
    "TasksSetup",
    "build",
]
