"""Selections of the clients that take part in a round, discovered automatically in this folder."""

from wirelessfl.base.needs import CHANNEL, SAMPLED, Needs
from wirelessfl.base.registry import Kind
from wirelessfl.engine.selection.built_in import (
    Age,
    BestChannel,
    PowerOfChoice,
    RandomSelection,
    RoundRobin,
    Soonest,
)
from wirelessfl.engine.selection.selection import Candidates, Selection
from wirelessfl.engine.selection.ucb import Ucb
from wirelessfl.engine.selection.utility import Utility

ONE_MODEL = Needs(
    lambda run, _: not run.regime.of_tasks,
    'conflicts with schedule "{run.schedule.title}", which assigns clients to tasks: choose '
    'schedule "rounds"',
)
SELECTS = (
    Needs(
        lambda run, owner: (
            run.settings.training.clients_per_round or owner["name"] == RandomSelection.name
        ),
        "needs clients_per_round: set it",
    ),
    Needs(
        lambda run, _: CHANNEL.met(run, None) or not run.settings.select.radio,
        CHANNEL.reason,
    ),
)
SELECTIONS: Kind[Selection] = Kind(
    "select",
    __name__,
    Selection,
    default="random",
    needs=(ONE_MODEL, SAMPLED),
    table=SELECTS,
    text="clients that take part in a round",
)
"""All selections of the clients that take part in a round."""

__all__ = [
    "SELECTIONS",
    "Age",
    "BestChannel",
    "Candidates",
    "PowerOfChoice",
    "RandomSelection",
    "RoundRobin",
    "Selection",
    "Soonest",
    "Ucb",
    "Utility",
]
