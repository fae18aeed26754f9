"""Prices runs: simulates their rounds without data and without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.air.plan import Plan
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.config.choices import ENDLESS
from wirelessfl.engine.events import Report, Stop
from wirelessfl.engine.loop import begin, simulate
from wirelessfl.engine.rounds.model_rounds import OneModel
from wirelessfl.engine.server.ledger import Log
from wirelessfl.engine.tasks.handler import TaskHandler
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.runs.build.building import build_resolved
from wirelessfl.runs.build.given import NOTHING, GivenObjects
from wirelessfl.runs.build.planners import Untrained, UntrainedModel
from wirelessfl.runs.build.plausible import round_notes
from wirelessfl.runs.build.setups import Setup
from wirelessfl.runs.pricing.prices import Prices


@dataclass(frozen=True, eq=False)
class Priced:
    """A run that has been simulated without training.

    Args:
        prices: what its rounds cost.
        setup: its parts, after the last round.
        notes: the notes on the run, but for those on its data and its executor.
    """

    prices: Prices
    setup: Setup
    notes: Sequence[str]

    @property
    def model(self) -> UntrainedModel:
        """The model of the run."""
        [model] = self.setup.models
        assert isinstance(model, UntrainedModel)
        return model


def priced(
    config: Config,
    rounds: int | None = None,
    objects: GivenObjects = NOTHING,
    *,
    joules: bool = True,
    log: Log | None = None,
    model: UntrainedModel | None = None,
) -> Priced:
    """Price a run, and keep what determines its state; errors as in ``wirelessfl.price``.

    Args:
        config: the settings, resolved, with the given objects marked.
        rounds: number of rounds.
        objects: Python objects that replace settings.
        joules: whether to compute the energy.
        log: takes the plan of each round.
        model: model of settings that have the same; None to build it.
    """
    rounds = check_priceable(config, rounds, joules)
    setup = build_resolved(config, objects, untrained=Untrained(rounds, joules, model))
    handler, cells = setup.handler, setup.network.cells
    if isinstance(handler, TaskHandler):
        _check_tasks(config, handler, rounds)
    rows: list[dict[str, Any]] = []
    seconds: list[FloatArray] = []
    plans: list[Plan] = []
    first: list[Plan] = []

    def count(plan: Plan, trial: bool) -> None:
        first[:] = first or [plan]
        if not trial:
            plans.append(plan)
        if log is not None:
            log(plan, trial)

    def report(report: Report) -> Stop | None:
        if plans:
            seconds.append(_node_seconds(plans, cells, apart=config.regime.merges_cells))
            plans.clear()
        now = {"round": report.round, "sim_seconds": setup.clock.now}
        rows.append(handler.names(report) | now | _counted(handler.costs(), joules=joules))
        done = report.task is None and rounds is not None and report.round >= rounds
        return Stop() if done else None

    if isinstance(handler, OneModel):
        handler.ledger.log = count
    follow(setup, report, None if rounds is not None else config.training.max_seconds)
    ended = None
    if isinstance(handler, TaskHandler):
        seconds, ended = _since_before(rows), handler.ended
    elif len(seconds) < (config.total_rounds if rounds is None else rounds):
        ended = handler.ended
    prices = Prices(rows, np.array(seconds).reshape(-1, cells), ended)
    return Priced(prices, setup, notes_of(setup, first))


def _counted(costs: Mapping[str, Any], *, joules: bool) -> dict[str, Any]:
    return {name: value for name, value in costs.items() if joules or "joules" not in name}


def _since_before(rows: Sequence[Mapping[str, Any]]) -> list[FloatArray]:
    """Seconds [1] of each round or merge of a task since the one before."""
    before: dict[str, Mapping[str, Any]] = {}
    seconds = []
    for row in rows:
        last = before.setdefault(row["task"], row)
        if row["round"] > last["round"]:
            seconds.append(np.array([row["sim_seconds"] - last["sim_seconds"]]))
            before[row["task"]] = row
    return seconds


def _node_seconds(plans: Sequence[Plan], cells: int, *, apart: bool) -> FloatArray:
    """Seconds [cells] of a round, or of the cells of which each has a plan of its own."""
    if not apart:
        [plan] = plans
        return plan.price.seconds
    seconds = np.full(cells, np.nan)
    for plan in plans:
        cell = plan.draws.network.cell_of[0]  # that of all its clients, who may have left
        seconds[cell] = plan.price.seconds[cell]
    return seconds


def notes_of(setup: Setup, first: Sequence[Plan]) -> list[str]:
    """The notes on a run whose rounds have been simulated.

    Args:
        setup: its parts.
        first: the plan of its first round; empty if it has none.
    """
    notes = [note for plan in first for note in round_notes(setup.config, setup.network, plan)]
    return [*setup.notes, *notes]


def follow(
    setup: Setup, report: Callable[[Report], Stop | None], max_seconds: float | None
) -> None:
    """Simulate a run that is not trained to its end.

    Args:
        setup: its parts.
        report: called after each round; may end the run.
        max_seconds: simulated seconds at which it ends; None for no limit.
    """
    with seeded_generators(Stream(setup.config.run.seed, ("users' code",))):
        begin(setup.clock, max_seconds)
        setup.handler.start()
        simulate(setup.schedule, setup.handler, setup.clock, report, lambda: None)


def check_priceable(config: Config, rounds: Any, joules: bool) -> int | None:
    """The number of rounds; refuses runs whose costs depend on training, and wrong numbers.

    Raises:
        ConfigError: see ``price``.
    """
    select, training = config.select, config.training
    if select is not None and select.wants_losses:
        raise ConfigError(
            f'select "{select.title}" has no price without training: it chooses clients by the '
            "losses of the current model. Choose another selection."
        )
    for name in ("client_joules", "battery_joules"):
        value = getattr(training, name)
        if value is not None and not joules:
            raise ConfigError(
                f"{name}={shown(value)} conflicts with joules=False: who takes part "
                f"depends on the energy spent. Give joules=True, or leave {name} out."
            )
    if config.given.redesign is not None:
        raise ConfigError(
            f"redesign={config.given.redesign} has no price without training: it decides from "
            "rows. Leave it out."
        )
    if rounds is None:
        return None
    if isinstance(rounds, bool) or not isinstance(rounds, int | np.integer) or rounds < 1:
        raise ConfigError(f"rounds is {shown(rounds)}: give an integer >= 1, or None for all.")
    if config.regime.in_sessions and rounds > config.total_rounds:
        raise ConfigError(
            f"rounds is {rounds}, but all sessions together have {config.total_rounds}: give at "
            "most that many, or raise the number of sessions or of their rounds."
        )
    return int(rounds)


def _check_tasks(config: Config, handler: TaskHandler, rounds: int | None) -> None:
    """Refuse tasks whose costs depend on training."""
    tasks = config.tasks
    if isinstance(handler, TaskRounds) and handler.assignment.wants_losses:
        raise ConfigError(
            f"assignment {config.named('assignment')!r} has no price without training: it assigns "
            "clients by the losses of the current models. Choose another assignment."
        )
    for name, task in tasks.items():
        target, endless = task.evaluation.target, task.training.rounds == ENDLESS
        if endless and rounds is None and config.training.max_seconds is None:
            raise ConfigError(
                f"target={target} of task {name!r} ends the run, at a time that is not known "
                "without training: give rounds."
            )
        if len(tasks) > 1 and target is not None:
            raise ConfigError(
                f"target={target:g} of task {name!r} has no price without "
                "training: when the task reaches it, its clients go to others. Leave it out."
            )
        if len(tasks) > 1 and task.schedule.measured is not None:
            raise ConfigError(
                f"schedule {task.named('schedule')!r} has no price without training: its option "
                "D gives requests to tasks by the spread of their updates. Choose option S."
            )
