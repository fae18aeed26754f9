"""When things happen in a run of several tasks: its schedule and work on one clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.config import Config
from wirelessfl.schedules import Clock, Scope
from wirelessfl.schedules.events import Scheduler
from wirelessfl.setup.step_costs import StepCost
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.delays import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    Elements,
    ShiftedExponential,
    Wireless,
    client_speeds,
)
from wirelessfl.tasks.model import TaskModel
from wirelessfl.tasks.records import Records
from wirelessfl.tasks.requests import Requests
from wirelessfl.tasks.rounds import TaskRounds, TaskRoundSettings
from wirelessfl.tasks.transmissions import GroupUploads, Transmissions, busy_at_once


@dataclass(frozen=True)
class Times:
    """What drives several tasks, whether their models train or do not."""

    clock: Clock
    schedule: Scheduler
    regime: Asynchronous | TaskRounds


def build_times(
    config: Config,
    network: Network,
    elements: Sequence[Elements],
    models: Sequence[TaskModel],
    stream: Stream,
    *,
    step_costs: Sequence[StepCost | None] | None = None,
    records: Records | None = None,
) -> Times:
    """Schedule and work of a run.

    Args:
        config: the run's settings.
        network: cells and clients.
        elements: [tasks], numbers that cross the air for a whole model.
        models: of each task.
        stream: the run's.
        step_costs: [tasks], of a step of each model where it is counted; None: of none.
        records: of what clients do, and of merges; rows are not asked for by the clock then. None:
            none.
    """
    clock, settings, tasks = Clock(), config.network, list(config.tasks.values())
    schedule, every = config.choices.schedule, config.evaluation.eval_every
    ticks = config.evaluation.eval_seconds is not None and records is None
    uploads = build_group_uploads(config, network, stream)
    busy = None
    if uploads is not None and schedule.work == "requests":
        out = [task.choices.schedule.active or 0 for task in tasks]
        busy = busy_at_once(out, network.clients, settings.busy_clients)
    scheduler = schedule.scheduler(
        [task.choices.schedule for task in tasks],
        Scope(
            [task.training.rounds for task in tasks],
            every or (None if ticks else schedule.report_every),
            ticks,
            senders=busy,
        ),
    )
    delays = build_delays(config, network, elements, stream, step_costs)
    if schedule.work == "requests":
        requests = Requests(
            clock,
            delays,
            network.clients,
            stream.child("requests"),
            busy_clients=settings.busy_clients,
            drop_out=settings.drop_out,
            transmissions=None if uploads is None else Transmissions(clock, uploads),
            records=records,
        )
        return Times(clock, scheduler, Asynchronous(models, requests, records))
    available = round(settings.availability * network.clients)
    shares = _shares([task.training.clients_per_round for task in tasks], available)
    rule = config.choices.assignment
    assert rule is not None, "rounds of tasks have one"
    regime = TaskRounds(
        models,
        clock,
        delays,
        rule.begin(network.clients, len(tasks), stream.child("assignment")),
        TaskRoundSettings(
            network.clients,
            available,
            tuple(shares),
            schedule.awaited,
            settings.drop_out,
        ),
        stream.child("requests"),
        records,
        uploads,
    )
    return Times(clock, scheduler, regime)


def _shares(given: Sequence[int | None], available: int) -> list[int]:
    """Clients of each task in a round: those given, and the rest evenly among the others."""
    left = available - sum(share or 0 for share in given)
    open_ = [place for place, share in enumerate(given) if share is None]
    shares = [share or 0 for share in given]
    if open_:
        dealt = allocate_requests([1.0] * len(open_), left, floor=1).value
        assert dealt is not None, "checked with the configuration"
        for place, count in zip(open_, dealt, strict=True):
            shares[place] = int(count)
    return shares


def build_delays(
    config: Config,
    network: Network,
    elements: Sequence[Elements],
    stream: Stream,
    step_costs: Sequence[StepCost | None] | None = None,
) -> Delays:
    """How long trainings take.

    Args:
        config: the run's settings; a task's table may say what a step of its own model costs.
        network: cells and clients, and what a step costs otherwise.
        elements: [tasks], numbers that cross the air for a whole model.
        stream: the run's.
        step_costs: [tasks], of a step of each model where it is counted; None: of none.
    """
    tasks = list(config.tasks.values())
    steps = [task.training.local_steps for task in tasks]
    if config.network.delays == "shifted-exponential":
        floors = [task.training.local_steps * _beta(task) for task in tasks]
        speeds = client_speeds(network.clients, stream.child("client speeds"))
        return ShiftedExponential(floors, speeds, stream.child("durations"))
    costs = step_costs or [None] * len(tasks)
    seconds = [
        _step_seconds(table, network, cost)
        for table, cost in zip(config.task or ({},), costs, strict=True)
    ]
    uplink, down = config.choices.uplink, config.network.downlink_mbps
    rate = 1e6 * down if down else uplink.downlink_bps
    return Wireless(network, uplink, steps, seconds, list(elements), rate, stream.child("uploads"))


def build_group_uploads(config: Config, network: Network, stream: Stream) -> GroupUploads | None:
    """Uploads of clients that send at once; None where each uploads when it is ready."""
    uplink = config.choices.uplink
    if uplink.gives == "each":
        return None
    streams = [task_stream(config, name, stream) for name in config.tasks]
    return GroupUploads.of(network, uplink, streams)


def task_stream(config: Config, name: str, stream: Stream) -> Stream:
    """The stream of a task: without tables, that of a run of one model, to the last stream."""
    return stream.child("task", name) if config.task else stream


def _step_seconds(table: Mapping[str, Any], network: Network, cost: StepCost | None) -> FloatArray:
    """[clients], seconds of a step of a task: the network's, unless its table has its own."""
    if cost is not None:
        return np.asarray(cost.cycles / network.cpu_hz)
    if table.get("step_seconds") is not None:
        return np.full(network.clients, float(table["step_seconds"]))
    cycles = table.get("cycles_per_step", network.cycles_per_step)
    return np.asarray(cycles / network.cpu_hz)


def _beta(task: Config) -> float:
    """Least seconds of a step on a normal client."""
    if task.network.step_seconds is not None:
        return task.network.step_seconds
    return task.network.delay_scale * PUBLISHED_STEP_SECONDS[task.data.dataset]
