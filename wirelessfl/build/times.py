"""When things happen in a run of several tasks: its schedule and regime on one clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from channels import Network
from channels.streams import Stream
from solvers import allocate_requests
from wirelessfl.algorithms.sync_st import SyncST
from wirelessfl.algorithms.task_rule import BufferedRule
from wirelessfl.build.tasks import build_delays
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.schedules import Buffered, Clock, Simultaneous, TaskPlan
from wirelessfl.schedules.base import Deadline, Started
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.model import TaskModel
from wirelessfl.tasks.records import Records
from wirelessfl.tasks.requests import Requests
from wirelessfl.tasks.rounds import TaskRounds, TaskRoundSettings

EVAL_EVERY = 20
"""Merges of a task between rows where updates come one by one, unless the settings say."""


@dataclass(frozen=True)
class Times:
    """What drives several tasks, whether their models train or do not."""

    clock: Clock
    schedule: Buffered | Simultaneous
    regime: Asynchronous | TaskRounds

    def start(self, limit: float | None) -> None:
        """Begin, or go on behind the last round; end after ``limit`` seconds."""
        self.clock.after(0.0, Started())
        if limit is not None:
            self.clock.at(max(limit, self.clock.now), Deadline())


def make_times(
    config: Config,
    tasks: dict[str, Config],
    network: Network,
    elements: list[int],
    models: Sequence[TaskModel],
    stream: Stream,
    *,
    records: Records | None = None,
) -> Times:
    """Schedule and regime of a run.

    Args:
        config: the run's settings.
        tasks: by name, what each is trained with.
        network: cells and clients.
        elements: [tasks], numbers in an update.
        models: of each task.
        stream: the run's.
        records: of what clients do, and of merges; None: nobody wants them.

    Raises:
        ConfigError: the algorithm's class does not say what its timing needs.
    """
    clock, settings = Clock(), config.network
    delays = build_delays(config, tasks, network, elements, stream)
    every, ticks = config.evaluation.eval_every, config.evaluation.eval_seconds is not None
    rounds = [own.training.rounds for own in tasks.values()]
    rules = [own.build_algorithm() for own in tasks.values()]
    first = rules[0]
    if isinstance(first, BufferedRule):
        plans = [
            TaskPlan(rule.requests, rule.buffer, versions, rule.buffer_scales)
            for rule, versions in zip(rules, rounds, strict=True)
            if isinstance(rule, BufferedRule)
        ]
        buffered = Buffered(
            plans,
            period=first.reallocation.period,
            floor=first.reallocation.floor,
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
            records=records,
        )
        return Times(clock, buffered, Asynchronous(models, requests, records))
    if not isinstance(first, SyncST):
        raise ConfigError(
            f"algorithm {first.name!r} has the timing {first.timing!r}: derive it from "
            "wirelessfl.algorithms.task_rule.BufferedRule, or from wirelessfl.algorithms.sync_st."
            "SyncST."
        )
    available = round(settings.availability * network.clients)
    regime = TaskRounds(
        models,
        clock,
        delays,
        first.assignment(network.clients, len(tasks), stream.child("assignment")),
        TaskRoundSettings(
            network.clients,
            available,
            tuple(_shares([own.training.clients_per_round for own in tasks.values()], available)),
            first.first,
            settings.drop_out,
        ),
        stream.child("requests"),
        records,
    )
    report_every = every or (None if ticks else 1)
    return Times(clock, Simultaneous(rounds, report_every=report_every, ticks=ticks), regime)


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
