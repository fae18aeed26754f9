"""Rounds of two tasks report durations and losses to the assignment, as calculated by hand."""

import numpy as np
import pytest

from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent
from wirelessfl.air.delays import Delays
from wirelessfl.engine.assignment import RandomAssignment
from wirelessfl.engine.events import Arrived, Cancel, Give, Merge
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.round_times import TaskRoundSettings
from wirelessfl.engine.tasks.task_rounds import TaskRounds

SECONDS = [[3.0, 1.0, 4.0, 1.5, 9.0, 2.6], [5.0, 3.5, 8.0, 9.7, 9.3, 2.3]]  # by task and client


class Seconds(Delays):
    """Durations by task and client."""

    def seconds(self, task, client, number):
        return SECONDS[task][client]


class Told(RandomAssignment):
    """Records reports. Assigns the first half of the clients to task 0, the others to task 1."""

    wants_losses = True

    def __init__(self):
        super().__init__(Stream(1))
        self.told = []

    def choose(self, number, available, shares):
        half = len(available) // 2
        return [available[:half], available[half:]] if shares[0] else [available[:0], available]

    def learn(self, chosen, seconds, losses):
        self.told.append([[own.tolist() for own in kind] for kind in (chosen, seconds, losses)])


class Counted(Silent):
    """A client's loss is 10 * client + the number of trained rounds, or NaN for ``lost``."""

    def __init__(self, lost):
        self.trained, self.lost = [], lost

    def train_round(self, clients, chosen=None, draw=None):
        self.trained.append(clients.tolist())

    def mean_losses(self, clients):
        return np.where(clients == self.lost, np.nan, 10.0 * clients + len(self.trained))


def test_losses_and_times_of_awaited_clients_are_reported():
    """Each task awaits two of its three clients.

    Clients 0 and 1 complete task 0 at 3 s; clients 5 and 4 complete task 1 at 9.3 s.
    """
    clock, assignment, models = Clock(), Told(), [Counted(-1), Counted(4)]
    merges = []
    handler = TaskRounds(
        models, clock, Seconds(), assignment, TaskRoundSettings(6, 6, (3, 3), first=2), Stream(2),
        Records(merges=merges),
    )  # fmt: skip

    def one_round(number):
        handler.carry_out(Give(number))
        handler.settle()
        assert clock.next() == Arrived(number)
        handler.carry_out(Merge(number))

    one_round(0)
    one_round(1)
    assert clock.now == pytest.approx(2 * 9.3)
    assert [model.trained for model in models] == [[[0, 1]] * 2, [[4, 5]] * 2]
    assert assignment.told == [
        # Clients 2 and 3 are not awaited, and the loss of client 4 is NaN: they are not reported.
        [[[0, 1], [5]], [[3.0, 1.0], [2.3]], [[0.0, 10.0], [50.0]]],
        [[[0, 1], [5]], [[3.0, 1.0], [2.3]], [[1.0, 11.0], [51.0]]],
    ]
    ledger = handler.ledger
    assert (ledger.issued, ledger.returned, ledger.lost) == ([6, 6], [4, 4], [0, 0])
    assert [(merge.task, merge.seconds, merge.staleness) for merge in merges] == [
        (task, pytest.approx(at), (0, 0)) for at in (9.3, 18.6) for task in (0, 1)
    ]
    assert handler.status(0)["updates"] == 8
    assert (handler.status(0)["requests"], handler.status(0)["buffer"]) == (3, 2)
    handler.carry_out(Cancel(0))
    assert handler.allocation() == {1: 6}
    one_round(2)
    assert clock.now == pytest.approx(18.6 + 3.5)
    assert models[1].trained[-1] == [1, 5]
    assert assignment.told[-1] == [[[], [1, 5]], [[], [3.5, 2.3]], [[], [12.0, 52.0]]]


def test_without_losses_a_stopped_client_is_reported_with_the_round_duration():
    """Durations of all clients are reported; client 3 is stopped at 9.3 s, when the round ends."""
    clock, assignment = Clock(), Told()
    assignment.wants_losses = False
    assignment.learn = lambda *told: assignment.told.append(told)
    handler = TaskRounds(
        [Silent()] * 2, clock, Seconds(), assignment, TaskRoundSettings(6, 6, (3, 3), first=2),
        Stream(2),
    )  # fmt: skip
    handler.carry_out(Give(0))
    handler.settle()
    clock.next()
    handler.carry_out(Merge(0))
    (chosen, seconds, losses), *rest = assignment.told
    assert not rest
    assert losses is None
    assert [own.tolist() for own in chosen] == [[0, 1, 2], [3, 4, 5]]
    assert [own.tolist() for own in seconds] == [[3.0, 1.0, 4.0], [9.3, 9.3, 2.3]]
