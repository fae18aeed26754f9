"""Simultaneous transmissions of asynchronous requests: hand calculations, costs, resumption."""

import json

import numpy as np
import pytest

from channels import Load
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent, traffic_of
from tests.wirelessfl.engine.tasks.groups import (
    AIRCOMP,
    SYMBOL_SECONDS,
    SYMBOLS,
    Listed,
    Watched,
    elements_for,
    made,
    network_of,
    sent_watts,
    simulated,
)
from wirelessfl.air.delays import Wireless
from wirelessfl.air.links import Links, TrainingSettings
from wirelessfl.air.participants import Participants
from wirelessfl.air.round_price import Pricing
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.engine.events import Reached, Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.tasks.request import Request
from wirelessfl.engine.tasks.uploads import GroupUploads, RequestGroup, Transmissions
from wirelessfl.models import FCNN
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.training.steps import StepCounts


def as_rows(spans):
    return [(s.task, s.client, round(s.begin, 9), round(s.end, 9), s.how) for s in spans]


# Requests 0, 1, 2 of task 0 go to clients 0, 1, 2 and train for 1, 2, 5 s; requests 3, 4 of task 1
# go to clients 3, 4 and train for 1.5, 2.5 s. Transmissions of task 0 take 2 s, of task 1 1 s.
# 2.0: 0 and 1 send until 4.0. 2.5: 3 and 4 are ready, and send from 4.0, when the channel is free.
# 4.0: merge of task 0; 5 and 6 go to clients 1 and 0 and train for 3 and 0.5 s, to 7.0 and 4.5.
# 4.5: 6 is ready and waits for another request of task 0. 5.0: merge of task 1; 2 is ready, so 6
# and 2 send until 7.0; 7 and 8 go to clients 3 and 4 and train for 9 s.
# 7.0: merge of task 0, in which 2 is one merge old; 5 is ready.
BY_HAND = Listed(1.0, 2.0, 5.0, 1.5, 2.5, 3.0, 0.5, rest=lambda task, number: 9.0)
CLIENT_OF = [0, 1, 2, 3, 4, 1, 0, 3, 4, 2, 0]


def test_two_tasks_take_turns_on_the_channel():
    """Spans, merges, issued requests and joules match the hand calculation above."""
    models, asked = [Watched(2.0), Watched(1.0)], []

    def check(schedule, handler):
        asked.append((handler.requests.clock.now, handler.requests.issued))

    schedule, handler, records = simulated(
        [(3, 2, 99), (2, 2, 99)],
        BY_HAND,
        8.0,
        clients=5,
        models=models,
        check=check,
        choose=lambda number: CLIENT_OF[number],
    )
    assert as_rows(records.spans) == [
        (0, 0, 0.0, 4.0, "done"),
        (0, 1, 0.0, 4.0, "done"),
        (1, 3, 0.0, 5.0, "done"),
        (1, 4, 0.0, 5.0, "done"),
        (0, 0, 4.0, 7.0, "done"),
        (0, 2, 0.0, 7.0, "done"),
    ]
    merges = [(m.task, round(m.seconds, 9), m.staleness) for m in records.merges]
    # In the order of clients: request 6 has the current model, request 2 is one merge old.
    assert merges == [(0, 4.0, (0, 0)), (1, 5.0, (0, 0)), (0, 7.0, (0, 1))]
    assert [requests for requests, _ in models[0].merges] == [[0, 1], [6, 2]]
    assert schedule.updates == 6
    assert handler.ledger.merges == [2, 1]
    assert handler.ledger.returned == [4, 2]
    issued = {round(now, 9): count for now, count in asked}
    assert [issued[at] for at in (2.0, 4.0, 5.0, 7.0)] == [5, 7, 9, 11]
    assert [task.held for task in schedule.tasks] == [[5], []]
    # With these delays clients compute while they are busy; they send for 2 s, 1 s and 2 s.
    busy = np.array([4 + 3, 4, 7, 5, 5])
    sending = 2 * sent_watts(0, 0, [0, 1]) + sent_watts(1, 0, [3, 4]) + 2 * sent_watts(0, 1, [0, 2])
    assert handler.ledger.spent.each == pytest.approx(1000 * busy + sending)
    assert handler.ledger.spent.total == pytest.approx((1000 * busy + sending).sum())


def test_channel_draws_are_indexed_by_merge():
    """Merge n of a task uses the task's channel draw n for the clients that sent."""
    models = [Watched(0.5), Watched(0.25)]
    simulated(
        [(6, 2, 9), (5, 3, 9)],
        Listed(rest=lambda task, number: 1.0 + number % 7),
        1e9,
        clients=8,
        models=models,
    )
    network = network_of(8)
    for task, model in enumerate(models):
        assert len(model.merges) == 9
        stream = Stream(7).child("task", task, "channel")
        for number, (requests, draw) in enumerate(model.merges):
            clients = sorted(model.client[n] for n in requests)
            assert np.array_equal(draw.h, network.draws(stream, [number], clients).h[0])


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        # During the transmission of task 0: it stops, and task 1 gets the channel when it is ready.
        (2.25, [(0, 0, 0.0, 2.25), (0, 1, 0.0, 2.25), (0, 2, 0.0, 2.25)]),
        # Task 1 waits for the channel, and gets it immediately.
        (3.0, [(0, 0, 0.0, 3.0), (0, 1, 0.0, 3.0), (0, 2, 0.0, 3.0)]),
        # Requests 2 and 5 (in training) and 6 (held) stop; the transmission of task 1 continues.
        (4.75, [(0, 2, 0.0, 4.75), (0, 1, 4.0, 4.75), (0, 0, 4.0, 4.75)]),
    ],
)
def test_an_ended_task_frees_the_channel(at, expected):
    """When task 0 ends, its requests are cancelled, and task 1 can use the channel."""
    models = [Watched(2.0), Watched(1.0)]
    schedule, handler, records = simulated(
        [(3, 2, 99), (2, 2, 99, False)],
        BY_HAND,
        5.2,
        clients=5,
        models=models,
        events=[(at, Reached(0))],
        choose=lambda number: CLIENT_OF[number] if number < 11 else number % 5,
    )
    rows = as_rows(records.spans)
    assert [row[:4] for row in rows if row[4] == "cancelled"] == expected
    begin = max(at, 2.5) if at < 4 else 4.0
    assert (1, 3, 0.0, begin + 1.0, "done") in rows
    assert schedule.tasks[0].held == []
    assert schedule.active == 5  # task 1 has all requests
    sending = min(at - 2.0, 2.0) * sent_watts(0, 0, [0, 1]) + sent_watts(1, 0, [3, 4])
    computing = np.zeros(5)
    for _, client, start, end, _ in rows:
        computing[client] += 1000 * (end - start)
    assert handler.ledger.spent.each == pytest.approx(sending + computing)
    assert handler.ledger.spent.total == pytest.approx((sending + computing).sum())


def test_a_queued_transmission_of_an_ended_task_is_dropped():
    """Task 1 ends at 3 s, while its upload waits for the channel; task 0 is not affected."""
    models = [Watched(2.0), Watched(1.0)]
    _, handler, records = simulated(
        [(3, 2, 99, False), (2, 2, 99)],
        BY_HAND,
        5.5,
        clients=5,
        models=models,
        events=[(3.0, Reached(1))],
        choose=lambda number: CLIENT_OF[number] if number < 5 else 3,
    )
    rows = as_rows(records.spans)
    assert (1, 3, 0.0, 3.0, "cancelled") in rows
    assert (0, 1, 0.0, 4.0, "done") in rows
    assert models[1].merges == []
    assert [(m.task, m.seconds) for m in records.merges] == [(0, pytest.approx(4.0))]
    assert handler.requests.transmissions.due is None


def test_a_group_upload_costs_as_much_as_a_round():
    """A group's seconds and joules equal those of a round of the same clients."""
    network, steps = network_of(6), 4
    clients = np.array([0, 2, 3, 5])
    spec = ParamSpec.of(FCNN((30,), 4, hidden=(20,)))
    stream = Stream(2)
    upload = GroupUploads.of(network, AIRCOMP, [stream]).upload(
        0, 3, clients, Load(elements=np.full(4, spec.size))
    )
    pricing = Pricing(FedAvg(), False, Links(network, AIRCOMP), spec, TrainingSettings(steps, 1))
    draws = network.draws(stream.child("channel"), [3], clients)
    who = Participants(clients, np.ones(4, dtype=np.bool_))
    price = pricing.price(3, draws, who, Submodels.whole(spec, 1), None, Stream(1))
    delays = Wireless(
        network,
        AIRCOMP,
        [StepCounts(steps)],
        [1e6 / network.cpu_hz],
        [traffic_of(spec.size)],
        None,
        Stream(1),
    )
    computing = [delays.seconds(0, client, 0) for client in clients.tolist()]
    assert max(computing) + upload.seconds == pytest.approx(float(price.seconds.max()), rel=1e-12)
    joules = [delays.compute_joules(0, client, 9e9) for client in clients.tolist()]
    assert (sum(joules) + upload.spent.total) / 6 == pytest.approx(price.joules, rel=1e-12)
    assert upload.seconds == pytest.approx(spec.size / SYMBOLS * SYMBOL_SECONDS)


def test_a_client_transmits_its_own_elements_only():
    """The upload lasts until all elements are sent; a client uses energy while it sends its own."""
    clients, each = np.array([0, 2, 5]), np.array([500.0, 2000.0, 1500.0])
    uploads = GroupUploads.of(network_of(6), AIRCOMP, [Stream(2)])
    upload = uploads.upload(0, 3, clients, Load(elements=each, jointly=3000))
    seconds = each / SYMBOLS * SYMBOL_SECONDS
    assert upload.seconds == pytest.approx(3000 / SYMBOLS * SYMBOL_SECONDS)
    watts = AIRCOMP.access.serve(Load(elements=each), upload.draw).decision.powers_w
    assert upload.spent.each == pytest.approx(watts * seconds)
    assert upload.spent.total == pytest.approx(float((watts * seconds).sum()))
    assert (watts < 0.1 * (1 + clients) / 9 * (1 + 1e-9)).all()  # q_i^2 of the power limit


def state_of(schedule, handler):
    return json.dumps({"schedule": schedule.snapshot(), "handler": handler.snapshot()})


@pytest.mark.thorough
def test_a_simulation_can_be_resumed_at_any_time():
    """Resume from every other checkpoint, some with held updates or queued transmissions."""
    kinds = set()

    def fresh_run():
        return made(
            [(5, 3, 6), (4, 2, 9)],
            Listed(rest=lambda task, number: 0.2 + 0.31 * (number * 5 % 7)),
            clients=7,
            models=[Silent(elements_for(0.7)), Silent(elements_for(0.9))],
            busy_clients=6,
            drop_out=0.1,
            report_every=2,
            ticks=True,
        )

    def go(run, reports, save):
        clock, schedule, handler, _ = run
        told = lambda report: reports.append((clock.now, report.round, dict(report.status)))  # noqa: E731
        simulate(schedule, handler, clock, told, save, tick_seconds=0.15)

    run, reports, saved = fresh_run(), [], []
    clock, schedule, handler, records = run
    clock.after(0.0, Started())

    def save():
        on_air = handler.requests.transmissions.snapshot()
        held = any(task.held for task in schedule.tasks)
        if len(saved) % 2 == 0:
            kinds.add((on_air["on_air"] is not None, bool(on_air["queue"]), held))
        done = len(records.spans), len(records.merges), len(reports)
        saved.append((state_of(schedule, handler), handler.tensors(), done))

    go(run, reports, save)
    assert all(task.ended for task in schedule.tasks)
    assert {(True, True, True), (True, False, True), (False, False, True)} <= kinds
    assert len(saved) > 20
    final = state_of(schedule, handler)
    assert handler.ledger.spent.each.sum() == pytest.approx(handler.ledger.spent.total)
    for state, tensors, (spans, merges, rows) in saved[::2]:
        again = fresh_run()
        state = json.loads(state)
        again[1].restore(state["schedule"])
        again[2].restore(tensors, state["handler"])
        more = []
        go(again, more, lambda: None)
        assert again[3].spans == records.spans[spans:]
        assert again[3].merges == records.merges[merges:]
        assert more == reports[rows:]
        assert state_of(again[1], again[2]) == final
        assert again[2].ledger.spent.total == handler.ledger.spent.total
        assert again[2].ledger.spent.each.tolist() == handler.ledger.spent.each.tolist()


def test_a_restored_transmission_goes_on_as_it_was():
    """Queue, start, loads and weights come back: a stop costs what it would have cost before."""
    clock, uploads = Clock(), GroupUploads.of(network_of(5), AIRCOMP, [Stream(2), Stream(3)])
    requests = {n: Request(n, n // 3, n % 5, 0, 0.0, 1.0) for n in range(6)}
    load = Load(elements=[900.0, 400.0, 700.0], jointly=1000, weights=[1.0, 2.0, 4.0])

    def transmissions():
        return Transmissions(clock, uploads)

    before = transmissions()
    before.queue.extend(
        RequestGroup(task, [requests[3 * task + place] for place in range(3)]) for task in (0, 1)
    )
    before.begin(4, load)
    after = transmissions()
    after.restore(json.loads(json.dumps(before.snapshot())), requests)
    assert after.snapshot() == before.snapshot()
    assert [waits.numbers for waits in after.queue] == [[3, 4, 5]]
    clock.now = 0.004
    (_, cost), (what, again) = (air.cancel(0) for air in (before, after))
    assert what.numbers == [0, 1, 2]
    assert cost.total == again.total > 0
    assert cost.each.tolist() == again.each.tolist()
    assert after.due is after.queue[0]
