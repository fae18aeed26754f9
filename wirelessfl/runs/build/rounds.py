"""Builds a run of one model in rounds, or of cells that the cloud merges asynchronously."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from channels import Network
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.delivery import before_failures
from wirelessfl.air.links import Links
from wirelessfl.air.participants import PresentClients
from wirelessfl.air.plan import Plan
from wirelessfl.algorithms.algorithm import stored_vectors
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config import Config
from wirelessfl.engine.events import Scheduler
from wirelessfl.engine.rounds.asynchronous_cells import AsynchronousCells
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.rounds.model_rounds import ModelRounds, OneModel
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.rounds.redesign import Redesign, Redesigns
from wirelessfl.engine.schedules import Clock, Rounds, Scope
from wirelessfl.engine.server.client_states import make_states
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger, Totals
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.runs.build.computing import Workload
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.build.planners import Model, Untrained, UntrainedModel, make_planner
from wirelessfl.runs.build.plausible import round_notes
from wirelessfl.runs.build.samples import Loaded
from wirelessfl.runs.build.setups import Goal, Limits, Setup
from wirelessfl.runs.build.trained_model import TrainedModel, build_model_of
from wirelessfl.training.evaluation import ClientLosses
from wirelessfl.training.workers.shards import Shards


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a run of one model, without its schedule.

    Args:
        config: settings as stored, with every automatic value resolved.
        stream: randomness of the run.
        model: the model.
        planner: plans rounds.
        learner: trains the planned rounds.
        clock: virtual clock, in seconds.
        ledger: costs of the rounds.
        shards: the processes that share the clients.
        notes: messages for the user, one line each.
    """

    config: Config
    stream: Stream
    model: Model
    planner: Planner
    learner: Learner
    clock: Clock
    ledger: Ledger
    shards: Shards
    notes: Sequence[str]

    @property
    def network(self) -> Network:
        """Cells and clients."""
        return self.planner.network

    def setup(self, schedule: Scheduler, handler: OneModel) -> Setup:
        """The run with a schedule, and what carries out its decisions."""
        evaluation = self.config.evaluation
        target = evaluation.target if evaluation.stop_at_target else None
        return Setup(
            config=self.config,
            stream=self.stream,
            network=self.network,
            models=[self.model],
            clock=self.clock,
            schedule=schedule,
            handler=handler,
            limits=Limits.of(self.config, self.model.threads),
            goals=[Goal(evaluation.monitor, target)],
            shards=self.shards,
            notes=self.notes,
        )


def build_rounds(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run of one model in rounds; arguments and errors as for ``build_parts``."""
    parts = build_parts(config, objects, shards, untrained)
    redesigns = None
    if objects.redesign is not None:
        links_of = _links_of(config, parts.planner.links)
        redesigns = Redesigns(objects.redesign, parts.planner, links_of, shards)
    return parts.setup(
        config.schedule.scheduler([config.schedule], _scope(config, untrained)),
        ModelRounds(parts.planner, parts.learner, parts.clock, parts.ledger, redesigns),
    )


def check_redesign(config: Config, redesign: Redesign) -> None:
    """Refuse runs whose rounds cannot be redesigned.

    Raises:
        ConfigError: a setting conflicts with redesigns; the message names it.
    """
    every = getattr(redesign, "every", None)  # users may have left it out
    period, title = config.evaluation.eval_every or 1, redesign.title
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ConfigError(f"redesign {title!r}: every is {shown(every)}: give an integer >= 1.")
    if not config.regime.common_rounds or type(config.schedule) is not Rounds:
        what = f"schedule={config.named('schedule')}"
        if config.regime.in_sessions:
            what = f"sessions={config.sessions.sessions}"
        raise ConfigError(
            f"redesign={title} conflicts with {what}: only synchronous rounds of one model can be "
            'redesigned. Choose schedule "rounds" without sessions, or leave redesign out.'
        )
    passes = config.training.local_epochs
    if passes is not None:
        raise ConfigError(
            f"redesign={title} conflicts with local_epochs={passes:g}: it decides local_steps, the "
            "same number for all clients. Give local_steps instead."
        )
    if config.used_assigner.plans_ahead:
        raise ConfigError(
            f'redesign={title} conflicts with algorithm "{config.named("algorithm")}", which plans '
            "its rounds in advance with these settings: choose other values (budget, min_coverage, "
            "masks), or leave redesign out."
        )
    if every % period:
        raise ConfigError(
            f"redesign={title} conflicts with eval_every={period}: it decides from rows, and each "
            f"row must have rounds of one design. Choose a multiple of {period} rounds, or another "
            "eval_every."
        )
    held = config.data.validation_fraction
    if any(field.startswith("validation_") for field in redesign.reads) and not held:
        raise ConfigError(
            f"redesign={title} reads {', '.join(redesign.reads)}: set validation_fraction, the "
            "fraction of training samples that are held out."
        )


def _links_of(config: Config, configured: Links) -> Callable[[Mapping[str, Any]], Links]:
    """Links with changed settings of the uplink; each is built once."""

    @cache
    def changed(settings: tuple[tuple[str, Any], ...]) -> Links:
        tables, chosen = config.given_tables(), dict(settings)
        name = config.named("uplink")
        if chosen.get("name", name) == name:
            chosen = {"name": name, **tables.get("uplink", {}), **chosen}
        uplink = Config.of(tables | {"uplink": chosen}).uplink
        if uplink.gives != config.uplink.gives:
            raise ConfigError(
                f"the redesign has chosen uplink {uplink.title!r}, which conflicts with uplink "
                f"{name!r} of the run: choose one that also gives {config.uplink.gives!r}."
            )
        coherence = config.network.coherence or uplink.coherence
        return replace(configured, uplink=uplink, coherence=coherence)

    return lambda settings: changed(tuple(sorted(settings.items())))


def build_parts(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> ModelParts:
    """Build the parts of a run of one model; as a check, its first round is planned.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings.
        shards: the processes that share the clients.
        untrained: how a run is built that is not trained; None to train it.

    Raises:
        ConfigError: settings conflict.
        DataError: the data are missing, or cannot be split as requested.
    """
    stream = Stream(config.run.seed)
    network = objects.network or build_network(config.network, stream, config)
    if untrained is not None:
        return _untrained_parts(config, objects, network, shards, untrained)
    cohort = config.training.clients_per_round or network.clients
    model = build_model_of(
        config,
        network,
        Workload.of(config, cohort),
        objects,
        Loaded(),
        split_stream=stream.child("split"),
        stream=stream,
    )
    planner = make_planner(config, network, model)
    first = _checked_plan(config, model, planner)
    padding = config.run.padding
    if first.client_submodels is not None:
        padding = model.structure.padding(padding)
    server = _server(config, planner, config.run.client_states, shards.count, model.start)
    tested = config.used_assigner.tested(model.structure.neurons)
    tested_of = None if tested is None else tested.of(np.zeros(1, dtype=np.int64))
    steps = planner.settings.steps
    learner = Learner(
        server,
        LocalTraining(model.executor, steps, padding or 0.0, shards),
        model.spec,
        stream,
        evaluation=model.evaluation(tested_of),
        compression=planner.settings.compression,
    )
    select = planner.participation.selection
    if select is not None:  # it may ask for losses
        learner.client_losses = ClientLosses(model.objective, model.executor.data, tested_of)
    return ModelParts(
        config=config.settled(
            model.computing.settings() | {"client_states": server.states.kind, "padding": padding}
        ),
        stream=stream,
        model=model,
        planner=planner,
        learner=learner,
        clock=Clock(),
        ledger=_ledger(planner),
        shards=shards,
        notes=[*model.notes, *round_notes(config, planner.network, first)],
    )


def _untrained_parts(
    config: Config, objects: GivenObjects, network: Network, shards: Shards, untrained: Untrained
) -> ModelParts:
    model = untrained.model or UntrainedModel.of(config, objects)
    planner = make_planner(config, network, model)
    start = model.start if config.regime.in_sessions else None  # warm starts get it
    server = _server(config, planner, "memory", 1, start)
    return ModelParts(
        config=config,
        stream=planner.stream,
        model=model,
        planner=planner,
        learner=Learner(server, None, model.spec, planner.stream),
        clock=Clock(),
        ledger=_ledger(planner, joules=untrained.joules),
        shards=shards,
        notes=model.notes,
    )


def _ledger(planner: Planner, *, joules: bool = True) -> Ledger:
    totals = Totals.of(planner.links.uplink, planner.settings, joules=joules)
    return Ledger(planner.network.clients, totals)


def _server(
    config: Config, planner: Planner, states: str, processes: int, start: Tensor | None
) -> Server:
    names, clients = stored_vectors(config.rule), planner.network.clients
    return Server(
        config.algorithm,
        config.uplink,
        Weights(planner.network.cell_of, planner.weights),
        make_states(states, names, planner.model.spec.size, clients, processes),
        start,
    )


def _equal_losses(clients: IntArray, samples: int | None) -> FloatArray:
    """Losses of 0, with which a round is planned as a check."""
    return np.zeros(len(clients))


def _checked_plan(config: Config, model: TrainedModel, planner: Planner) -> Plan:
    """Check that rounds can be planned, and return the plan of the first.

    Plans the first round, or all rounds if the algorithm plans ahead. Deadlines of all rounds are
    checked, too.
    """
    groups = model.groups
    present = None if groups is None else PresentClients(groups.group_of == 0)
    first = planner.plan(0, present, losses=_equal_losses)
    if planner.assigner.plans_ahead and config.sessions.sessions is None:
        for number in range(1, config.training.rounds):
            planner.plan(number, losses=_equal_losses)
    if config.regime.common_rounds:
        _check_deadlines(planner, config.training.rounds)
    return first


def _check_deadlines(planner: Planner, rounds: int) -> None:
    """Check that all rounds meet their deadline, unless participants depend on training."""
    check, participation = planner.links.uplink.deadline_check, planner.participation
    if check is None or participation.client_joules is not None:
        return
    if participation.selection is not None and (
        participation.selection.wants_losses or planner.links.failures is not None
    ):
        return
    # Repeats may take longer than the deadline: the check is that of rounds in which none fails.
    access = before_failures(check, planner.links.failures)
    quick = replace(planner, links=replace(planner.links, access=access, failures=None))
    ledger = Ledger(planner.network.clients)
    for number in range(rounds):
        plan = quick.plan(number, ledger=ledger)
        ledger.add(plan.clients, None, np.ones(len(plan.clients), dtype=np.bool_))


def _scope(config: Config, untrained: Untrained | None, cells: int | None = None) -> Scope:
    """Facts for the scheduler: without training, rows are written after each round."""
    if untrained is not None:
        return Scope([untrained.rounds or config.training.rounds], 1, cells=cells)
    ticks = config.evaluation.eval_seconds is not None
    every = config.evaluation.eval_every or (None if ticks else 1)
    return Scope([config.training.rounds], every, ticks, cells=cells)


def build_cells(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run with asynchronous cells; most parts are those of a run in rounds.

    Args:
        config: the settings; ``rounds`` is the number of merges.
        objects: Python objects that replace settings.
        shards: the processes that share the clients; must be one.
        untrained: as in ``build_parts``.

    Raises:
        ConfigError: as in ``build_parts``, or there are several processes.
    """
    if shards.count > 1:
        raise ConfigError(
            f"torchrun has started {shards.count} processes, but algorithm "
            f'"{config.named("algorithm")}" with schedule "{config.named("schedule")}" needs one. '
            "Start it without torchrun."
        )
    parts = build_parts(config, objects, shards, untrained)
    scope = _scope(config, untrained, parts.network.cells)
    return parts.setup(
        config.schedule.scheduler([config.schedule], scope),
        AsynchronousCells(parts.planner, parts.learner, parts.clock, parts.ledger),
    )
