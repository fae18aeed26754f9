"""Prices runs: simulates their rounds without data and without training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from channels.streams import Stream
from wirelessfl.air.radio import Fading
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import guard
from wirelessfl.base.torch_state import seeded_generators
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.events import Report, Scheduler
from wirelessfl.engine.loop import begin, simulate
from wirelessfl.engine.rounds.model_rounds import ModelRounds, OneModel
from wirelessfl.engine.schedules import Clock, Scope, SessionsScheduler
from wirelessfl.engine.server.client_states import make_states
from wirelessfl.engine.server.learner import Log
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.engine.sessions.session_model import HeldLabels
from wirelessfl.engine.sessions.session_rounds import SessionRounds
from wirelessfl.runs.build.given import NOTHING, GivenObjects
from wirelessfl.runs.build.planners import Planned, plan_without_data
from wirelessfl.runs.build.plausible import round_notes
from wirelessfl.runs.pricing.prices import Prices
from wirelessfl.runs.pricing.untrained import (
    Until,
    UntrainedCells,
    UntrainedRounds,
    UntrainedServer,
    UntrainedStart,
)

SESSION = ("session", "session_round")
"""Fields of rows in sessions."""


@dataclass(frozen=True, eq=False)
class Priced:
    """A run that has been simulated without training.

    Args:
        prices: what its rounds cost.
        training: the sums of the costs, and the ledger of the clients.
        planned: the planner of the rounds, and its network.
        seconds: simulated time of the end.
        merged_at: simulated time of the last merge; of sessions and asynchronous cells, the end.
        notes: the notes on the run, but for those on its data and its executor.
    """

    prices: Prices
    training: UntrainedRounds
    planned: Planned
    seconds: float
    merged_at: float
    notes: Sequence[str]


def priced(
    config: Config,
    rounds: int | None = None,
    objects: GivenObjects = NOTHING,
    *,
    joules: bool = True,
    log: Log | None = None,
    like: Planned | None = None,
) -> Priced:
    """Price a run, and keep what determines its state; errors as in ``wirelessfl.price``.

    Args:
        config: the settings, resolved, with the given objects marked.
        rounds: number of rounds.
        objects: Python objects that replace settings.
        joules: whether to compute the energy.
        log: takes the plan of each round.
        like: what plans settings that have the same model; None to build the model.
    """
    rounds = check_priceable(config, rounds, joules)
    rows: list[dict[str, Any]] = []

    def report(simulation: Simulation, report: Report) -> None:
        training, handler = simulation.training, simulation.handler
        costs = training.totals.row() | {"joules_max": training.ledger.most_joules}
        if not training.counts_joules:
            del costs["joules_max"]
        now = {"round": report.round, "sim_seconds": simulation.clock.now}
        session = {name: report.status[name] for name in SESSION if name in report.status}
        rows.append({**session, **now, **costs, **handler.priced()})

    def prepare(simulation: Simulation, schedule: Scheduler) -> Scheduler:
        simulation.training.log = log
        return schedule

    simulation = simulated(
        config, objects, rounds, report, joules=joules, prepare=prepare, like=like
    )
    training, handler, planned = simulation.training, simulation.handler, simulation.planned
    seconds = np.array(training.node_seconds).reshape(-1, planned.planner.network.cells)
    total = config.total_rounds if rounds is None else rounds
    prices = Prices(rows, seconds, handler.ended if len(seconds) < total else None)
    now = simulation.clock.now
    return Priced(prices, training, planned, now, handler.merged_at, simulation.notes(config))


@dataclass(frozen=True, eq=False)
class Simulation:
    """A run whose rounds are simulated, but not trained.

    Args:
        planned: its planner and its network.
        training: its totals.
        clock: virtual clock.
        handler: carries out the decisions of the schedule.
    """

    planned: Planned
    training: UntrainedRounds
    clock: Clock
    handler: OneModel

    def notes(self, config: Config) -> list[str]:
        """The notes on the run with settings ``config``, whose rounds have been simulated."""
        network, first = self.planned.planner.network, self.training.first
        cost = self.planned.model.step_cost
        counted = [] if cost is None else [cost.note]
        return counted + ([] if first is None else round_notes(config, network, first))


def simulated(
    config: Config,
    objects: GivenObjects,
    rounds: int | None,
    report: Callable[[Simulation, Report], None],
    *,
    joules: bool = True,
    prepare: Callable[[Simulation, Scheduler], Scheduler] | None = None,
    like: Planned | None = None,
) -> Simulation:
    """Simulate the rounds of a run.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings.
        rounds: number of rounds; None for all, up to ``max_seconds`` if it is set.
        report: called after each round.
        joules: whether energy is counted.
        prepare: called before the first round; returns the schedule to use.
        like: what plans settings that have the same model; None to build the model.
    """
    if objects.network is not None:
        guard(type(objects.network.fading), Fading)
    with seeded_generators(Stream(config.run.seed, ("users' code",))):
        planned = plan_without_data(config, objects, like)
        settings = planned.planner.settings
        training = UntrainedRounds(_server(config, planned), settings, joules=joules)
        clock = Clock()
        schedule, handler = _simulated(config, planned, training, clock, rounds)
        simulation = Simulation(planned, training, clock, handler)
        if prepare is not None:
            schedule = prepare(simulation, schedule)
        begin(clock, config.training.max_seconds if rounds is None else None)
        simulate(schedule, handler, clock, partial(report, simulation), lambda: None)
    return simulation


def check_priceable(config: Config, rounds: Any, joules: bool) -> int | None:
    """The number of rounds; refuses runs whose costs depend on training, and wrong numbers.

    Raises:
        ConfigError: see ``price``.
    """
    if config.regime.of_tasks:
        raise ConfigError(
            f"schedule {config.named('schedule')!r} has no price without training: which client "
            "trains which task, and when tasks end, can depend on accuracies. `wirelessfl "
            "timeline` shows the times up to the first such decision; for prices choose schedule "
            '"rounds", or an algorithm with cells.'
        )
    select, limit = config.select, config.training.client_joules
    if select is not None and select.wants_losses:
        raise ConfigError(
            f'select "{select.title}" has no price without training: it chooses clients by the '
            "losses of the current model. Choose another selection."
        )
    if limit is not None and not joules:
        raise ConfigError(
            f"client_joules={limit:g} conflicts with joules=False: who takes part depends on the "
            "energy spent. Give joules=True, or leave client_joules out."
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


def _server(config: Config, planned: Planned) -> Server:
    """A server of the run with its initial model, which is not trained."""
    network = planned.planner.network
    weights = Weights(network.cell_of)
    if not config.regime.in_sessions:
        return UntrainedServer(config.algorithm, config.uplink, weights)
    model = planned.model
    start = model.objective.spec.from_module(model.module).cpu()
    rule = config.algorithm.rule  # nothing is stored, but means over the clients ask for it
    names = (*rule.client_state, *rule.remembers)
    states = make_states("memory", names, model.spec.size, network.clients, processes=1)
    return Server(config.algorithm, config.uplink, weights, states, start)


def _simulated(
    config: Config,
    planned: Planned,
    training: UntrainedRounds,
    clock: Clock,
    rounds: int | None,
) -> tuple[Scheduler, OneModel]:
    """The run's schedule, with a report after each round, and what carries out its decisions."""
    # Costs do not depend on step sizes, which may be undefined beyond the run's last round.
    planner = replace(planned.planner, lr_share=unchanged)
    if config.regime.in_sessions:
        return _sessions(config, replace(planned, planner=planner), training, clock, rounds)
    chosen = config.schedule
    cells = planner.network.cells if config.regime.merges_cells else None
    scope = Scope([config.training.rounds if rounds is None else rounds], 1, cells=cells)
    schedule = chosen.scheduler([chosen], scope)
    if config.regime.merges_cells:
        return schedule, UntrainedCells(planner, training, clock)
    return schedule, ModelRounds(planner, training, clock)


def _sessions(
    config: Config,
    planned: Planned,
    training: UntrainedRounds,
    clock: Clock,
    rounds: int | None,
) -> tuple[Scheduler, SessionRounds]:
    from wirelessfl.runs.build.sessions import build_attendance  # loads PyTorch

    warm_start, sessions = config.warm_start, config.sessions.sessions
    assert warm_start is not None
    assert sessions is not None
    planner, start = planned.planner, training.server.cloud["params"]
    schedule: Scheduler = SessionsScheduler(sessions, config.training.rounds, warm_start.trials)
    if rounds is not None:
        schedule = Until(schedule, lambda report: report.round >= rounds)
    classes = range(planned.model.classes)
    handler = SessionRounds(
        planner,
        training,
        clock,
        build_attendance(
            config, planner.network.clients, clock, planned.groups, Stream(config.run.seed)
        ),
        UntrainedStart(original=warm_start),
        draw=lambda number: start,
        labels=HeldLabels(lambda client: classes, classes),
    )
    return schedule, handler
