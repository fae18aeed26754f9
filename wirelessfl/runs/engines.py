"""The engine of each kind of run."""

from __future__ import annotations

from wirelessfl.runs.cells import CellsEngine
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.rounds import RoundsEngine
from wirelessfl.runs.sessions import SessionsEngine
from wirelessfl.runs.tasks import TasksEngine
from wirelessfl.setup.building import AnySetup
from wirelessfl.setup.setups import CellsSetup, SessionsSetup, TasksSetup


def engine_of(setup: AnySetup) -> Engine:
    """The engine of a run: for rounds of one model, sessions, asynchronous cells, or tasks."""
    match setup:
        case TasksSetup():
            return TasksEngine(setup)
        case CellsSetup():
            return CellsEngine(setup)
        case SessionsSetup():
            return SessionsEngine(setup)
        case _:
            return RoundsEngine(setup)
