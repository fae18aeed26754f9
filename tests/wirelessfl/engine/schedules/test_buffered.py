"""Buffered schedule and client queues, simulated without training."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Listed, Watched, simulated
from wirelessfl.air.delays import ShiftedExponential, client_speeds
from wirelessfl.engine.events import Deadline, Measured, Reached, Returned, Started, Tick
from wirelessfl.engine.schedules import BufferedScheduler, TaskPlan
from wirelessfl.theory import buffer_seconds


def test_a_schedule_by_hand():
    """Two requests, a buffer of two, and a slow client 1, whose second request waits in its queue.

    Spans, merges and staleness match the hand calculation.
    """
    delays = Listed(1.0, 2.5, 1.0, 1.5, 0.25, 9.0, 9.0)
    schedule, handler, spans, merges = simulated(
        [(2, 2, 99)], delays, 4.5, clients=2, choose=lambda number: [0, 1, 0, 1, 0, 0, 1][number]
    )
    # t=1: update 0 arrives; request 2 goes to client 0. t=2: update 2 arrives and is merged with 0;
    # request 3 goes to client 1, which works on request 1 until 2.5. t=2.5: update 1 arrives, one
    # merge old; request 4 goes to client 0. t=2.75: update 4 arrives and is merged with 1; request
    # 5 goes to client 0. t=4: update 3 arrives; its request was issued before the second merge.
    assert [(s.client, s.begin, s.end) for s in spans] == [
        (0, 0.0, 1.0),
        (0, 1.0, 2.0),
        (1, 0.0, 2.5),
        (0, 2.5, 2.75),
        (1, 2.5, 4.0),
    ]
    assert [(m.seconds, m.staleness) for m in merges] == [(2.0, (0, 0)), (2.75, (1, 0))]
    assert schedule.tasks[0].stale == [1]
    assert handler.ledger.merges == [2]


def test_clients_and_requests_of_an_ended_task_are_reassigned():
    """Task 0 ends at t=1. Client 0 starts its queued request of task 1, which gets all requests."""
    delays = Listed(2.0, 4.0, 3.0, 1.0, rest=lambda task, number: 50.0)
    clients = [0, 1, 0, 2]  # requests 0 and 1 of task 0, 2 of task 1, 3 at the end of task 0
    schedule, _, spans, _ = simulated(
        [(2, 1, 99), (1, 1, 99)],
        delays,
        10.0,
        clients=9,
        choose=lambda number: clients[number] if number < 4 else 3 + number % 6,
        events=[(1.0, Reached(0))],
    )
    assert [(s.task, s.client, s.begin, s.end, s.how) for s in spans][:2] == [
        (0, 0, 0.0, 1.0, "cancelled"),
        (0, 1, 0.0, 1.0, "cancelled"),
    ]
    own = [(s.client, s.begin, s.end) for s in spans if s.task == 1]
    assert (2, 1.0, 2.0) in own  # issued at the end of task 0
    assert (0, 1.0, 4.0) in own  # started when the client's work on task 0 was cancelled
    assert [task.requests for task in schedule.tasks if not task.ended] == [3]
    assert schedule.tasks[1].buffer == 3  # R / b is constant
    assert schedule.tasks[0].active == 0
    assert schedule.active == 3


def test_simultaneous_updates_arrive_in_the_order_of_their_requests():
    """With equal durations, updates arrive in the order in which the requests were issued."""
    _, _, spans, merges = simulated(
        [(4, 4, 3)], Listed(rest=lambda *_: 1.0), 9.0, choose=lambda number: number % 4
    )
    assert [(s.client, s.end) for s in spans] == [(c, t) for t in (1, 2, 3) for c in range(4)]
    assert [m.staleness for m in merges] == [(0,) * 4] * 3  # issued after all events at this time


plans = st.lists(
    st.tuples(st.integers(1, 12), st.integers(1, 6), st.integers(5, 40)), min_size=1, max_size=4
)


@given(
    plans,
    st.integers(1, 30),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([None, 1, 5]),
    st.integers(1, 6),
)
def test_invariants(plans, clients, dynamic, drop_out, busy, floor):
    """The budget is kept, queues and staleness are consistent, and time never decreases."""
    budget = sum(plan[0] for plan in plans)
    seen = [0.0]

    def check(schedule, handler):
        requests = handler.requests
        assert sum(task.active for task in schedule.tasks) == schedule.active <= budget
        assert schedule.active == len(requests.out)
        queued = [r for queue in requests.queues.values() for r in queue]
        assert sorted(r.number for r in queued) == sorted(requests.out)
        for client, queue in requests.queues.items():
            assert [r.number for r in queue] == sorted(r.number for r in queue)
            assert all(r.client == client for r in queue)
            assert [r.begun is None for r in queue] == [False] + [True] * (len(queue) - 1)
        if busy is not None:
            assert len(requests.queues) <= busy
        assert requests.clock.now >= seen[-1]
        seen.append(requests.clock.now)
        for number, task in enumerate(schedule.tasks):
            if not task.ended:
                assert task.active >= 1  # each task keeps its minimum
            else:
                assert all(r.task != number for r in requests.out.values())

    delays = ShiftedExponential([1.0] * len(plans), client_speeds(clients, Stream(1)), Stream(2))
    models = [Watched([1.0 + number]) for number in range(len(plans))]
    schedule, handler, spans, _ = simulated(
        plans,
        delays,
        60.0,
        clients=clients,
        models=models,
        check=check,
        period=0.3 if dynamic else None,
        floor=floor,
        drop_out=drop_out,
        busy_clients=busy,
    )
    for client in range(clients):  # works on one request at a time
        own = sorted((s.begin, s.end) for s in spans if s.client == client)
        assert all(one[1] <= two[0] for one, two in pairwise(own))
    done = sum(s.how == "done" for s in spans)
    lost = sum(s.how == "lost" for s in spans)
    assert done == schedule.updates == sum(handler.ledger.returned)
    assert lost == sum(task.lost for task in schedule.tasks)
    assert sum(handler.ledger.issued) == requests_issued(handler)
    for model, task in zip(models, schedule.tasks, strict=True):
        assert len(set(model.used)) == len(model.used)
        assert model.merges == task.version <= 40


def requests_issued(handler):
    return handler.requests.issued


def test_dynamic_allocation_is_reached_gradually():
    """Each update is replaced by 0 to 2 requests until R is proportional to sigma.

    R / b stays constant.
    """
    asked = []

    def check(schedule, handler):
        asked.append([task.active for task in schedule.tasks])

    models = [Watched([3.0]), Watched([1.0])]
    schedule, *_ = simulated(
        [(32, 2, 10**6), (32, 2, 10**6)],
        ShiftedExponential([1.0, 1.0], np.ones(500), Stream(2)),
        60.0,
        clients=500,
        models=models,
        check=check,
        period=0.75,
    )
    assert schedule.period == 96
    assert [task.requests for task in schedule.tasks] == [48, 16]
    assert [task.buffer for task in schedule.tasks] == [3, 1]
    assert asked[-1] == [48, 16]
    steps = {after[0] - before[0] for before, after in pairwise(asked)}
    assert steps <= {-1, 0, 1}  # minus the update that arrived
    assert sum(asked[0]) == sum(asked[-1]) == 64
    assert min(map(sum, asked)) >= 48  # one task may shrink before the other's updates arrive


@pytest.mark.parametrize("sizes", [(8, 80, 8), (80, 8, 8, 8)])
def test_allocations_stay_within_the_budget_if_tasks_diverge(sizes):
    """A task without a measurement keeps what it gets at its next merge, not what it has."""
    plans = [TaskPlan(size, 1, 99) for size in sizes]
    schedule = BufferedScheduler(plans, period=1 / (3 * sum(sizes)), floor=8)
    schedule.decide(Started())
    first = (100.0, 1.0, 1.0) if len(sizes) == 3 else (1.0, 100.0, 1.0, 1.0)
    lost = (None, 1.0, 1.0) if len(sizes) == 3 else (None, None, 1.0, 1.0)
    for number, (task, spread) in enumerate([(1, first), (2, first), (1, lost)]):
        task %= len(sizes)
        schedule.decide(Returned(number, task, schedule.tasks[task].version))
        schedule.decide(Measured(spread))
        next_sizes = [(task.later or [task.requests])[0] for task in schedule.tasks]
        assert sum(next_sizes) == sum(sizes)
        assert min(next_sizes) >= 8


@pytest.mark.thorough
def test_a_buffer_fills_in_the_expected_time():
    """With exponential delays and no queues, a buffer fills in b / (R lambda) on average.

    The formula is from Section 4; over 8000 merges, the mean's standard error is 0.5 %.
    """
    requests, buffer = 24, 6
    delays = Listed(rest=lambda task, number: draws[number])
    draws = Stream(5).generator().exponential(2.0, 60_000)
    _, _, _, merges = simulated(
        [(requests, buffer, 8000)], delays, 1e9, clients=60_000, choose=lambda number: number
    )
    assert len(merges) == 8000
    mean = merges[-1].seconds / len(merges)
    assert mean == pytest.approx(
        buffer_seconds(buffer=buffer, requests=requests, rate_hz=0.5), rel=0.016
    )


def test_clients_are_chosen_uniformly():
    """Each of 10 clients gets a tenth of 12,000 requests (standard error 0.0027)."""
    delays = ShiftedExponential([1.0], np.ones(10), Stream(2))
    _, handler, spans, _ = simulated([(30, 3, 10**6)], delays, 4500.0, clients=10)
    assert handler.requests.issued > 12_000
    counts = np.bincount([s.client for s in spans], minlength=10)
    # Clients with long queues have some tens of unfinished requests at the end.
    assert np.abs(counts / counts.sum() - 0.1).max() < 0.01


def test_drop_outs_are_counted_and_replaced():
    """30 % of the requests are lost and replaced, on average after half of their duration."""
    delays = ShiftedExponential([1.0], np.ones(2000), Stream(2))
    schedule, _, spans, _ = simulated([(50, 5, 10**6)], delays, 800.0, clients=2000, drop_out=0.3)
    lost = schedule.tasks[0].lost
    over = lost + schedule.updates
    assert over > 10_000  # so that the standard error of the share is below 0.005
    assert lost / over == pytest.approx(0.3, abs=0.015)
    assert schedule.active == 50
    gone = [s.end - s.begin for s in spans if s.how == "lost"]
    done = [s.end - s.begin for s in spans if s.how == "done"]
    # Drop-outs at a uniform time take half the mean duration; standard errors 1.3 and 0.8 %.
    assert np.mean(gone) / np.mean(done) == pytest.approx(0.5, rel=0.05)


def test_answers_at_merge():
    """With ``answers_at_merge``, only merges and lost updates cause new requests."""
    out = []

    def check(schedule, handler):
        requests = handler.requests
        task = schedule.tasks[0]
        assert task.active == schedule.active == len(requests.out) + len(task.held) == 9
        out.append((task.version, task.lost, requests.issued))

    delays = ShiftedExponential([1.0], np.ones(40), Stream(2))
    schedule, *_ = simulated(
        [(9, 4, 60)], delays, 1e9, clients=40, check=check, answers_at_merge=True, drop_out=0.2
    )
    assert schedule.tasks[0].lost > 20
    assert all(issued == 9 + 4 * version + lost for version, lost, issued in out)


def test_ticks_and_deadlines():
    """A tick and the deadline both report all active tasks; the deadline then stops the run."""
    schedule = BufferedScheduler(
        [TaskPlan(2, 1, 5), TaskPlan(1, 1, 5)], report_every=None, ticks=True
    )
    first = schedule.decide(Started())
    assert [type(decision).__name__ for decision in first] == [
        "Ask",
        "Ask",
        "Report",
        "Report",
        "Wake",
    ]
    tick = schedule.decide(Tick(1))
    assert [type(decision).__name__ for decision in tick] == ["Report", "Report", "Wake", "Save"]
    assert tick[2].number == 2
    schedule.decide(Reached(0))
    last = schedule.decide(Deadline())
    assert [type(decision).__name__ for decision in last] == ["Report", "Stop"]
    assert last[0].task == 1
