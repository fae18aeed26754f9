"""The engine of each regime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wirelessfl.config.regimes import Regime
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.rounds_engine import RoundsEngine
from wirelessfl.runs.sessions_engine import SessionsEngine
from wirelessfl.runs.tasks_engine import TasksEngine
from wirelessfl.setup.building import AnySetup

ENGINES: Mapping[Regime, Callable[[Any], Engine]] = {
    Regime.ROUNDS: RoundsEngine,
    Regime.SESSIONS: SessionsEngine,
    Regime.TASKS: TasksEngine,
    Regime.TASK_SESSIONS: TasksEngine,
    Regime.CELLS: RoundsEngine,
}


def engine_of(setup: AnySetup) -> Engine:
    """The engine of a run."""
    return ENGINES[setup.config.regime](setup)
