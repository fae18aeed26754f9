"""Transmissions of groups under asynchronous requests: by hand, laws, invariants, resume."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels import Network
from channels.streams import Stream
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.errors import ConfigError
from wirelessfl.models import FCNN
from wirelessfl.rounds.costs import Costs, Links
from wirelessfl.rounds.participants import Participants
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.schedules.events import Deadline, Reached, Started
from wirelessfl.schedules.loop import simulate
from wirelessfl.submodels import ParamSpec, Submodels
from wirelessfl.tasks.asynchronous import Asynchronous
from wirelessfl.tasks.delays import Delays, Wireless
from wirelessfl.tasks.model import Untrained
from wirelessfl.tasks.records import Records
from wirelessfl.tasks.requests import Requests
from wirelessfl.tasks.transmissions import (
    GroupUploads,
    Transmissions,
    busy_at_once,
    check_gathering,
)
from wirelessfl.uplinks.aircomp import AirComp

BAND_HZ, SUBCARRIER_HZ, SYMBOL_SECONDS = 1e6, 1e4, 1e-3
SYMBOLS = BAND_HZ / SUBCARRIER_HZ  # at once
AIRCOMP = AirComp(subcarrier_hz=SUBCARRIER_HZ, symbol_seconds=SYMBOL_SECONDS)


def network_of(clients):
    spread = np.arange(clients)
    return Network(
        [0] * clients,
        cpu_hz=1e9 * (1 + 0.1 * spread),
        snr_db=10.0,
        bandwidth_hz=BAND_HZ,
        antennas=2,
        transmit_power_w=0.1 * (1 + spread),
        switched_capacitance=1e-28,
    )


def elements_for(seconds):
    """Numbers that take so long over the air: one a subcarrier and symbol."""
    return round(seconds * SYMBOLS / SYMBOL_SECONDS)


class Listed(Delays):
    """Seconds of local training by the number of the request; clients compute all the time."""

    def __init__(self, *seconds, rest=None):
        self.listed, self.rest = seconds, rest

    def seconds(self, task, client, number):
        return self.listed[number] if number < len(self.listed) else self.rest(task, number)

    def compute_joules(self, task, client, seconds):
        return 1000.0 * seconds


class Watched(Untrained):
    """Keeps what is merged, over which channels."""

    def __init__(self, air_seconds=0.0):
        super().__init__(elements_for(air_seconds))
        self.client, self.at_issue, self.merges = {}, {}, []

    def issue(self, request):
        self.client[request.number] = request.client
        self.at_issue[request.number] = len(self.merges)

    def merge(self, requests, staleness, *, draw=None):
        assert [len(self.merges) - self.at_issue[n] for n in requests] == list(staleness)
        clients = [self.client[number] for number in requests]
        assert clients == sorted(set(clients)) == draw.network.numbers.tolist()
        self.merges.append((list(requests), draw))


def made(plans, delays, *, clients, models, **options):
    """Objects of a simulation: clock, schedule, regime, records."""
    names = ("busy_clients", "drop_out", "choose")
    of_requests = {name: options.pop(name) for name in names if name in options}
    clock, records = Clock(), Records()
    gathering = busy_at_once([p[0] for p in plans], clients, of_requests.get("busy_clients"))
    schedule = BufferedScheduler(
        [TaskPlan(*plan) for plan in plans],
        gathering=gathering,
        **{"report_every": None} | options,
    )
    streams = [Stream(7).child("task", number) for number in range(len(plans))]
    uploads = GroupUploads.of(network_of(clients), AIRCOMP, streams)
    transmissions = Transmissions(clock, uploads)
    requests = Requests(
        clock,
        delays,
        clients,
        Stream(3),
        transmissions=transmissions,
        records=records,
        **of_requests,
    )
    return clock, schedule, Asynchronous(models, requests, records), records


def simulated(plans, delays, seconds, *, clients, models, events=(), check=None, **options):
    clock, schedule, regime, records = made(
        plans, delays, clients=clients, models=models, **options
    )
    if check is not None:
        settle = regime.settle

        def checked():
            settle()
            check(schedule, regime)

        regime.settle = checked
    clock.after(0.0, Started())
    clock.at(seconds, Deadline())
    for at, event in events:
        clock.at(at, event)
    simulate(schedule, regime, clock, lambda report: None, lambda: None)
    return schedule, regime, records


def as_rows(spans):
    return [(s.task, s.client, round(s.begin, 9), round(s.end, 9), s.how) for s in spans]


# Requests 0, 1, 2 of task 0 go to clients 0, 1, 2 and are trained after 1, 2, 5 s; 3, 4 of task 1
# to clients 3, 4 after 1.5, 2.5 s. A transmission of task 0 takes 2 s, one of task 1 takes 1 s.
# 2.0: 0 and 1 send until 4.0. 2.5: 3 and 4 are ready and wait for the channel: 4.0 to 5.0.
# 4.0: merge of task 0; 5 and 6 go to clients 1 and 0, and take 3 and 0.5 s: ready at 7.0 and 4.5.
# 4.5: request 6 is ready and waits for another of task 0. 5.0: merge of task 1, request 2 is ready;
# 6 and 2 send from 5.0 to 7.0. 7 and 8 go to clients 3 and 4, and take 9 s.
# 7.0: merge of task 0; request 2 was issued before the first merge. 5 is ready at 7.0.
BY_HAND = Listed(1.0, 2.0, 5.0, 1.5, 2.5, 3.0, 0.5, rest=lambda task, number: 9.0)
CLIENT_OF = [0, 1, 2, 3, 4, 1, 0, 3, 4, 2, 0]


def test_turns_by_hand():
    """Held updates, two tasks that take turns, b new requests at the end of a transmission."""
    models, asked = [Watched(2.0), Watched(1.0)], []

    def check(schedule, regime):
        asked.append((regime.requests.clock.now, regime.requests.issued))

    schedule, regime, records = simulated(
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
    # By client: request 6 of client 0 is as old as the model, 2 of client 2 is one merge older.
    assert merges == [(0, 4.0, (0, 0)), (1, 5.0, (0, 0)), (0, 7.0, (0, 1))]
    assert [requests for requests, _ in models[0].merges] == [[0, 1], [6, 2]]
    assert schedule.updates == 6
    assert regime.versions == [2, 1]
    assert regime.returned == [4, 2]
    issued = {round(now, 9): count for now, count in asked}
    assert [issued[at] for at in (2.0, 4.0, 5.0, 7.0)] == [5, 7, 9, 11]
    assert [task.held for task in schedule.tasks] == [[5], []]
    # Computing for as long as they were busy (the delays say so), and sending: 2 s, 1 s, 2 s.
    busy = (4 + 4) + (5 + 5) + (3 + 7)
    watts = [0.1 * (1 + client) for client in range(5)]
    sending = 2 * (watts[0] + watts[1]) + (watts[3] + watts[4]) + 2 * (watts[0] + watts[2])
    assert regime.joules == pytest.approx(1000 * busy + sending)


def test_channels_are_those_of_the_merge_number():
    """Each merge has the draw of its number, task by task, for the clients that sent."""
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
        # In the transmission of task 0: it stops, task 1 has the channel when it is ready.
        (2.25, [(0, 0, 0.0, 2.25), (0, 1, 0.0, 2.25), (0, 2, 0.0, 2.25)]),
        # Task 1 waits for the channel, and gets it.
        (3.0, [(0, 0, 0.0, 3.0), (0, 1, 0.0, 3.0), (0, 2, 0.0, 3.0)]),
        # Requests 2 (in training), 5 and 6 (held) of task 0; the transmission of task 1 goes on.
        (4.75, [(0, 2, 0.0, 4.75), (0, 1, 4.0, 4.75), (0, 0, 4.0, 4.75)]),
    ],
)
def test_the_channel_passes_on_when_a_task_ends(at, expected):
    models = [Watched(2.0), Watched(1.0)]
    schedule, regime, records = simulated(
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
    watts = [0.1 * (1 + client) for client in range(5)]
    sending = min(at - 2.0, 2.0) * (watts[0] + watts[1]) + watts[3] + watts[4]
    computing = 1000 * sum(end - start for *_, start, end, _ in rows)
    assert regime.joules == pytest.approx(sending + computing)


def test_a_queued_transmission_of_an_ended_task_is_dropped():
    """Task 1 waits for the channel from 2.5 s on, and ends at 3 s; task 0 is not disturbed."""
    models = [Watched(2.0), Watched(1.0)]
    _, regime, records = simulated(
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
    assert regime.requests.transmissions.due is None


@st.composite
def settings_of_tasks(draw):
    """Plans that ``check_gathering`` accepts: R, b, T of each task, clients, busy clients."""
    clients = draw(st.integers(1, 12))
    busy = draw(st.one_of(st.none(), st.integers(1, clients)))
    requests = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    limit = busy_at_once(requests, clients, busy)
    left, buffers = limit - 1, []
    for count in requests:
        buffers.append(1 + draw(st.integers(0, min(left, count - 1))))
        left -= buffers[-1] - 1
    if draw(st.booleans()):  # at the limit
        while (
            left > 0 and (i := next((i for i, b in enumerate(buffers) if b < requests[i]), -1)) >= 0
        ):
            grown = min(left, requests[i] - buffers[i])
            buffers[i], left = buffers[i] + grown, left - grown
    check_gathering(buffers, requests, clients, busy)
    plans = [
        (count, buffer, draw(st.integers(3, 15)), draw(st.booleans()))
        for count, buffer in zip(requests, buffers, strict=True)
    ]
    return plans, clients, busy


@settings(max_examples=150)
@given(settings_of_tasks(), st.sampled_from([0.0, 0.2]), st.integers(1, 4), st.integers(0, 1000))
def test_no_deadlock_and_invariants(sizes, drop_out, floor, seed):
    """All tasks make all merges; each client is busy once; merges are of distinct clients."""
    plans, clients, busy = sizes
    limit = busy_at_once([plan[0] for plan in plans], clients, busy)
    budget = sum(plan[0] for plan in plans)
    ended = []

    def check(schedule, regime):
        requests = regime.requests
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
                assert len({r.client for r in mine}) >= min(task.buffer, limit)
                assert 1 <= task.buffer <= task.requests
                assert len(task.held) < task.buffer
        running = [task for task in schedule.tasks if not task.ended]
        assert sum(task.buffer - 1 for task in running) < limit

    seconds = Stream(seed).generator().exponential(1.0, 5000)
    models = [Watched(0.3 + 0.2 * number) for number in range(len(plans))]
    schedule, regime, records = simulated(
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
    assert regime.requests.clock.now < 1e9
    assert [task.version for task in schedule.tasks] == [plan[2] for plan in plans]
    assert [len(model.merges) for model in models] == [plan[2] for plan in plans]
    for client in range(clients):
        own = sorted((s.begin, s.end) for s in records.spans if s.client == client)
        assert all(one[1] <= two[0] for one, two in pairwise(own))
    assert sum(task.lost for task in schedule.tasks) == sum(
        span.how == "lost" for span in records.spans
    )
    merged = sum(len(requests) for model in models for requests, _ in model.merges)
    assert merged == schedule.updates == sum(regime.returned)


def test_beyond_the_limit_all_wait_for_each_other():
    """Three clients, b = 2 and 3: one holds an update of task 0 and two hold one of task 1."""
    check_gathering([2, 2], [3, 3], 3, None)
    with pytest.raises(ConfigError, match=r"Lower buffer to 4 in all"):
        check_gathering([2, 3], [3, 3], 3, None)
    first = [0, 1, 1, 1, 2, 0]  # heads: 0 of task 0; after its update at client 1, two of task 1
    schedule, regime, _ = simulated(
        [(3, 2, 50), (3, 3, 50)],
        Listed(rest=lambda task, number: 1.0),
        1e9,
        clients=3,
        models=[Watched(0.1), Watched(0.1)],
        choose=lambda number: first[number] if number < 6 else 0,
    )
    assert not any(task.ended for task in schedule.tasks)
    assert [len(task.held) for task in schedule.tasks] == [1, 2]
    assert len(regime.requests.queues) == 3


@pytest.mark.parametrize(
    ("buffers", "requests", "clients", "busy", "message"),
    [
        ([7], [6], 10, None, r"buffer is 7.*min\(6 requests, .*Lower buffer to 6"),
        ([5], [6], 4, None, r"buffer is 5.*min\(6 requests, 4 clients\) = 4.*Lower buffer to 4"),
        ([4], [6], 10, 3, r"buffer is 4.*busy_clients 3\) = 3.*Lower buffer to 3"),
        ([1, 3], [9, 2], 30, None, r"buffer is 3.* 2 requests.*Lower buffer to 2"),
        ([3, 4], [9, 9], 5, None, r"buffer is 3 \+ 4 = 7 .* = 5 busy.*Lower buffer to 6 in all"),
    ],
)
def test_buffers_that_may_never_fill_are_refused(buffers, requests, clients, busy, message):
    with pytest.raises(ConfigError, match=message):
        check_gathering(buffers, requests, clients, busy)


@pytest.mark.parametrize(
    ("buffers", "requests", "clients", "busy"),
    [([6], [6], 10, None), ([4], [6], 4, None), ([3], [6], 10, 3), ([3, 3], [9, 9], 5, None)],
)
def test_buffers_at_the_limit_are_accepted(buffers, requests, clients, busy):
    check_gathering(buffers, requests, clients, busy)


def test_clients_are_chosen_uniformly_among_idle_ones():
    """One of 10 clients at a time, 2000 requests: standard error of a share 0.0067."""
    _, regime, records = simulated(
        [(1, 1, 2000)], Listed(rest=lambda *_: 1.0), 1e9, clients=10, models=[Watched(0.1)]
    )
    assert regime.requests.issued == 2000
    counts = np.bincount([s.client for s in records.spans], minlength=10)
    assert np.abs(counts / counts.sum() - 0.1).max() < 0.021
    # Five of 10: each set of five is as likely as any other, so each client has half.
    _, regime, records = simulated(
        [(5, 5, 800)], Listed(rest=lambda *_: 1.0), 1e9, clients=10, models=[Watched(0.1)]
    )
    counts = np.bincount([s.client for s in records.spans], minlength=10)
    assert counts.sum() == 4000
    assert np.abs(counts / 800 - 0.5).max() < 0.06  # standard error 0.018


def test_lost_updates_are_made_good():
    """Share of lost trainings, with clients that hold theirs: standard error below 0.005."""
    schedule, _, _ = simulated(
        [(20, 5, 1500)],
        Listed(rest=lambda task, number: 1.0 + number % 3),
        1e9,
        clients=50,
        models=[Watched(0.1)],
        drop_out=0.3,
    )
    lost = schedule.tasks[0].lost
    assert schedule.updates == 7500
    # Of those whose training is over; some of the others are held at the end.
    assert lost / (lost + schedule.updates) == pytest.approx(0.3, abs=0.015)


def test_a_round_of_everybody_takes_what_costs_say():
    """Seconds, joules and elements of one group, against the costs of rounds of one model."""
    network, steps = network_of(6), 4
    clients = np.array([0, 2, 3, 5])
    spec = ParamSpec.of(FCNN((30,), 4, hidden=(20,)))
    stream = Stream(2)
    upload = GroupUploads.of(network, AIRCOMP, [stream]).upload(0, 3, clients, spec.size)
    costs = Costs(FedAvg(), Links(network, AIRCOMP), spec, TrainingSettings(steps, 1))
    draws = network.draws(stream.child("channel"), [3], clients)
    who = Participants(clients, np.ones(4, dtype=np.bool_))
    cost = costs.of_nodes(draws, Submodels.whole(spec, 1), who)
    delays = Wireless(
        network, AIRCOMP, [steps], [1e6 / network.cpu_hz], [spec.size], None, Stream(1)
    )
    computing = [delays.seconds(0, client, 0) for client in clients.tolist()]
    assert max(computing) + upload.seconds == pytest.approx(float(cost.seconds.max()), rel=1e-12)
    joules = [delays.compute_joules(0, client, 9e9) for client in clients.tolist()]
    assert (sum(joules) + upload.joules) / 6 == pytest.approx(cost.joules, rel=1e-12)
    assert upload.seconds == pytest.approx(spec.size / SYMBOLS * SYMBOL_SECONDS)


def state_of(schedule, regime):
    return json.dumps({"schedule": schedule.snapshot(), "regime": regime.snapshot()})


def test_resumed_at_any_instant():
    """Restored at every instant: held updates, a transmission in progress, others that wait."""
    kinds = set()

    def fresh_run():
        return made(
            [(5, 3, 6), (4, 2, 9)],
            Listed(rest=lambda task, number: 0.2 + 0.31 * (number * 5 % 7)),
            clients=7,
            models=[Untrained(elements_for(0.7)), Untrained(elements_for(0.9))],
            busy_clients=6,
            drop_out=0.1,
            report_every=2,
            ticks=True,
        )

    def go(run, reports, save):
        clock, schedule, regime, _ = run
        told = lambda report: reports.append((clock.now, report.round, dict(report.status)))  # noqa: E731
        simulate(schedule, regime, clock, told, save, tick_seconds=0.15)

    run, reports, saved = fresh_run(), [], []
    clock, schedule, regime, records = run
    clock.after(0.0, Started())

    def save():
        on_air = regime.requests.transmissions.snapshot()
        held = any(task.held for task in schedule.tasks)
        kinds.add((on_air["on_air"] is not None, bool(on_air["queue"]), held))
        done = len(records.spans), len(records.merges), len(reports)
        saved.append((state_of(schedule, regime), done))

    go(run, reports, save)
    assert all(task.ended for task in schedule.tasks)
    assert {(True, True, True), (True, False, True), (False, False, True)} <= kinds
    assert len(saved) > 20
    final = state_of(schedule, regime)
    for state, (spans, merges, rows) in saved:
        again = fresh_run()
        state = json.loads(state)
        again[1].restore(state["schedule"])
        again[2].restore({}, state["regime"])
        more = []
        go(again, more, lambda: None)
        assert again[3].spans == records.spans[spans:]
        assert again[3].merges == records.merges[merges:]
        assert more == reports[rows:]
        assert state_of(again[1], again[2]) == final
