"""Builds a run whose cloud merges cells asynchronously."""

from __future__ import annotations

from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.asynchronous_cells import AsynchronousCells
from wirelessfl.schedules import Scope
from wirelessfl.setup.build_rounds import build_parts
from wirelessfl.setup.given_objects import GivenObjects
from wirelessfl.setup.setups import Setup
from wirelessfl.training.shards import Shards


def build_cells(config: Config, given: GivenObjects, shards: Shards) -> Setup:
    """Build a run with asynchronous cells; most parts are those of a run in rounds.

    Args:
        config: the settings; ``rounds`` is the number of merges.
        given: Python objects that replace settings.
        shards: the processes that share the clients; must be one.

    Raises:
        ConfigError: as in ``build_parts``, or there are several processes.
    """
    if shards.count > 1:
        raise ConfigError(
            f"torchrun has started {shards.count} processes, but algorithm "
            f'"{config.named("algorithm")}" with schedule "{config.named("schedule")}" needs one. '
            "Start it without torchrun."
        )
    parts = build_parts(config, given, shards)
    ticks = config.evaluation.eval_seconds is not None
    schedule = config.schedule
    scheduler = schedule.scheduler(
        [schedule],
        Scope(
            [config.training.rounds],
            config.evaluation.eval_every or (None if ticks else 1),
            ticks,
            cells=parts.network.cells,
        ),
    )
    handler = AsynchronousCells(parts.planner, parts.training, parts.clock)
    return parts.setup(scheduler, handler)
