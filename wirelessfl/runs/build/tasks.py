"""Builds a run of tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from channels import Network
from channels.streams import Stream
from wirelessfl.air.traffic import Traffic
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.server.client_states import make_states
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.engine.tasks.learner import TaskLearner
from wirelessfl.engine.tasks.request import RequestSeconds, RequestSubmodels
from wirelessfl.runs.build.computing import Workload
from wirelessfl.runs.build.given import GivenObjects
from wirelessfl.runs.build.network import build_network
from wirelessfl.runs.build.planners import Model, Untrained, UntrainedModel
from wirelessfl.runs.build.plausible import implausible
from wirelessfl.runs.build.rounds import availability_trace
from wirelessfl.runs.build.samples import Loaded
from wirelessfl.runs.build.setups import Goal, Limits, Setup
from wirelessfl.runs.build.task_schedules import build_delays, build_times, task_stream
from wirelessfl.runs.build.trained_model import TrainedModel, build_model_of, sent_changes
from wirelessfl.training.workers.shards import Shards

MAX_TASKS_WITH_WORKERS = 2
"""Maximum number of tasks that get worker processes automatically, to bound memory."""


def build_tasks(
    config: Config, objects: GivenObjects, shards: Shards, untrained: Untrained | None = None
) -> Setup:
    """Build a run of tasks.

    Tasks with the same data settings share the data and the split, so a client has the same
    samples for all of them.

    Args:
        config: the settings, resolved, with the given objects marked.
        objects: Python objects that replace settings; with tables of tasks, only a network.
        shards: the processes that share the clients; must be one.
        untrained: how a run is built that is not trained; None to train it.

    Raises:
        ConfigError: settings conflict.
        DataError: the data are missing, or cannot be split as requested.
    """
    _check(config, objects, shards)
    stream = Stream(config.run.seed)
    network = objects.network or build_network(config.network, stream, config)
    if len(config.task) > MAX_TASKS_WITH_WORKERS and config.run.workers == "auto":
        config = config.with_run({"workers": 1})
    loaded = Loaded()
    tasks = {name: (task, task_stream(config, name, stream)) for name, task in config.tasks.items()}
    models: list[Model] = [
        _build_model(task, network, objects, loaded, stream, of_task)
        if untrained is None
        else UntrainedModel(task, objects, network, of_task, stream.child("split"))
        for task, of_task in tasks.values()
    ]
    up, down = config.uplink_compression, config.downlink_compression
    traffic = [
        Traffic.of(task.rule, model.spec, up, down, config.uplink.element_bits)
        for (task, _), model in zip(tasks.values(), models, strict=True)
    ]
    costs, steps = [model.step_cost for model in models], [model.steps for model in models]
    if not config.task and costs[0] is not None:
        network = costs[0].on(network)
    delays = build_delays(config, network, traffic, stream, costs, steps)
    work = "a request" if config.schedule.work == "requests" else "a round"
    trace = availability_trace(config, network.clients)
    departures = trace is not None and trace.departures
    learners = [
        _learner(
            name,
            task,
            model,
            network,
            RequestSeconds(delays, number, config.named("delays"), f"task {name}", work),
            of_task,
            stream,
            bits,
            departures=departures,
        )
        for number, ((name, (task, of_task)), model, bits) in enumerate(
            zip(tasks.items(), models, traffic, strict=True)
        )
    ]
    names = list(config.tasks)
    times = build_times(config, network, delays, learners, stream, untrained, trace)
    return Setup(
        config=config if untrained is not None else _stored(config, models, learners),
        stream=stream,
        network=network,
        models=models,
        clock=times.clock,
        schedule=times.schedule,
        limits=Limits.of(config, models[0].threads),
        goals=[
            Goal(task.evaluation.monitor, task.evaluation.target) for task in config.tasks.values()
        ],
        shards=shards,
        notes=[
            note if len(models) == 1 else f"task {name}: {note}"
            for name, model in zip(names, models, strict=True)
            for note in model.notes
        ]
        + implausible(config, network),
        tasks=names,
        titled=bool(config.task),
        handler=times.handler,
    )


def _check(config: Config, supplied: GivenObjects, shards: Shards) -> None:
    """Refuse several processes, and objects of one model in runs with tables of tasks."""
    if shards.count > 1:
        raise ConfigError(
            f"torchrun has started {shards.count} processes, but algorithm "
            f'"{config.named("algorithm")}" with schedule "{config.named("schedule")}" needs one. '
            'Start it without torchrun, or choose schedule "rounds".'
        )
    objects = (
        ("model", supplied.model),
        ("data", supplied.data),
        ("split", supplied.split),
        ("augment", supplied.augment),
        ("trainer", supplied.trainer),
    )
    for name, thing in objects:
        if thing is not None and config.task:
            raise ConfigError(
                f"{name}=... conflicts with the tables of tasks in the configuration: name it in "
                'their tables, as "module:name".'
            )


def _build_model(
    task: Config,
    network: Network,
    objects: GivenObjects,
    loaded: Loaded,
    stream: Stream,
    task_stream: Stream,
) -> TrainedModel:
    schedule = task.schedule
    at_once = schedule.active or task.training.clients_per_round or network.clients
    return build_model_of(
        task,
        network,
        Workload.of(task, at_once, schedule.merged),
        objects,
        loaded,
        split_stream=stream.child("split"),
        stream=task_stream,
    )


def _learner(
    name: str,
    task: Config,
    model: Model,
    network: Network,
    seconds: RequestSeconds,
    stream: Stream,
    run_stream: Stream,
    traffic: Traffic,
    *,
    departures: bool,
) -> TaskLearner:
    rule, star = task.rule, np.broadcast_to(np.int64(0), network.clients)
    submodels = RequestSubmodels(
        task.used_assigner, model.structure.whole, network.clients, stream, seconds, run_stream
    )
    submodels.check()
    trained = model if isinstance(model, TrainedModel) else None
    local = evaluation = None
    if trained is not None:
        padding = task.run.padding
        if submodels.of_round(np.zeros(1, dtype=np.int64), 0) is not None:
            padding = model.structure.padding(padding)
        local = LocalTraining(
            trained.executor,
            trained.steps,
            padding or 0.0,
            compression=sent_changes(task, stream),
        )
        tested = task.used_assigner.tested(model.structure.neurons)
        whole = None if tested is None else tested.of(np.zeros(1, dtype=np.int64))
        evaluation = trained.evaluation(whole)
    return TaskLearner(
        Server(
            rule,
            task.uplink,
            Weights(star, model.sample_weights(task.training.weighting)),
            make_states(
                "memory" if trained is None else task.run.client_states,
                task.client_vectors,
                model.spec.size,
                network.clients,
                processes=1,
            ),
            None if trained is None else trained.start,
            task.network.pilot_symbols or 0,
        ),
        local,
        submodels,
        evaluation,
        stream,
        traffic,
        gives_up=departures or task.training.cutoff_seconds is not None,
        lr_share=unchanged if trained is None else task.lr_schedule.shares(task.training.rounds),
        spread_updates=task.schedule.measured,
        by_version=task.schedule.by_version,
        name=name,
    )


def _stored(config: Config, learned: list[Model], learners: list[TaskLearner]) -> Config:
    """The settings to store, with each task's resolved executor and storage of client state."""
    models = [model for model in learned if isinstance(model, TrainedModel)]
    first, kinds = models[0].computing, {learner.server.states.kind for learner in learners}
    # If tasks differ, "auto" is stored: it depends only on the sizes of their states.
    run: dict[str, Any] = {"client_states": kinds.pop()} if len(kinds) == 1 else {}
    if not config.task:
        return config.with_run(run | first.settings())
    by_task = {
        table["name"]: {
            key: value
            for key, value in model.computing.settings().items()
            if key not in ("device", "threads")
        }
        for table, model in zip(config.task, models, strict=True)
    }
    return config.with_run(run | {"device": first.device, "threads": first.threads}, by_task)
