"""Synchronous rounds of several tasks: awaited clients, durations, and allocation of clients."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import section_vi_c
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Silent, traffic_of
from wirelessfl.air.delays import Delays, Wireless
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.engine.assignment import RandomAssignment
from wirelessfl.engine.events import Cancel, Deadline, Give, Merge, Reached, Report, Started, Stop
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import Clock, SimultaneousScheduler
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.round_times import TaskRoundSettings
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.theory import arrival_seconds, synchronous_round_seconds
from wirelessfl.training.steps import StepCounts


class Exponential(Delays):
    """Exponential durations with mean 2 s, indexed by the number of the training run."""

    def __init__(self, size=200_000):
        self.drawn = Stream(5).generator().exponential(2.0, size)

    def seconds(self, task, client, number):
        return float(self.drawn[number])


def rounds(delays, shares, *, first=0, clients=40, available=None, drop_out=0.0, records=None):
    clock = Clock()
    handler = TaskRounds(
        [Silent() for _ in shares],
        clock,
        delays,
        RandomAssignment(Stream(1)),
        TaskRoundSettings(clients, available or clients, shares, first, drop_out),
        Stream(2),
        records,
    )
    return handler, clock


@pytest.mark.thorough
def test_a_round_takes_the_harmonic_sum():
    """If all clients are awaited, the mean round duration is the harmonic sum of Section 4.

    The durations' standard deviation is 2.5 s, so 1500 rounds have a standard error of 1 %.
    """
    handler, _ = rounds(Exponential(), (12, 8))
    lengths = [handler.plan(number).times.length for number in range(1500)]
    expected = synchronous_round_seconds(requests=(12, 8), rate_hz=0.5)
    assert np.mean(lengths) == pytest.approx(expected, rel=0.033)


def test_stragglers_are_not_awaited():
    """The mean round duration is that of the k-th fastest of n clients (standard error 0.8 %)."""
    handler, _ = rounds(Exponential(), (20,), first=12)
    plans = [handler.plan(number) for number in range(1500)]
    expected = arrival_seconds(arrival=12, requests=20, rate_hz=0.5)
    assert np.mean([plan.times.length for plan in plans]) == pytest.approx(expected, rel=0.025)
    for plan in plans[:20]:
        seconds, awaited = plan.times.seconds[0], plan.times.awaited[0]
        assert awaited.sum() == 12
        assert seconds[awaited].max() == plan.times.length <= seconds[~awaited].min()


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 30),
    st.sampled_from([0.0, 0.3]),
)
def test_rounds_have_disjoint_sets_of_the_given_sizes(shares, first, number, drop_out):
    handler, _ = rounds(Exponential(), shares, first=first, available=36, drop_out=drop_out)
    plan = handler.plan(number)
    assert [len(own) for own in plan.chosen] == shares
    everybody = np.concatenate(plan.chosen)
    assert len(set(everybody.tolist())) == len(everybody)
    for seconds, awaited in zip(plan.times.seconds, plan.times.awaited, strict=True):
        assert np.isfinite(seconds[awaited]).all()
        in_time = int(np.isfinite(seconds).sum())
        assert awaited.sum() == (min(first, in_time) if first else in_time)
    again = handler.plan(number)
    assert again.times.length == plan.times.length
    assert all((a == b).all() for a, b in zip(again.chosen, plan.chosen, strict=True))


def test_drop_outs_are_counted_and_rounds_end():
    """With drop_out=0.3, 30 % of 40,000 updates are lost (standard error 0.23 %)."""
    handler, _ = rounds(Exponential(), (20,), drop_out=0.3)
    plans = [handler.plan(number) for number in range(2000)]
    lost = sum(plan.times.lost[0] for plan in plans)
    assert lost / 40_000 == pytest.approx(0.3, abs=0.01)
    assert all(math.isfinite(plan.times.length) for plan in plans)
    assert all(plan.times.awaited[0].sum() == 20 - plan.times.lost[0] for plan in plans)


def test_clients_of_an_ended_task_are_allocated_to_the_others():
    handler, _ = rounds(Exponential(), (12, 6, 3), available=30)
    handler.carry_out(Cancel(0))
    assert handler.allocation() == {1: 14, 2: 7}
    plan = handler.plan(0)
    assert plan.tasks == (1, 2)
    assert [len(own) for own in plan.chosen] == [14, 7]
    handler.carry_out(Cancel(2))
    assert handler.allocation() == {1: 21}


def test_availability_is_drawn_anew_for_each_round():
    """With 12 of 40 clients available, a client trains in about 90 of 300 rounds (deviation 8)."""
    handler, _ = rounds(Exponential(), (6, 6), available=12)
    counts = np.zeros(40)
    for number in range(300):
        for own in handler.plan(number).chosen:
            counts[own] += 1
    assert counts.sum() == 300 * 12
    assert 50 < counts.min() <= counts.max() < 130


def test_the_schedule_makes_the_expected_decisions():
    schedule = SimultaneousScheduler([2, 3], report_every=2)
    assert [type(d) for d in schedule.decide(Started())] == [Report, Report, Give]
    from wirelessfl.engine.events import Arrived

    assert [type(d).__name__ for d in schedule.decide(Arrived(0))] == ["Merge", "Save", "Give"]
    second = schedule.decide(Arrived(1))
    assert [type(d).__name__ for d in second] == [
        "Merge",
        "Report",
        "Cancel",
        "Report",
        "Save",
        "Give",
    ]
    assert second[0] == Merge(1)
    assert schedule.running == (1,)
    assert [type(d) for d in schedule.decide(Reached(1))] == [Cancel, Stop]
    assert schedule.decide(Reached(1)) == []


def test_a_task_that_reaches_its_target_skips_the_next_round():
    """The model is evaluated before the next round starts."""
    handler, clock = rounds(Exponential(), (6, 6), records=Records())
    clock.after(0.0, Started())
    clock.at(40.0, Deadline())

    def report(decision):
        return Reached(0) if decision.task == 0 and decision.round == 2 else None

    simulate(SimultaneousScheduler([99, 99]), handler, clock, report, lambda: None)
    first = [merge.seconds for merge in handler.records.merges if merge.task == 0]
    second = [merge.seconds for merge in handler.records.merges if merge.task == 1]
    assert first == second[:2]
    assert len(second) > 3
    assert handler.ledger.issued[0] == 12
    assert handler.ledger.issued[1] == 12 + 12 * (len(second) - 2)


@pytest.mark.parametrize("first", [0, 2])
def test_uploads_of_a_round_share_the_band(first):
    """TDMA uploads that start together end shortest first, at the times computed by hand."""
    network = section_vi_c(1, 4, stream=Stream(4))
    delays = Wireless(
        network,
        UPLINKS.find("tdma")(),
        [StepCounts(10)],
        [np.full(4, 0.1)],
        [traffic_of(10**6)],
        None,
        Stream(8),
    )
    handler, _ = rounds(delays, (4,), first=first, clients=4)
    plan = handler.plan(3)
    alone = []
    for row, client in enumerate(plan.chosen[0].tolist()):
        snr = delays.received_snr(client, 3 * 4 + row)
        alone.append(32e6 / float(delays.rates(np.array([snr])).bps[0]))
    order, ends, done = np.sort(alone), [], 0.0
    for rank, length in enumerate(order):  # with equal slots the shortest upload ends first
        done += (length - (order[rank - 1] if rank else 0.0)) * (4 - rank)
        ends.append(1.0 + done)
    found = np.sort(plan.times.seconds[0])
    wanted = first or 4
    assert found[:wanted] == pytest.approx(ends[:wanted])
    assert np.isinf(found[wanted:]).all()
    assert plan.times.length == pytest.approx(ends[wanted - 1])
