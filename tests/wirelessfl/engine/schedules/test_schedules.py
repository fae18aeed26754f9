"""The virtual clock, and the schedules of rounds and of sessions."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.engine.events import (
    Arrived,
    Begin,
    Close,
    Deadline,
    Give,
    Joined,
    Merge,
    Open,
    Present,
    Report,
    Save,
    Started,
    Stop,
)
from wirelessfl.engine.schedules import Clock, RoundsScheduler, SessionsScheduler


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


def row(done, session, number):
    """Row after ``done`` rounds in all, and ``number`` rounds of the session."""
    return Report(done, status={"session": session, "session_round": number})


# Two sessions of four rounds; one trial round before the first session, two before the second.
TRIAL, FIRST = Give(0, trial=True), [Begin(0), row(0, 0, 0), Save(), Give(0)]
STORY = [
    (Started(), [Open(0)]),
    (Present(0), []),  # waits for a client
    (Joined(), [Open(0)]),
    (Present(2), [TRIAL]),
    (Joined(), []),  # joins the next session
    (Arrived(0, trial=True), [Merge(0, trial=True)]),
    (Present(0), [Open(0)]),  # all left during the trial, which is repeated with other clients
    (Present(1), [TRIAL]),
    (Arrived(0, trial=True), [Merge(0, trial=True)]),
    (Present(1), FIRST),
    (Arrived(0), [Merge(0)]),
    (Present(1), [row(1, 0, 1), Save(), Give(1)]),  # one of the first rounds
    (Arrived(1), [Merge(1)]),
    (Present(1), [Save(), Give(2)]),
    (Arrived(2), [Merge(2)]),
    (Present(1), [row(3, 0, 3), Save(), Give(3)]),  # every third round
    (Arrived(3), [Merge(3)]),
    (Present(1), [row(4, 0, 4), Close(0), Save(), Open(1)]),
    (Present(5), [Give(2, trial=True)]),
    (Arrived(2, trial=True), [Merge(2, trial=True)]),
    (Present(5), [Give(3, trial=True)]),
    (Arrived(3, trial=True), [Merge(3, trial=True)]),
    (Present(5), [Begin(1), row(4, 1, 0), Save(), Give(4)]),
    (Arrived(4), [Merge(4)]),
    (Present(4), [row(5, 1, 1), Save(), Give(5)]),
    (Arrived(5), [Merge(5)]),
    (Present(0), [row(6, 1, 2), Stop()]),  # all left
]


def sessions():
    return SessionsScheduler(2, 4, lambda session: session + 1, report_every=3, report_first=1)


def test_sessions_make_the_expected_decisions():
    schedule = sessions()
    assert [(event, schedule.decide(event)) for event, _ in STORY] == STORY


def test_restored_sessions_continue():
    """After each checkpoint: with the next round, or with the trials of the next session."""
    schedule, saved = sessions(), 0
    for place, (event, _) in enumerate(STORY):
        decided = schedule.decide(event)
        if Save() in decided:
            other = sessions()
            other.restore(schedule.snapshot())
            assert other.decide(Started()) == decided[-1:]
            rest = STORY[place + 1 :]
            assert [(event, other.decide(event)) for event, _ in rest] == rest
            saved += 1
    assert saved == 7


@pytest.mark.parametrize(
    ("events", "last"),
    [(0, [row(0, 0, 0), Stop()]), (13, [row(2, 0, 2), Stop()]), (19, [Stop()])],
)
def test_the_deadline_of_sessions_reports_the_model_of_a_session(events, last):
    """Before a later session begins there is no model of it."""
    schedule = sessions()
    for event, _ in STORY[:events]:
        schedule.decide(event)
    assert schedule.decide(Deadline()) == last
