"""Decisions of the schedules of several tasks: requests and groups when a task ends, and rows."""

import json

import pytest

from wirelessfl.engine.events import (
    Aggregate,
    Arrived,
    Ask,
    Cancel,
    Drop,
    Measure,
    Measured,
    Reached,
    Ready,
    Report,
    Returned,
    Save,
    Started,
    Stop,
    Transmit,
)
from wirelessfl.engine.schedules import (
    Buffered,
    BufferedScheduler,
    Scope,
    SimultaneousScheduler,
    TaskPlan,
)


def scheduler(*requests, buffer=99, **options):
    """A schedule whose tasks have these requests, and buffers that never fill."""
    plans = [TaskPlan(count, buffer, 99, scales=False) for count in requests]
    return BufferedScheduler(plans, report_every=None, **options)


def measured(schedule, spread):
    """Let an update of task 0 arrive that triggers a measurement with this result."""
    schedule.decide(Returned(0, 0, 0))
    schedule.decide(Measured(spread))


# The other tasks share 12 requests in proportion to their spread, or to their requests as long as
# the spread of one of them is unknown. They ask in order, up to their share and the free budget.
ENDS = {
    "no spread": ((6, 2, 4), None, (4, 8), (2, 4)),
    "equal spread": ((6, 2, 4), (9.0, 1.0, 1.0), (6, 6), (4, 2)),
    "own spread is irrelevant": ((6, 2, 4), (None, 1.0, 3.0), (3, 9), (1, 5)),
    "an unknown spread": ((6, 2, 4), (1.0, None, 9.0), (4, 8), (2, 4)),
    "a task with too many active requests": ((2, 8, 2), (1.0, 1.0, 3.0), (3, 9), (0, 2)),
}


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("case", ENDS)
def test_the_requests_of_an_ended_task_are_shared_by_the_others(case, restored):
    requests, spread, shares, asks = ENDS[case]
    options = {"period": 0.01} if spread else {}  # measured after every update
    schedule = scheduler(*requests, **options)
    schedule.decide(Started())
    if spread:
        measured(schedule, spread)
    if restored:
        other = scheduler(*requests, **options)
        other.restore(json.loads(json.dumps(schedule.snapshot())))
        schedule = other
    expected = [Ask(task, count) for task, count in enumerate(asks, start=1) if count]
    assert schedule.decide(Reached(0)) == [Cancel(0), *expected, Save()]
    assert tuple(task.requests for task in schedule.tasks[1:]) == shares
    assert schedule.active == sum(task.active for task in schedule.tasks) == 12


def test_clients_that_hold_enough_updates_transmit_when_a_task_ends():
    """At least 7 requests per task leave 9 to task 3, and a buffer of 9: 19 clients are 2 groups.

    Its buffer was 20 of 20 requests.
    """
    plans = [TaskPlan(1, 1, 99, scales=False)] * 3 + [TaskPlan(20, 20, 99)]
    schedule = BufferedScheduler(plans, floor=7, gathering=23, report_every=None)
    schedule.decide(Started())
    assert [schedule.decide(Ready(number, 3)) for number in range(100, 119)] == [[]] * 19
    sent = [what for what in schedule.decide(Reached(0)) if isinstance(what, Transmit)]
    assert sent == [Transmit(3, [*range(100, 109)]), Transmit(3, [*range(109, 118)])]
    assert [(task.requests, task.buffer) for task in schedule.tasks[1:]] == [(7, 1), (7, 1), (9, 9)]
    assert schedule.tasks[3].held == [118]


def test_rows_have_the_staleness_of_all_merges_since_the_previous_row():
    """A row covers two merges; the maximum is in the second, in the first, and in both."""
    merges = [(0, 0), (1, 0), (0, 2), (1, 1), (1, 1), (0, 1)]
    schedule = BufferedScheduler([TaskPlan(4, 2, 99)], report_every=2)
    schedule.decide(Started())
    rows = []
    for version, stale in enumerate(merges):
        for late in stale:
            decided = schedule.decide(Returned(0, 0, version - late))
        rows += [what.status for what in decided if isinstance(what, Report)]
    pairs = [merges[first] + merges[first + 1] for first in range(0, len(merges), 2)]
    assert [row["staleness_max"] for row in rows] == [max(pair) for pair in pairs]
    assert [row["staleness_mean"] for row in rows] == [sum(pair) / 4 for pair in pairs]


@pytest.mark.parametrize("restored", [False, True])
def test_stale_updates_are_dropped_and_replaced(restored):
    """R = 4, b = 2, at most one merge old: request 3 of version 0 arrives after two merges."""
    schedule = BufferedScheduler([TaskPlan(4, 2, 99)], max_staleness=1, report_every=1)
    schedule.decide(Started())
    assert schedule.decide(Returned(0, 0, 0)) == [Ask(0, 1)]
    merged = [schedule.decide(Returned(number, 0, 0)) for number in (1, 2, 4)]
    assert [decided[0] for decided in (merged[0], merged[2])] == [
        Aggregate(0, [0, 1], [0, 0]),
        Aggregate(0, [2, 4], [1, 1]),
    ]
    if restored:
        state = json.loads(json.dumps(schedule.snapshot()))
        schedule = BufferedScheduler([TaskPlan(4, 2, 99)], max_staleness=1, report_every=1)
        schedule.restore(state)
    assert schedule.decide(Returned(3, 0, 0)) == [Drop(0, 3), Ask(0, 1)]
    assert schedule.decide(Returned(5, 0, 1)) == [Ask(0, 1)]
    decided = schedule.decide(Returned(6, 0, 2))
    assert decided[0] == Aggregate(0, [5, 6], [1, 0])
    (status,) = (what.status for what in decided if isinstance(what, Report))
    assert (status["too_stale"], status["updates"], status["staleness_max"]) == (1, 7, 1)
    assert (status["requests"], status["lost"]) == (4, 0)


def test_a_dropped_update_counts_towards_the_next_reallocation():
    """The update that completes a period is dropped, and the measurement follows."""
    plans = [TaskPlan(2, 1, 99), TaskPlan(2, 1, 99)]
    schedule = BufferedScheduler(plans, period=3 / 8, max_staleness=0, report_every=None)
    schedule.decide(Started())
    schedule.decide(Returned(0, 0, 0))
    schedule.decide(Returned(1, 1, 0))
    assert schedule.decide(Returned(2, 0, 0)) == [Drop(0, 2), Measure((0, 1))]
    assert schedule.decide(Measured((1.0, 1.0))) == [Ask(0, 1)]


@pytest.mark.parametrize(
    ("every", "rows"), [(None, [(2, 0), (5, 1)]), (2, [(2, 0), (2, 1), (4, 1), (5, 1)])]
)
def test_the_last_round_of_a_task_has_a_row(every, rows):
    """Tasks of 2 and 5 rounds, with a row every 2 rounds or none."""
    schedule, found, decided = SimultaneousScheduler([2, 5], report_every=every), [], []
    schedule.decide(Started())
    for number in range(5):
        decided = schedule.decide(Arrived(number))
        found += [(what.round, what.task) for what in decided if isinstance(what, Report)]
    assert found == rows
    assert decided[-1] == Stop()


@pytest.mark.parametrize(
    ("settings", "period", "buffers"),
    [
        ({}, 0, (4, 2)),
        ({"option": "D", "period": 0.5}, 12, (4, 2)),  # times 2 tasks and 12 requests
        ({"option": "D", "fixed_buffer": True}, 18, (2, 4)),
        ({"fixed_buffer": True, "floor": 3}, 0, (2, 4)),
    ],
)
def test_a_scheduler_has_the_settings_of_its_tasks_and_run(settings, period, buffers):
    """Buffers for 8 requests of task 0, and 4 of task 1: scaled with the requests, or fixed."""
    tasks = [Buffered(4, 2, **settings), Buffered(8, 4, **settings)]
    made = tasks[0].scheduler(tasks, Scope([5, 7], every=3, ticks=True, senders=9))
    assert [(p.requests, p.buffer, p.versions) for p in made.plans] == [(4, 2, 5), (8, 4, 7)]
    assert made.period == period
    assert (made.plans[0].buffer_for(8), made.plans[1].buffer_for(4)) == buffers
    assert made.floor == settings.get("floor", 8)
    assert (made.report_every, made.ticks, made.gathering) == (3, True, 9)
    assert made.answers_at_merge
    alone = tasks[0].scheduler(tasks, Scope([5, 7], every=None))
    assert (alone.report_every, alone.ticks, alone.gathering) == (None, False, None)
    assert not alone.answers_at_merge


def test_asynchronous_cells_wait_for_the_merge_of_their_updates():
    """Each of five cells has a request; 20 rounds of all cells are 34 merges of three cells."""
    choice = Buffered(buffer=3, option="D")
    assert choice.default_rounds(20, 5) == 34
    made = choice.scheduler([choice], Scope([9], every=2, ticks=True, cells=5))
    assert made.plans == (TaskPlan(5, 3, 9, scales=False),)
    assert (made.answers_at_merge, made.gathering, made.period) == (True, None, 0)
    assert (made.report_every, made.ticks) == (2, True)
