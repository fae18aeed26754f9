"""With simultaneous transmissions, buffers can always fill: limits, statistics, invariants."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from tests.wirelessfl.engine.tasks.groups import Listed, Watched, simulated
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.tasks.clients import busy_at_once, check_gathering


@st.composite
def settings_of_tasks(draw):
    """Settings that ``check_gathering`` accepts: task plans, clients, maximum of busy clients."""
    clients = draw(st.integers(1, 12))
    busy = draw(st.one_of(st.none(), st.integers(1, clients)))
    requests = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    limit = busy_at_once(requests, clients, busy)
    left, buffers = limit - 1, []
    for count in requests:
        buffers.append(1 + draw(st.integers(0, min(left, count - 1))))
        left -= buffers[-1] - 1
    if draw(st.booleans()):  # raise buffers to the limit
        while (
            left > 0 and (i := next((i for i, b in enumerate(buffers) if b < requests[i]), -1)) >= 0
        ):
            grown = min(left, requests[i] - buffers[i])
            buffers[i], left = buffers[i] + grown, left - grown
    check_gathering(buffers, requests, clients, busy)
    plans = [
        (count, buffer, draw(st.integers(3, 9)), draw(st.booleans()))
        for count, buffer in zip(requests, buffers, strict=True)
    ]
    return plans, clients, busy


@given(settings_of_tasks(), st.sampled_from([0.0, 0.2]), st.integers(1, 4), st.integers(0, 1000))
def test_no_deadlock_and_invariants(sizes, drop_out, floor, seed):
    """All tasks complete their merges, and the number of busy clients is always the maximum."""
    plans, clients, busy = sizes
    limit = busy_at_once([plan[0] for plan in plans], clients, busy)
    budget = sum(plan[0] for plan in plans)
    ended = []

    def check(schedule, handler):
        requests = handler.requests
        assert schedule.active == len(requests.out) == budget
        assert len(requests.queues) == limit
        queued = [r for queue in requests.queues.values() for r in queue]
        assert sorted(r.number for r in queued) == sorted(requests.out)
        for number, task in enumerate(schedule.tasks):
            mine = [r for r in queued if r.task == number]
            assert len(mine) == task.active
            if task.ended:
                ended.append(number)
                assert mine == []
            else:
                # With a floor a task may lack requests until another task's merge.
                assert len({r.client for r in mine}) >= min(task.buffer, task.active)
                assert 1 <= task.buffer <= task.requests
                assert len(task.held) < task.buffer
        running = [task for task in schedule.tasks if not task.ended]
        assert sum(task.buffer - 1 for task in running) < limit

    seconds = Stream(seed).generator().exponential(1.0, 5000)
    models = [Watched(0.3 + 0.2 * number) for number in range(len(plans))]
    schedule, handler, records = simulated(
        plans,
        Listed(rest=lambda task, number: float(seconds[number])),
        1e9,
        clients=clients,
        models=models,
        check=check,
        floor=floor,
        busy_clients=busy,
        drop_out=drop_out,
    )
    assert all(task.ended for task in schedule.tasks), "the clock ran empty"
    assert handler.requests.clock.now < 1e9
    assert [task.version for task in schedule.tasks] == [plan[2] for plan in plans]
    assert [len(model.merges) for model in models] == [plan[2] for plan in plans]
    for client in range(clients):
        own = sorted((s.begin, s.end) for s in records.spans if s.client == client)
        assert all(one[1] <= two[0] for one, two in pairwise(own))
    assert sum(task.lost for task in schedule.tasks) == sum(
        span.how == "lost" for span in records.spans
    )
    merged = sum(len(requests) for model in models for requests, _ in model.merges)
    assert merged == schedule.updates == sum(handler.ledger.returned)


def test_buffers_beyond_the_limit_deadlock():
    """With three clients and b = 2 and 3, all clients hold updates, and no buffer can fill.

    One client holds an update of task 0, two hold updates of task 1.
    """
    check_gathering([2, 2], [3, 3], 3, None)
    with pytest.raises(ConfigError, match=r"Lower the sum of the buffers to 4"):
        check_gathering([2, 3], [3, 3], 3, None)
    first = [0, 1, 1, 1, 2, 0]  # clients of requests 0 to 2 of task 0 and 3 to 5 of task 1
    schedule, handler, _ = simulated(
        [(3, 2, 50), (3, 3, 50)],
        Listed(rest=lambda task, number: 1.0),
        1e9,
        clients=3,
        models=[Watched(0.1), Watched(0.1)],
        choose=lambda number: first[number] if number < 6 else 0,
    )
    assert not any(task.ended for task in schedule.tasks)
    assert [len(task.held) for task in schedule.tasks] == [1, 2]
    assert len(handler.requests.queues) == 3


@pytest.mark.parametrize(
    ("buffers", "requests", "clients", "busy", "message"),
    [
        ([7], [6], 10, None, r"buffer is 7.*min\(6 requests, .*Lower buffer to 6"),
        ([5], [6], 4, None, r"buffer is 5.*min\(6 requests, 4 clients\) = 4.*Lower buffer to 4"),
        ([4], [6], 10, 3, r"buffer is 4.*busy_clients 3\) = 3.*Lower buffer to 3"),
        ([1, 3], [9, 2], 30, None, r"buffer is 3.* 2 requests.*Lower buffer to 2"),
        ([3, 4], [9, 9], 5, None, r"buffer is 3 \+ 4 = 7 .* = 5 busy.*buffers to 6"),
    ],
)
def test_buffers_that_may_never_fill_are_rejected(buffers, requests, clients, busy, message):
    with pytest.raises(ConfigError, match=message):
        check_gathering(buffers, requests, clients, busy)


@pytest.mark.parametrize(
    ("buffers", "requests", "clients", "busy"),
    [([6], [6], 10, None), ([4], [6], 4, None), ([3], [6], 10, 3), ([3, 3], [9, 9], 5, None)],
)
def test_buffers_at_the_limit_are_accepted(buffers, requests, clients, busy):
    check_gathering(buffers, requests, clients, busy)


@pytest.mark.thorough
def test_clients_are_chosen_uniformly_among_idle_ones():
    """With one active request, each of 10 clients gets a tenth of 500 (standard error 0.0134)."""
    _, handler, records = simulated(
        [(1, 1, 500)], Listed(rest=lambda *_: 1.0), 1e9, clients=10, models=[Watched(0.1)]
    )
    assert handler.requests.issued == 500
    counts = np.bincount([s.client for s in records.spans], minlength=10)
    assert np.abs(counts / counts.sum() - 0.1).max() < 0.042
    # With five active requests, each client is in half of the equally likely sets of five.
    _, handler, records = simulated(
        [(5, 5, 200)], Listed(rest=lambda *_: 1.0), 1e9, clients=10, models=[Watched(0.1)]
    )
    counts = np.bincount([s.client for s in records.spans], minlength=10)
    assert counts.sum() == 1000
    assert np.abs(counts / 200 - 0.5).max() < 0.113  # standard error 0.035


def test_lost_updates_are_replaced():
    """All merges complete, and 30 % of the updates are lost (standard error below 1.4 %)."""
    schedule, _, _ = simulated(
        [(20, 5, 200)],
        Listed(rest=lambda task, number: 1.0 + number % 3),
        1e9,
        clients=50,
        models=[Watched(0.1)],
        drop_out=0.3,
    )
    lost = schedule.tasks[0].lost
    assert schedule.updates == 1000
    # Fraction of finished requests; some clients still hold an update at the end.
    assert lost / (lost + schedule.updates) == pytest.approx(0.3, abs=0.041)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("requests", "buffers", "clients"),
    [((10, 10), (5, 5), 10), ((4, 16), (4, 2), 10), ((2, 2, 8), (2, 2, 2), 4)],
)
def test_no_task_starves(requests, buffers, clients):
    """All tasks keep merging if all clients have queues and buffers have their maximum size.

    A task's requests are sent to different clients if possible. Otherwise they would queue behind
    each other.
    """
    check_gathering(buffers, requests, clients, None)
    seconds = Stream(5).generator().exponential(1.0, 5000)
    _, _, records = simulated(
        [(r, b, 10**6) for r, b in zip(requests, buffers, strict=True)],
        Listed(rest=lambda task, number: float(seconds[number])),
        120.0,
        clients=clients,
        models=[Watched(0.05) for _ in requests],
    )
    for task in range(len(requests)):
        merges = [m.seconds for m in records.merges if m.task == task]
        assert max(b - a for a, b in pairwise([0.0, *merges, 120.0])) < 30
