"""Rounds of several tasks with AirComp uploads: hand calculations, channel draws."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from channels import Load, Network
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent
from wirelessfl.air.delays import Delays
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.engine.assignment import RandomAssignment
from wirelessfl.engine.events import Arrived, Cancel, Give, Merge, Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import Clock, SimultaneousScheduler
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.round_times import TaskRoundSettings, round_times
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.engine.tasks.uploads import GroupUploads

WATT = 0.1 * np.arange(1, 9)
NETWORK = Network.from_snr(
    [0] * 8, cpu_hz=1e9, snr_db=10.0, bandwidth_hz=1e6, antennas=2, transmit_power_w=WATT
)
UPLINK = AirComp(subcarrier_hz=1e4, symbol_seconds=1e-3)  # 100,000 elements per second
STREAMS = [Stream(7).child("task", task) for task in range(2)]
UPLOADS = GroupUploads.of(NETWORK, UPLINK, STREAMS)
AIR_SECONDS = 2.0, 1.0
CHOSEN = {0: np.array([0, 1, 2]), 1: np.array([3, 4])}
TRAINING = 1.0, 2.0, 5.0, 1.5, 2.5
INF = math.inf


class Listed(Delays):
    """Durations of local training, listed by the number of the training run."""

    def seconds(self, task, client, number):
        return TRAINING[number % 5]

    def compute_joules(self, task, client, seconds, share=1.0):
        return 1000.0 * seconds


WHOLE = {task: np.ones(len(clients)) for task, clients in CHOSEN.items()}


def upload(task, clients, chosen):
    elements = round(1e5 * AIR_SECONDS[task])
    return UPLOADS.upload(task, 0, clients, Load(elements=np.full(len(clients), elements)))


@pytest.mark.parametrize(
    ("first", "lost", "seconds", "length", "computing"),
    [
        # Task 1 is ready at 2.5 and task 0 at 5.
        (0, {}, [7, 7, 7, 3.5, 3.5], 7, [1, 2, 5, 1.5, 2.5]),
        # Task 0 sends at 2, when client 2 is stopped; task 1 waits from 2.5 to 4 for the channel.
        (2, {}, [4, 4, 2, 5, 5], 5, [1, 2, 2, 1.5, 2.5]),
        # Clients 1, 2, 4 are stopped when another client of the task is ready; task 1 sends at 3.
        (1, {}, [3, 1, 1, 4, 1.5], 4, [1, 1, 1, 1.5, 1.5]),
        # The server waits for client 2 until it drops out at 4.
        (0, {2: 4.0}, [6, 6, INF, 3.5, 3.5], 6, [1, 2, 4, 1.5, 2.5]),
        # Clients 1 and 2 send without client 0, which drops out at 0.5.
        (0, {0: 0.5}, [INF, 7, 7, 3.5, 3.5], 7, [0.5, 2, 5, 1.5, 2.5]),
        # Client 2 would drop out at 4, but is stopped at 2, when two others are ready.
        (2, {2: 4.0}, [4, 4, INF, 5, 5], 5, [1, 2, 2, 1.5, 2.5]),
        # All clients of task 1 have dropped out by 1.25.
        (0, {3: 0.5, 4: 1.25}, [7, 7, 7, INF, INF], 7, [1, 2, 5, 0.5, 1.25]),
        # All clients drop out.
        (0, dict.fromkeys(range(5), 0.75), [INF] * 5, 0.75, [0.75] * 5),
    ],
)
def test_tasks_take_turns_on_the_channel(first, lost, seconds, length, computing):
    """Times, losses, senders and joules match the hand calculation."""
    drop_outs = SimpleNamespace(lost_after=lambda number, _: lost.get(number))
    times = round_times(Listed(), drop_outs, CHOSEN, WHOLE, first, 0, upload)
    assert np.concatenate(times.seconds).tolist() == pytest.approx(seconds)
    assert times.length == pytest.approx(length)
    assert times.lost == [sum(n < 3 for n in lost), sum(n >= 3 for n in lost)]
    sending = [np.zeros(len(clients)) for clients in CHOSEN.values()]
    for place, (task, clients) in enumerate(CHOSEN.items()):
        who, draw = clients[times.awaited[place]], times.draws[place]
        assert (draw is None) == (len(who) == 0)
        if draw is not None:
            assert draw.network.numbers.tolist() == who.tolist()
            watts = UPLOADS.uplink.access.serve(Load(elements=1), draw).decision.powers_w
            assert (watts <= WATT[who] / len(who) ** 2 * (1 + 1e-9)).all()  # q_i^2 of the limit
            sending[place][times.awaited[place]] = AIR_SECONDS[task] * watts
    joules = 1000 * np.array(computing) + np.concatenate(sending)
    assert times.spent.each == pytest.approx(joules)
    assert times.spent.total == pytest.approx(joules.sum())


class Watched(Silent):
    """Records merged clients and their channel draws."""

    def __init__(self, air_seconds):
        super().__init__(round(1e5 * air_seconds))
        self.merges = []

    def train_round(self, clients, chosen=None, *, draw=None):
        self.merges.append((clients.tolist(), draw))


def made(models, first, drop_out):
    clock, records = Clock(), Records()
    handler = TaskRounds(
        models,
        clock,
        Listed(),
        RandomAssignment(Stream(1)),
        TaskRoundSettings(8, 6, (3, 2), first, drop_out),
        Stream(2),
        records,
        UPLOADS,
    )
    return clock, SimultaneousScheduler([12, 12]), handler, records


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("first", "drop_out"), [(0, 0.5), (2, 0.0), (1, 0.4)])
def test_channel_draws_are_indexed_by_merge(first, drop_out):
    """A task whose clients all drop out of a round uses no channel draw in that round."""
    models = [Watched(2.0), Watched(1.0)]
    clock, schedule, handler, records = made(models, first, drop_out)
    clock.after(0.0, Started())
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
    assert (min(handler.ledger.merges) < 12) == (drop_out > 0)
    for task, model in enumerate(models):
        assert len(model.merges) == handler.ledger.merges[task]
        for number, (clients, draw) in enumerate(model.merges):
            stream = STREAMS[task].child("channel")
            assert np.array_equal(draw.h, NETWORK.draws(stream, [number], clients).h[0])
        done = [s for s in records.spans if s.task == task and s.how == "done"]
        assert len(done) == sum(len(clients) for clients, _ in model.merges)
    whole = [s for s in records.spans if s.how == "done"]
    for one in whole:  # transmissions, at the ends of the spans, do not overlap between tasks
        for two in whole:
            if one.task == 0 and two.task == 1:
                overlap = min(one.end, two.end) - max(one.end - 2.0, two.end - 1.0)
                assert overlap < 1e-9


def test_an_ended_task_does_not_transmit():
    """After task 0 ends, rounds train only task 1, which transmits as soon as it is ready."""
    clock, _, handler, _ = made([Watched(2.0), Watched(1.0)], 0, 0.0)
    handler.carry_out(Cancel(0))
    handler.carry_out(Give(0))
    handler.settle()
    plan = handler._in_progress[0]
    assert plan.tasks == (1,)
    assert plan.times.length == pytest.approx(max(TRAINING) + 1.0)
    assert clock.upcoming == plan.times.length


@pytest.mark.parametrize("ended", [0, 1])
def test_a_task_that_ends_during_a_round_is_not_merged(ended):
    """The round ends as planned; it trains and merges only the other task."""
    models = [Watched(2.0), Watched(1.0)]
    clock, _, handler, records = made(models, 0, 0.0)
    handler.carry_out(Give(0))
    handler.settle()
    length = clock.upcoming
    handler.carry_out(Cancel(ended))
    assert clock.next() == Arrived(0)
    handler.carry_out(Merge(0))
    assert [len(model.merges) for model in models] == handler.ledger.merges == [ended, 1 - ended]
    assert [(merge.task, merge.seconds) for merge in records.merges] == [(1 - ended, length)]
    assert handler.ledger.returned == [3, 2]
