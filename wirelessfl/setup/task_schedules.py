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
from wirelessfl.schedules import BufferedScheduler, Clock, SimultaneousScheduler, TaskPlan
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.delays import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    ShiftedExponential,
    Wireless,
    client_speeds,
)
from wirelessfl.tasks.model import TaskModel
from wirelessfl.tasks.records import Records
from wirelessfl.tasks.requests import Requests
from wirelessfl.tasks.rounds import TaskRounds, TaskRoundSettings
from wirelessfl.tasks.transmissions import GroupUploads, Transmissions, busy_at_once

EVAL_EVERY = 20
"""Merges of a task between rows where updates come one by one, unless the settings say."""


@dataclass(frozen=True)
class Times:
    """What drives several tasks, whether their models train or do not."""

    clock: Clock
    schedule: BufferedScheduler | SimultaneousScheduler
    regime: Asynchronous | TaskRounds


def build_times(
    config: Config,
    network: Network,
    elements: Sequence[int],
    models: Sequence[TaskModel],
    stream: Stream,
    *,
    records: Records | None = None,
) -> Times:
    """Schedule and work of a run.

    Args:
        config: the run's settings.
        network: cells and clients.
        elements: [tasks], numbers in an update.
        models: of each task.
        stream: the run's.
        records: of what clients do, and of merges; rows are not asked for by the clock then. None:
            none.
    """
    clock, settings, tasks = Clock(), config.network, list(config.tasks.values())
    delays = build_delays(config, network, elements, stream)
    uploads = build_group_uploads(config, network, stream)
    every = config.evaluation.eval_every
    ticks = config.evaluation.eval_seconds is not None and records is None
    rounds = [task.training.rounds for task in tasks]
    timings = [task.choices.algorithm.timing for task in tasks]
    first = timings[0].buffering
    if first is not None:
        plans = [
            TaskPlan(buffering.requests, buffering.buffer, versions, buffering.scales)
            for buffering, versions in zip((t.buffering for t in timings), rounds, strict=True)
            if buffering is not None
        ]
        out = [plan.requests for plan in plans]
        busy = busy_at_once(out, network.clients, settings.busy_clients)
        buffered = BufferedScheduler(
            plans,
            period=None if first.reallocation is None else first.reallocation.period,
            floor=first.floor,
            gathering=None if uploads is None else busy,
            report_every=every or (None if ticks else EVAL_EVERY),
            ticks=ticks,
        )
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
        return Times(clock, buffered, Asynchronous(models, requests, records))
    common = timings[0].common_rounds
    assert common is not None, "else there are no tasks"
    available = round(settings.availability * network.clients)
    shares = _shares([task.training.clients_per_round for task in tasks], available)
    regime = TaskRounds(
        models,
        clock,
        delays,
        common.assignment(network.clients, len(tasks), stream.child("assignment")),
        TaskRoundSettings(
            network.clients, available, tuple(shares), common.first, settings.drop_out
        ),
        stream.child("requests"),
        records,
        uploads,
    )
    report_every = every or (None if ticks else 1)
    return Times(
        clock, SimultaneousScheduler(rounds, report_every=report_every, ticks=ticks), regime
    )


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
    config: Config, network: Network, elements: Sequence[int], stream: Stream
) -> Delays:
    """How long trainings take.

    Args:
        config: the run's settings; a task's table may say what a step of its own model costs.
        network: cells and clients, and what a step costs otherwise.
        elements: [tasks], numbers in an update.
        stream: the run's.
    """
    tasks = list(config.tasks.values())
    steps = [task.training.local_steps for task in tasks]
    if config.network.delays == "shifted-exponential":
        floors = [task.training.local_steps * _beta(task) for task in tasks]
        speeds = client_speeds(network.clients, stream.child("client speeds"))
        return ShiftedExponential(floors, speeds, stream.child("durations"))
    seconds = [_step_seconds(table, network) for table in config.task or ({},)]
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


def _step_seconds(table: Mapping[str, Any], network: Network) -> FloatArray:
    """[clients], seconds of a step of a task: the network's, unless its table has its own."""
    if table.get("step_seconds") is not None:
        return np.full(network.clients, float(table["step_seconds"]))
    cycles = table.get("cycles_per_step", network.cycles_per_step)
    return np.asarray(cycles / network.cpu_hz)


def _beta(task: Config) -> float:
    """Least seconds of a step on a normal client."""
    if task.network.step_seconds is not None:
        return task.network.step_seconds
    return task.network.delay_scale * PUBLISHED_STEP_SECONDS[task.data.dataset]
