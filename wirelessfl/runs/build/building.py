"""Builds everything that a run needs from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from channels import Network
from channels.streams import Stream
from wirelessfl.air.radio import Fading
from wirelessfl.base.guard import guard
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config import Config
from wirelessfl.config.choices import Regime
from wirelessfl.data import Data
from wirelessfl.engine.rounds.redesign import Redesign
from wirelessfl.runs.build.arguments import check_objects
from wirelessfl.runs.build.given_objects import (
    GivenMetrics,
    GivenObjects,
    configured,
    naming_network,
)
from wirelessfl.runs.build.rounds import build_cells, build_rounds, check_redesign
from wirelessfl.runs.build.sessions import build_sessions
from wirelessfl.runs.build.setups import Setup
from wirelessfl.runs.build.tasks import build_tasks
from wirelessfl.training.augmentation import AugmentFunction
from wirelessfl.training.workers.shards import ALONE, Shards

BUILDERS: Mapping[Regime, Callable[[Config, GivenObjects, Shards], Setup]] = {
    Regime.ROUNDS: build_rounds,
    Regime.SESSIONS: build_sessions,
    Regime.TASKS: build_tasks,
    Regime.CELLS: build_cells,
}


def build(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    model: nn.Module | None = None,
    data: Data | None = None,
    network: Network | str | None = None,
    loss: Callable[..., Tensor] | str | None = None,
    metrics: GivenMetrics | None = None,
    split: Sequence[Any] | None = None,
    redesign: Redesign | None = None,
    augment: AugmentFunction | None = None,
    shards: Shards = ALONE,
) -> Setup:
    """Build everything that a run with these settings needs, without writing files.

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        model: module to train instead of the configured model, from its current weights.
        data: data to use instead of the configured data set, see ``wirelessfl.data.as_dataset``.
        network: network to use instead of the configured one, or the import path of one.
        loss: loss function to use instead of the configured one, or the name of a loss.
        metrics: further metrics of the rows: functions by name, or names and functions.
        split: indices of the training samples of each client, instead of the configured split.
        redesign: decides while the run trains how its next rounds train and send.
        augment: function f(x, generator) that changes the samples of training batches.
        shards: the processes that share the clients.

    Raises:
        ConfigError: a wrong setting, settings that conflict, or an object of the wrong type.
        DataError: the data are missing, or cannot be split as requested.
    """
    check_objects(model=model, redesign=redesign, shards=shards)
    config, network = naming_network(config, network)
    given = GivenObjects.of(model, data, network, loss, metrics, split, redesign, augment)
    return build_resolved(configured(config, given), given, shards)


def build_resolved(config: Config, given: GivenObjects, shards: Shards = ALONE) -> Setup:
    """``build`` for settings that ``configured`` has resolved; it resolves nothing.

    Args:
        config: the settings, resolved, with the given objects marked.
        given: Python objects that replace settings.
        shards: the processes that share the clients.
    """
    if given.redesign is not None:
        check_redesign(config, given.redesign)
    if given.network is not None:
        guard(type(given.network.fading), Fading)
    with seeded_generators(Stream(config.run.seed, ("users' code",))):
        return BUILDERS[config.regime](config, given, shards)
