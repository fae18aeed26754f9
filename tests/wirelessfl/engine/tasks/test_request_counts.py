"""Requests and returned updates are counted per task; byte counts are derived from them."""

from collections import Counter

from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent
from wirelessfl.air.delays import Delays
from wirelessfl.engine.events import Ask, Cancel, Deadline, Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.runs.timeline import Timeline


class Listed(Delays):
    """Durations that depend on the request number only."""

    def seconds(self, task, client, number):
        return 1.0 + number * 7 % 5


class Watched(Silent):
    """Records the requests that are issued, with their tasks, that return, and are dropped."""

    def __init__(self):
        self.issued, self.back, self.dropped = [], [], []

    def issue(self, request):
        self.issued.append((request.task, request.number))

    def came_back(self, number):
        self.back.append(number)

    def drop(self, number):
        self.dropped.append(number)


def handler_of(tasks, clock, records=None):
    models = [Watched() for _ in range(tasks)]
    requests = Requests(clock, Listed(), 6, Stream(3), tasks=tasks, records=records)
    return Asynchronous(models, requests, records), models


def test_requests_and_updates_are_counted_per_task():
    """Three tasks have different R and b, and the first ends before the others."""
    clock, spans = Clock(), []
    handler, models = handler_of(3, clock, Records(spans))
    schedule = BufferedScheduler(
        [TaskPlan(5, 2, 3), TaskPlan(2, 1, 99), TaskPlan(3, 3, 99)], report_every=None
    )
    clock.after(0.0, Started())
    clock.at(30.0, Deadline())
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
    assert schedule.tasks[0].ended
    for task, model in enumerate(models):
        assert {own for own, _ in model.issued} == {task}
        assert handler.ledger.issued[task] == len(model.issued)
        done = [span for span in spans if span.task == task and span.how == "done"]
        assert handler.ledger.returned[task] == len(done) == len(model.back) > 5
        assert set(model.back) <= {number for _, number in model.issued}
    assert len({*handler.ledger.issued}) == len({*handler.ledger.returned}) == 3


def test_stale_updates_are_sent_and_dropped():
    """An update that is too old has returned, its span says so, and the merges have none."""
    clock, records = Clock(), Records([])
    handler, (model,) = handler_of(1, clock, records)
    schedule = BufferedScheduler([TaskPlan(9, 1, 40)], max_staleness=6, report_every=None)
    clock.after(0.0, Started())
    clock.at(20.0, Deadline())
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
    how = Counter(span.how for span in records.spans)
    assert how["too stale"] == schedule.tasks[0].too_stale == len(model.dropped) > 3
    assert how["done"] == len(records.merges) > 10
    assert handler.ledger.returned == [how["done"] + how["too stale"]]
    assert set(model.dropped) < set(model.back)
    assert max(merge.staleness[0] for merge in records.merges) == 6
    (line,) = Timeline(["digits"], 6, 20.0, records.spans, records.merges).summary()
    assert (line["done"], line["too stale"]) == (how["done"], how["too stale"])


def test_requests_of_a_task_that_ends_at_the_same_time_are_not_sent():
    handler, models = handler_of(2, Clock())
    for decision in (Ask(0, 2), Ask(1, 1), Cancel(0)):
        handler.carry_out(decision)
    handler.settle()
    assert handler.ledger.issued == [0, 1]
    assert [own.issued for own in models] == [[], [(1, 0)]]
