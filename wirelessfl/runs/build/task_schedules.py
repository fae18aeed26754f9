"""Builds schedule, latency model and handler of a run of tasks, with a common clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from channels import Network
from channels.arrays import FloatArray
from channels.devices import STEP_CYCLES
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.air.delays import Delays, DelayScene, StepSeconds, TaskCosts
from wirelessfl.air.links import downlink_rates
from wirelessfl.air.traffic import Traffic
from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.engine.events import Scheduler
from wirelessfl.engine.schedules import Clock, Scope
from wirelessfl.engine.sessions.attendance import Churn
from wirelessfl.engine.sessions.traces import Trace
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.clients import busy_at_once
from wirelessfl.engine.tasks.handler import TaskHandler
from wirelessfl.engine.tasks.learner import TaskLearner
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.engine.tasks.round_times import TaskRoundSettings
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.engine.tasks.uploads import GroupUploads, Transmissions
from wirelessfl.runs.build.planners import Untrained
from wirelessfl.runs.build.structure import DeviceStep, StepCost
from wirelessfl.training.steps import StepCounts


@dataclass(frozen=True)
class Times:
    """Clock, schedule and handler of a run of tasks."""

    clock: Clock
    schedule: Scheduler
    handler: TaskHandler


def build_times(
    config: Config,
    network: Network,
    delays: Delays,
    learners: Sequence[TaskLearner],
    stream: Stream,
    untrained: Untrained | None = None,
    trace: Trace | None = None,
) -> Times:
    """Build clock, schedule and handler of a run of tasks.

    Args:
        config: the run's settings.
        network: cells and clients.
        delays: latency model of the requests, see ``build_delays``.
        learners: the learner of each task.
        stream: the run's randomness.
        untrained: how a run is built that is not trained; None to train it.
        trace: when clients are available; None for always.
    """
    clock, settings, tasks = Clock(), config.network, list(config.tasks.values())
    schedule, every = config.schedule, config.evaluation.eval_every
    ticks = config.evaluation.eval_seconds is not None
    rounds, records = [task.training.rounds for task in tasks], None
    if untrained is not None:  # a row for each merge
        every, ticks, records = 1, False, untrained.records
        rounds = [untrained.rounds or count for count in rounds]
    asks = schedule.work == "requests"
    uploads = build_group_uploads(config, network, stream) if asks else None
    busy = None
    if uploads is not None:
        out = [task.schedule.active or 0 for task in tasks]
        busy = busy_at_once(out, network.clients, settings.busy_clients)
    scheduler = schedule.scheduler(
        [task.schedule for task in tasks],
        Scope(
            rounds,
            every or (None if ticks else schedule.report_every),
            ticks,
            senders=busy,
        ),
    )
    availability = None
    if trace is not None:
        availability = Churn(trace, config.training.availability_unit, rounds[0], clock)
    if asks:
        requests = Requests(
            clock,
            delays,
            network.clients,
            stream.child("requests"),
            tasks=len(tasks),
            busy_clients=settings.busy_clients,
            drop_out=settings.drop_out,
            cutoff=config.training.cutoff_seconds,
            transmissions=None if uploads is None else Transmissions(clock, uploads),
            availability=availability,
            traffic=[learner.traffic for learner in learners],
            records=records,
        )
        return Times(clock, scheduler, Asynchronous(learners, requests, records))
    rule = config.assignment
    assert rule is not None, "rounds of tasks have one"
    available = round(settings.availability * network.clients)
    handler = TaskRounds(
        learners,
        clock,
        delays,
        rule.begin(network.clients, len(tasks), stream.child("assignment")),
        TaskRoundSettings(
            network.clients,
            available,
            tuple(_shares([task.training.clients_per_round for task in tasks], available)),
            schedule.awaited,
            settings.drop_out,
            config.training.cutoff_seconds,
        ),
        stream.child("requests"),
        records,
        build_group_uploads(config, network, stream),
    )
    return Times(clock, scheduler, handler)


def _shares(numbers: Sequence[int | None], available: int) -> list[int]:
    """Clients per task in a round; tasks without a given number divide the rest evenly."""
    left = available - sum(share or 0 for share in numbers)
    open_ = [task for task, share in enumerate(numbers) if share is None]
    shares = [share or 0 for share in numbers]
    if open_:
        dealt = allocate_requests([1.0] * len(open_), left, floor=1).value
        assert dealt is not None, "checked with the configuration"
        for task, count in zip(open_, dealt, strict=True):
            shares[task] = int(count)
    return shares


def build_delays(
    config: Config,
    network: Network,
    traffic: Sequence[Traffic],
    stream: Stream,
    step_costs: Sequence[StepCost | DeviceStep | None],
    steps: Sequence[StepCounts],
) -> Delays:
    """Build the latency model of requests.

    Args:
        config: the run's settings; a task's table may override the cost of a step.
        network: cells and clients, with the default cost of a step.
        traffic: [tasks], bits of uploads and downloads.
        stream: the run's randomness.
        step_costs: [tasks], counted cost per step of each model; None if not counted.
        steps: [tasks], local steps of each client.

    Raises:
        ConfigError: single clients upload, and the network has interference.
    """
    delays, uplink = config.delays, config.uplink
    assert delays is not None
    if delays.radio and uplink.gives == "each":
        _check_undisturbed(network, config.schedule.title)
    down, tasks = config.network.downlink_mbps, config.tasks.values()
    rate = downlink_rates(network, uplink, down, alone=True)
    costs = [
        TaskCosts(
            task.dataset.name,
            count,
            task.network.step_seconds,
            _step_seconds(table, network, cost),
            crossing,
        )
        for task, count, table, cost, crossing in zip(
            tasks,
            steps,
            config.task or ({},),
            step_costs,
            traffic,
            strict=True,
        )
    ]
    pilots = config.network.pilot_symbols or 0
    return delays.build(DelayScene(network, uplink, costs, rate, stream, pilots))


def build_group_uploads(config: Config, network: Network, stream: Stream) -> GroupUploads | None:
    """Build simultaneous uploads of groups; None if each client uploads as soon as it is ready.

    Args:
        config: the run's settings.
        network: channels and transmit powers.
        stream: the run's randomness.
    """
    uplink = config.uplink
    if uplink.gives == "each":
        return None
    streams = [task_stream(config, name, stream) for name in config.tasks]
    return GroupUploads.of(network, uplink, streams, config.network.pilot_symbols or 0)


def task_stream(config: Config, name: str, stream: Stream) -> Stream:
    """The random stream of a task; without tables of tasks, the run's stream."""
    return stream.child("task", name) if config.task else stream


def _check_undisturbed(network: Network, schedule: str) -> None:
    """Refuse interference, which is that of a block: uploads of single clients have none."""
    for name in ("interference", "interference_watts"):
        if getattr(network, name) is not None:
            raise ConfigError(
                f"the network has {name}, which conflicts with schedule {schedule!r}, whose "
                'uploads have no common block: choose schedule "rounds".'
            )


def _step_seconds(
    table: Mapping[str, Any], network: Network, cost: StepCost | DeviceStep | None
) -> FloatArray | StepSeconds:
    """Seconds per step of a task by client, from its counted cost, its table or the network."""
    if isinstance(cost, DeviceStep):
        devices = cost.on(network).devices
        assert devices is not None
        return StepSeconds(STEP_CYCLES, devices.clocks)
    if cost is not None:
        return StepSeconds(cost.cycles, network.cpu_hz)
    if table.get("step_seconds") is not None:
        return np.broadcast_to(float(table["step_seconds"]), network.clients)
    return StepSeconds(table.get("cycles_per_step", network.cycles_per_step), network.cpu_hz)
