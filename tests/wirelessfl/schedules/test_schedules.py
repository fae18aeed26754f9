"""The virtual clock and the synchronous schedule."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.schedules import Clock, RoundsScheduler
from wirelessfl.schedules.events import Arrived, Give, Merge, Report, Save, Started, Stop


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.data())
def test_time_never_runs_backwards_and_ties_keep_their_order(delays, data):
    clock = Clock()
    for number, delay in enumerate(delays):
        clock.after(delay, number)
    seen, spawned = [], len(delays)
    while (event := clock.next()) is not None:
        assert not seen or (clock.now, event) >= seen[-1] or clock.now > seen[-1][0]
        seen.append((clock.now, event))
        if spawned < 60 and data.draw(st.booleans()):
            clock.after(data.draw(st.sampled_from([0.0, 0.5])), spawned)
            spawned += 1
    assert len(seen) == spawned
    times = [time for time, _ in seen]
    assert times == sorted(times)
    for (t1, e1), (t2, e2) in pairwise(seen):
        assert t1 < t2 or e1 < e2


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_impossible_times_are_rejected(seconds):
    with pytest.raises(ValueError, match="give a finite time >= 0 until the event"):
        Clock().after(seconds, "never")


def test_a_synchronous_run_makes_the_expected_decisions():
    schedule = RoundsScheduler(rounds=3, report_every=2)
    assert schedule.decide(Started()) == [Report(0), Give(0)]
    assert schedule.decide(Arrived(0)) == [Merge(0), Save(), Give(1)]
    assert schedule.decide(Arrived(1)) == [Merge(1), Report(2), Save(), Give(2)]
    assert schedule.decide(Arrived(2)) == [Merge(2), Report(3), Save(), Stop()]


def test_a_restored_schedule_continues():
    schedule = RoundsScheduler(rounds=3)
    schedule.decide(Started())
    schedule.decide(Arrived(0))
    other = RoundsScheduler(rounds=3)
    other.restore(schedule.snapshot())
    assert other.decide(Started()) == [Give(1)]
    done = RoundsScheduler(rounds=3)
    done.restore({"rounds_done": 3})
    assert done.decide(Started()) == [Stop()]
