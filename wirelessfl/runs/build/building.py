"""Builds everything that a run needs from its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from channels.streams import Stream
from wirelessfl.air.radio import Fading
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import guard
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.config import Config
from wirelessfl.config.choices import Regime
from wirelessfl.runs.build.configured import configured_call
from wirelessfl.runs.build.given import Given, GivenObjects, check_objects
from wirelessfl.runs.build.planners import Untrained
from wirelessfl.runs.build.rounds import build_cells, build_rounds, check_redesign
from wirelessfl.runs.build.sessions import build_sessions
from wirelessfl.runs.build.setups import Setup
from wirelessfl.training.workers.shards import ALONE, Shards


def build(
    config: Config | Mapping[str, Any] | str | Path,
    *,
    shards: Shards = ALONE,
    trained: bool = True,
    **given: Unpack[Given],
) -> Setup:
    """Build everything that a run with these settings needs, without writing files.

    Args:
        config: a configuration, nested tables of settings, or the path of a TOML file.
        shards: the processes that share the clients.
        trained: whether the run trains. Otherwise its costs are counted, without data where these
            are not needed.
        given: objects that replace settings, see ``wirelessfl.Given``.

    Raises:
        ConfigError: a wrong setting, settings that conflict, or an object of the wrong type.
        DataError: the data are missing, or cannot be split as requested.
    """
    check_objects(shards=shards)
    settings, objects = configured_call(build, config, given)
    return build_resolved(settings, objects, shards, None if trained else Untrained())


def build_resolved(
    config: Config,
    objects: GivenObjects,
    shards: Shards = ALONE,
    untrained: Untrained | None = None,
) -> Setup:
    """``build`` for settings that ``configured`` has resolved; it resolves nothing.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings.
        shards: the processes that share the clients.
        untrained: how a run is built that is not trained; None to train it.
    """
    if objects.redesign is not None:
        check_redesign(config, objects.redesign)
    if objects.trainer is not None and shards.count > 1:
        raise ConfigError(
            f"torchrun has started {shards.count} processes, but trainer=..., "
            f"{objects.trainer.title}, needs one: start it without torchrun."
        )
    if objects.network is not None:
        guard(type(objects.network.fading), Fading)
    with seeded_generators(Stream(config.run.seed, ("users' code",))):
        return BUILDERS[config.regime](config, objects, shards, untrained)


def _build_tasks(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None
) -> Setup:
    from wirelessfl.runs.build.tasks import build_tasks  # loads PyTorch

    return build_tasks(config, objects, shards, untrained)


BUILDERS: Mapping[Regime, Callable[[Config, GivenObjects, Shards, Untrained | None], Setup]] = {
    Regime.ROUNDS: build_rounds,
    Regime.SESSIONS: build_sessions,
    Regime.TASKS: _build_tasks,
    Regime.CELLS: build_cells,
}
