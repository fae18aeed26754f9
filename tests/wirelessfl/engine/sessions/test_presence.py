"""Client presence: arrivals follow a loss system; traces by hand; invariants of both."""

import csv
import heapq
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import Stream
from channels.indexed import exponential
from wirelessfl.base.errors import ConfigError
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.sessions import processes as stays
from wirelessfl.engine.sessions.attendance import Churn
from wirelessfl.engine.sessions.processes import Arrivals, Change, Stays, check_sessions_by_rounds
from wirelessfl.engine.sessions.traces import Stay, Trace, read_trace

STREAM = Stream(7, ("presence",))


def arrivals(clients=6, rate=2.0, mean_stay=3.0, initially=None, stream=STREAM):
    return Arrivals(clients, rate, mean_stay, initially, stream)


def until(presence, time):
    return list(itertools.takewhile(lambda change: change.time <= time, presence.changes()))


def check_order(presence, changes):
    """Check order and consistency of changes; return the clients present after them."""
    present = presence.initial()
    keys = [(change.time, change.joins, change.client) for change in changes]
    assert keys == sorted(set(keys))
    assert all(change.time > 0 for change in changes)
    for change in changes:
        assert present[change.client] != change.joins
        present[change.client] = change.joins
    return present


# --- Arrivals.


def mean_and_error(samples):
    samples = np.array(samples)
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


def erlang(load, servers):
    """Stationary distribution of the number of present clients; the last entry is Erlang B."""
    weights = [load**n / math.factorial(n) for n in range(servers + 1)]
    return np.array(weights) / sum(weights)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("clients", "rate", "mean_stay"), [(5, 2.0, 1.5), (12, 0.5, 20.0), (1, 1.0, 1.0)]
)
def test_number_of_present_clients_follows_a_loss_system(clients, rate, mean_stay):
    """The distribution and mean of the number, and the fraction of lost arrivals, match theory."""
    law = erlang(rate * mean_stay, clients)
    begin, length = 10 * mean_stay, 400 * mean_stay
    shares, lost = [], []
    for run in range(30):
        presence = arrivals(clients, rate, mean_stay, 0, STREAM.child(run))
        number, time, spent, joined = 0, begin, np.zeros(clients + 1), 0
        for change in until(presence, begin + length):
            if change.time > begin:
                spent[number] += change.time - time
                time, joined = change.time, joined + change.joins
            number += 1 if change.joins else -1
        spent[number] += begin + length - time
        shares.append(spent / length)
        lost.append(1 - joined / (rate * length))
    found, error = mean_and_error(shares)
    assert (3 * error < 0.02).all()
    assert found == pytest.approx(law, abs=0.02)
    numbers = np.arange(clients + 1)
    found, error = mean_and_error(shares @ numbers)
    assert 3 * error < 0.03 * (law @ numbers)
    assert found == pytest.approx(law @ numbers, rel=0.03)
    found, error = mean_and_error(lost)
    assert 3 * error < 0.03
    assert found == pytest.approx(law[-1], abs=0.03)


def test_arrival_rate_and_mean_stay():
    """Without lost arrivals, gaps and stays are exponential with the given means.

    Stays that began in the last quarter are omitted, since only the short ones have ended.
    """
    presence = arrivals(clients=5000, rate=30.0, mean_stay=4.0, initially=120)
    changes = until(presence, 400.0)
    joined = [change.time for change in changes if change.joins]
    gaps = np.diff(joined)
    mean, error = mean_and_error(gaps)
    assert 3 * error < 0.04 / 30
    assert mean == pytest.approx(1 / 30, rel=0.04)
    assert gaps.std() == pytest.approx(1 / 30, rel=0.06)  # standard error 1 %
    begun, stays = {}, []
    for change in changes:
        if change.joins:
            begun[change.client] = change.time
        elif (since := begun.pop(change.client, 400.0)) < 300.0:
            stays.append(change.time - since)
    mean, error = mean_and_error(stays)
    assert 3 * error < 0.04 * 4
    assert mean == pytest.approx(4, rel=0.04)
    assert np.std(stays) == pytest.approx(4, rel=0.06)


def test_clients_join_equally_often():
    """Each client joins equally often; three Poisson standard deviations are below 10 %."""
    joins = [
        c.client for c in until(arrivals(clients=10, rate=5.0, mean_stay=1.0), 4000) if c.joins
    ]
    counts = np.bincount(joins, minlength=10)
    assert 3 * math.sqrt(counts.mean()) < 0.1 * counts.mean()
    assert counts == pytest.approx(counts.mean(), rel=0.1)


def test_initial_clients_have_the_mean_stay():
    presence = arrivals(clients=3000, rate=0.0, mean_stay=2.0, initially=3000)
    changes = list(presence.changes())
    assert len(changes) == 3000
    assert not any(change.joins for change in changes)
    mean, error = mean_and_error([change.time for change in changes])
    assert 3 * error < 0.12
    assert mean == pytest.approx(2, abs=0.12)


def test_initial_clients_leave_in_the_order_of_their_stays():
    """Stay k of the initial clients, in order of their numbers, has draw k of its stream."""
    presence = arrivals(clients=4000, rate=0.0, mean_stay=2.0, initially=1500)
    draws = exponential(STREAM.child("first stays"))
    clients = np.flatnonzero(presence.initial()).tolist()
    expected = sorted((2.0 * draws[k], client) for k, client in enumerate(clients))
    assert [(change.time, change.client) for change in presence.changes()] == expected


@pytest.mark.parametrize(
    ("changes", "present"),
    [
        ({}, 6),  # 2 * 3
        ({"rate": 0.1}, 1),
        ({"rate": 0.01}, 1),
        ({"rate": 0.5, "mean_stay": 5.2}, 3),
        ({"rate": 1e308, "mean_stay": 1e9}, 6),
        ({"initially": 0}, 0),
        ({"initially": 4}, 4),
    ],
)
def test_number_of_initial_clients(changes, present):
    assert arrivals(**changes).initial().sum() == present


def test_initial_clients_are_random():
    seen = [arrivals(initially=2, stream=STREAM.child(run)).initial() for run in range(60)]
    assert np.sum(seen, 0).min() > 5  # 20 on average, standard deviation 3.7


def test_arrivals_are_reproducible():
    """Two interleaved iterators give the same arrivals; another stream gives different ones."""
    presence = arrivals()
    first, second = presence.changes(), presence.changes()
    ahead = [next(first) for _ in range(3000)]
    assert [next(second) for _ in range(2000)] == ahead[:2000]
    assert [next(first), *ahead] != [next(second), *ahead]
    assert until(arrivals(), 50) == until(arrivals(), 50)
    assert until(arrivals(stream=STREAM.child(1)), 50) != until(arrivals(), 50)
    assert (presence.initial() == arrivals().initial()).all()


@given(
    st.integers(1, 8),
    st.sampled_from([0.0, 1e-300, 0.01, 1.0, 50.0, 1e300]),
    st.sampled_from([1e-300, 0.05, 1.0, 30.0, 1e308]),
    st.integers(0, 8),
    st.integers(0, 999),
)
def test_changes_of_arrivals_are_consistent(clients, rate, mean_stay, initially, seed):
    """Clients join only while absent, even if rounding would end a stay when it begins."""
    stream = Stream(seed, ("any",))
    presence = Arrivals(clients, rate, mean_stay, min(initially, clients), stream)
    changes = list(itertools.islice(presence.changes(), 300))
    check_order(presence, changes)
    if changes:
        assert math.isfinite(changes[-1].time)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clients": 0}, "clients is 0: give an integer of at least 1"),
        ({"rate": -1.0}, r"rate is -1\.0: give"),
        ({"rate": math.inf}, "rate is inf"),
        ({"mean_stay": 0.0}, r"mean_stay is 0\.0"),
        ({"initially": -1}, "initially is -1"),
        ({"initially": 7}, "initially=7 conflicts with clients=6: choose initially 0 to 6"),
    ],
)
def test_invalid_arrivals_raise(changes, message):
    with pytest.raises(ConfigError, match=message):
        arrivals(**changes)


# --- Traces.

BY_HAND = """\
leave , client, join

 3.5,0, 0
,1,2
 7 , 0,3.5

inf, 2, 7
9,0,8
7,3,0
"""


def written(folder, text):
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_trace_by_hand(tmp_path):
    """Client 0's first two stays are merged; at time 7 two clients leave before one joins."""
    trace = read_trace(written(tmp_path, BY_HAND), 5)
    assert trace.initial().tolist() == [True, False, False, True, False]
    expected = [
        Change(2, 1, joins=True),
        Change(7, 0, joins=False),
        Change(7, 3, joins=False),
        Change(7, 2, joins=True),
        Change(8, 0, joins=True),
        Change(9, 0, joins=False),
    ]
    assert list(trace.changes()) == list(trace.changes()) == expected
    check_order(trace, expected)


def test_trace_from_a_spreadsheet(tmp_path):
    """A byte order mark, quotes, an extra column, and a line without its last value are read."""
    text = '\ufeff"client","note","join","leave"\r\n"1","a, b","0.5","2"\r\n0,,1\r\n'
    trace = read_trace(written(tmp_path, text), 2)
    assert trace == Trace((Stay(1, 0.5, 2.0), Stay(0, 1.0)), 2)


HEADER = "client,join,leave\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"trace\.csv is empty: give the header client,join,leave"),
        ("\n \n", "is empty"),
        (HEADER, "has a header and no stays"),
        ("client,join\n0,1\n", "line 1: .* 'client,join' has 0 columns 'leave'"),
        ("client,join,join,leave\n0,1,1,2\n", "line 1: .* has 2 columns 'join'"),
        ("\n0,1,2\n0,1,2\n", "line 2: .* has 0 columns 'client'"),
        (HEADER + "\nx,0,1\n", "line 3: client is 'x'. Give a client number"),
        (HEADER + "1.0,0,1\n", r"line 2: client is '1\.0'"),
        (HEADER + "0,,1\n", "line 2: join is ''. Give a number"),
        (HEADER + "0,soon,1\n", "line 2: join is 'soon'"),
        (HEADER + "0,0,late\n", "line 2: leave is 'late'. Give a number, or nothing"),
        (HEADER + "0,nan,1\n", "line 2: join is nan. Give a finite number"),
        (HEADER + "0,inf,\n", "line 2: join is inf"),
        (HEADER + "0,0,nan\n", r"line 2: leave is nan, and join is 0\.0\. Give a leave time"),
        (HEADER + "0,-1,1\n", r"line 2: join is -1\.0"),
        (HEADER + "0,2,2\n", r"line 2: leave is 2\.0, and join is 2\.0"),
        (HEADER + "0,2,1\n", r"line 2: leave is 1\.0"),
        (HEADER + "3,0,1\n", "line 2: client is 3, and the run has 3 clients. Give 0 to 2"),
        (HEADER + "-1,0,1\n", "line 2: client is -1"),
        (HEADER + "0,0,1,5\n", "line 2 has 4 values, and the header has 3 columns"),
        (
            HEADER + "1,4,9\n0,0,5\n0,6,\n1,0,4.5\n",
            r"line 2: client 1 joins at 4\.0, and is already present from 0\.0 to 4\.5 .*line 5\)",
        ),
        (HEADER + "0,0,\n1,0,1\n0,3,4\n", "line 4: client 0 joins at 3.0, .*to inf .*line 2"),
        (HEADER + "0,0,1\n0,0,1\n", "line 3: client 0 joins at 0.0, .*line 2"),
    ],
)
def test_invalid_traces_raise_and_name_the_file(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read_trace(written(tmp_path, text), 3)
    assert str(caught.value).startswith(str(tmp_path / "trace.csv"))
    assert "\n" not in str(caught.value)


def test_unreadable_files_raise(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"none\.csv cannot be read: No such file"):
        read_trace(tmp_path / "none.csv", 3)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_trace(tmp_path, 3)
    (tmp_path / "trace.csv").write_bytes(b"client,join,leave\n\xff,0,1\n")
    with pytest.raises(ConfigError, match=r"is not a CSV file: .*0xff"):
        read_trace(tmp_path / "trace.csv", 3)
    long = "x" * (csv.field_size_limit() + 1)
    with pytest.raises(ConfigError, match="is not a CSV file: field larger"):
        read_trace(written(tmp_path, HEADER + long), 3)


@pytest.mark.parametrize(
    ("stays", "clients", "message"),
    [
        ((), 3, "stays is empty"),
        ((Stay(0, 0, 2), Stay(1, 3, 3)), 3, r"stays\[1\]: leave is 3"),
        ((Stay(0, 0, 2), Stay(0, 1, 3)), 3, r"stays\[1\]: client 0 joins at 1, .*\(stays\[0\]\)"),
        ((Stay(1.5, 0, 2),), 3, r"stays\[0\]: client is 1\.5: give an integer"),
        ((Stay(0, 0, 2),), 0, "clients is 0"),
    ],
)
def test_invalid_stays_raise(stays, clients, message):
    with pytest.raises(ConfigError, match=message):
        Trace(stays, clients)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 20), min_size=2, max_size=8)),
        min_size=1,
        max_size=4,
        unique_by=lambda own: own[0],
    ),
    st.randoms(use_true_random=False),
)
def test_present_clients_equal_the_union_of_the_stays(clients, random):
    """The stays are random, and some of a client's stays follow each other immediately."""
    stays = []
    for client, times in clients:
        times = sorted(set(times))
        for begin, end in itertools.pairwise(times):
            if random.random() < 0.7:
                stays.append(Stay(client, begin, end))
    if not stays:
        return
    random.shuffle(stays)
    trace = Trace(tuple(stays), 4)
    check_order(trace, list(trace.changes()))
    for time in np.arange(0, 21, 0.5):
        expected = np.zeros(4, dtype=bool)
        for client, join, leave in stays:
            expected[client] |= join <= time < leave
        assert (check_order(trace, until(trace, time)) == expected).all()


def test_sessions_that_begin_without_clients_raise():
    trace = Trace((Stay(0, 0, 10), Stay(1, 10, 15), Stay(0, 29, 41)), 2)
    check_sessions_by_rounds(trace, 2, 10)
    with pytest.raises(ConfigError, match="session 2 begins at round 20 without a client"):
        check_sessions_by_rounds(trace, 3, 10)
    check_sessions_by_rounds(trace, 2, 30)
    with pytest.raises(ConfigError, match="session 1 begins at round 15"):
        check_sessions_by_rounds(trace, 2, 15)
    with pytest.raises(ConfigError, match="session 0 begins at round 0"):
        check_sessions_by_rounds(Trace((Stay(0, 1),), 1), 3, 10)
    with pytest.raises(ConfigError, match="sessions is 0"):
        check_sessions_by_rounds(trace, 0, 10)
    with pytest.raises(ConfigError, match="session 1 begins at round 1000 without a client"):
        check_sessions_by_rounds(arrivals(rate=0.0), 2, 1000)
    check_sessions_by_rounds(arrivals(clients=200, rate=10.0, mean_stay=10.0), 5, 20)


@pytest.mark.parametrize("session", [1, 2, 3])
def test_a_session_that_ends_early_skips_the_changes_of_its_other_rounds(session):
    """Four rounds per session; the first ends when its only client leaves, in its second round.

    A session opens with the clients that are present at its first round, wherever the last ended.
    """
    stays = (Stay(0, 0, 1.5), Stay(1, 2.5, 3), Stay(2, 3, 9), Stay(3, 4, 8), Stay(4, 5, 20))
    clock = Clock()
    churn = Churn(Trace(stays, 5), "rounds", 4, clock)
    assert churn.open(0).tolist() == [True, False, False, False, False]
    for number in range(2):
        churn.round_started(number, 10.0)
        clock.now += 10.0
    assert [change.client for change in churn.new_changes()] == [0]
    present = [stay.join <= 4 * session < stay.leave for stay in stays]
    assert churn.open(session).tolist() == present
    assert churn.snapshot() == {"changes": sum(0 < t <= 4 * session for s in stays for t in s[1:])}


@given(st.integers(1, 9), st.lists(st.none() | st.integers(0, 30), max_size=60))
def test_stays_end_in_the_order_of_a_heap(soon, steps):
    """None removes the earliest stay; a number adds one with that end, or a later one."""
    found, expected = Stays(), []
    before, stays.SOON = stays.SOON, soon
    try:
        for client, step in enumerate(steps):
            if step is not None:
                found.add(float(step), client)
                heapq.heappush(expected, (float(step), client))
            elif expected:
                assert found.first == heapq.heappop(expected)
                found.remove_first()
            if client % 3:
                assert found.first == (expected[0] if expected else None)
    finally:
        stays.SOON = before


def test_most_stays_take_few_bytes():
    ends = Stream(1, ("ends",)).generator().exponential(size=50_000)
    tracemalloc.start()
    try:
        found = Stays()
        for client in range(len(ends)):
            found.add(float(ends[client]), client)
            earliest = found.first  # from the start, when few stays are known
        assert earliest == (ends.min(), ends.argmin())
        held = tracemalloc.get_traced_memory()[0]
        assert held < 18 * len(ends)
    finally:
        tracemalloc.stop()
