"""The trained parts of a run of one model, whose first round is planned as a check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from channels import Network
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.delivery import before_failures
from wirelessfl.air.participants import PresentClients
from wirelessfl.air.plan import Plan
from wirelessfl.config import Config
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.runs.build.computing import Workload
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.planners import make_planner
from wirelessfl.runs.build.plausible import round_notes
from wirelessfl.runs.build.samples import Loaded
from wirelessfl.runs.build.setups import ModelParts, ledger_of, server_of
from wirelessfl.runs.build.trained_model import TrainedModel, build_model_of, sent_changes
from wirelessfl.training.evaluation import ClientLosses
from wirelessfl.training.workers.shards import Shards


def trained_parts(
    config: Config, objects: GivenObjects, network: Network, shards: Shards
) -> ModelParts:
    """Build the trained parts of a run of one model; arguments and errors as in ``build_parts``."""
    stream = Stream(config.run.seed)
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
    server = server_of(config, planner, config.run.client_states, shards.count, model.start)
    tested = config.used_assigner.tested(model.structure.neurons)
    tested_of = None if tested is None else tested.of(np.zeros(1, dtype=np.int64))
    steps = planner.settings.steps
    learner = Learner(
        server,
        LocalTraining(
            model.executor,
            steps,
            padding or 0.0,
            shards,
            sent_changes(config, stream),
        ),
        model.spec,
        stream,
        evaluation=model.evaluation(tested_of),
        compression=planner.settings.downlink_compression,
    )
    select = planner.participation.selection
    if select is not None:  # it may ask for losses
        learner.client_losses = ClientLosses(model.objective, model.executor.data, tested_of)
    return ModelParts(
        config=config.with_run(
            model.computing.settings() | {"client_states": server.states.kind, "padding": padding}
        ),
        stream=stream,
        model=model,
        planner=planner,
        learner=learner,
        clock=Clock(),
        ledger=ledger_of(planner),
        shards=shards,
        notes=[*model.notes, *round_notes(config, planner.network, first)],
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
    if check is None or participation.energy is not None:
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
