"""Simulated runs of the buffered schedule, without training."""

import numpy as np

from channels import Load
from channels.streams import Stream
from wirelessfl.air.delays import Delays
from wirelessfl.air.traffic import Traffic
from wirelessfl.engine.events import Deadline, Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.models.submodels import ParamSpec


def traffic_of(elements, down=None):
    """Traffic of a model of one parameter that sends and receives this many vectors."""
    return Traffic(elements, elements if down is None else down, ParamSpec({"one": (1,)}))


class Silent:
    """The learner of a task that does nothing; simultaneous updates have ``elements`` values."""

    traffic = traffic_of(1)

    def __init__(self, elements=0):
        self.elements = elements

    def nothing(self, *args, **options):
        """Any other call of a handler."""

    issue = came_back = gave_up = drop = merge_updates = end = spread = train_round = nothing

    def share(self, client):
        return 1.0

    def shares(self, clients):
        return np.ones(len(clients))

    def air_load(self, requests):
        return Load(elements=np.full(len(requests), self.elements))

    def air_load_of_round(self, clients, chosen):
        return Load(elements=np.full(len(clients), self.elements))


class Listed(Delays):
    """Durations listed by request number; beyond the list, ``rest(task, number)``."""

    def __init__(self, *seconds, rest=None):
        self.listed, self.rest = seconds, rest

    def seconds(self, task, client, number):
        return self.listed[number] if number < len(self.listed) else self.rest(task, number)


class Watched(Silent):
    """Checks staleness, the number of merges between a request and the merge of its update."""

    def __init__(self, spreads=()):
        self.merges, self.at_issue, self.used = 0, {}, []
        self.spreads = list(spreads)

    def issue(self, request):
        self.at_issue[request.number] = self.merges

    def merge_updates(self, requests, staleness, *, draw=None):
        assert [self.merges - self.at_issue[n] for n in requests] == list(staleness)
        self.used += requests
        self.merges += 1

    def spread(self):
        return self.spreads[0] if self.spreads else None


def simulated(plans, delays, seconds, *, clients=10, models=None, check=None, events=(), **options):
    """Simulate until ``seconds``; return the schedule, the handler, spans and merges."""
    choose = options.pop("choose", None)
    requests_options = {
        name: options.pop(name) for name in ("busy_clients", "drop_out") if name in options
    }
    clock, spans, merges = Clock(), [], []
    schedule = BufferedScheduler([TaskPlan(*plan) for plan in plans], report_every=None, **options)
    models = models or [Watched() for _ in plans]
    requests = Requests(
        clock,
        delays,
        clients,
        Stream(3),
        tasks=len(plans),
        choose=choose,
        records=Records(spans, merges),
        **requests_options,
    )
    handler = Asynchronous(models, requests, requests.records)
    simulate_until(seconds, clock, schedule, handler, check=check, events=events)
    return schedule, handler, spans, merges


def simulate_until(seconds, clock, schedule, handler, *, check=None, events=()):
    """Simulate with ``events`` at given times; ``check(schedule, handler)`` follows every event."""
    if check is not None:
        settle = handler.settle

        def checked():
            settle()
            check(schedule, handler)

        handler.settle = checked
    clock.after(0.0, Started())
    clock.at(seconds, Deadline())
    for at, event in events:
        clock.at(at, event)
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
