"""Upload times in a shared band match hand computation, small time steps and a fluid model."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    Network,
    SharedBand,
    Stream,
    ofdma_seconds_per_bit,
    rate_bps,
    snr_linear,
    tdma_seconds_per_bit,
)

RATES = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 0.25, 3.0, 1.0])  # bit/s of each client alone


def tdma(clients):
    return len(clients) / RATES[clients]


def ofdma(clients):
    """Seconds per bit with full power in 1/n of the band: more than 1/n of a client's full rate."""
    n, snr = len(clients), RATES[clients]
    return n / np.log2(1 + n * snr)


def uneven(clients):
    """Seconds per bit of an asymmetric rule: rates depend on the order of the uploads' starts."""
    return (1 + np.arange(len(clients))) / RATES[clients]


PACES = {"tdma": tdma, "ofdma": ofdma, "uneven": uneven}


def drain(band):
    """Completion times of all uploads, as (seconds, key)."""
    ends = []
    while (end := band.next_done()) is not None:
        band.finish(*end)
        ends.append(end)
    return ends


def play(band, starts, cancelled=()):
    """Simulate uploads (seconds, key, bits, client) and cancellations (seconds, key).

    Returns the completion times by key.
    """
    ends, events = {}, [(seconds, 0, (key, bits, client)) for seconds, key, bits, client in starts]
    events = sorted(events + [(seconds, 1, key) for seconds, key in cancelled], key=lambda e: e[:2])
    for seconds, kind, upload in events:
        while (end := band.next_done()) is not None and end[0] <= seconds:
            band.finish(*end)
            ends[end[1]] = end[0]
        if not kind:
            band.start(seconds, *upload)
        elif upload in band.snapshot()["keys"]:
            band.remove(seconds, upload)
    return ends | {key: seconds for seconds, key in drain(band)}


@st.composite
def uploads(draw, most=6):
    """One upload per client, with distinct or equal start times, and some cancellations."""
    number = draw(st.integers(1, most))
    gaps = st.one_of(st.just(0.0), st.floats(0, 5), st.integers(0, 3).map(float))
    seconds = np.cumsum([draw(gaps) for _ in range(number)]).tolist()
    sizes = st.one_of(st.just(0.0), st.floats(1e-3, 10), st.integers(1, 9).map(float))
    clients = draw(st.permutations(range(8)))[:number]
    starts = [
        (s, 10 + i, draw(sizes), c) for i, (s, c) in enumerate(zip(seconds, clients, strict=True))
    ]
    gone = [
        (s + draw(st.floats(0, 8)), key) for s, key, _, _ in starts if draw(st.integers(0, 4)) == 0
    ]
    return starts, gone


def fluid(pace, starts, cancelled):
    """Reference: an event loop that tracks the remaining bits of each upload in dictionaries."""
    now, left, client_of, ends = 0.0, {}, {}, {}
    changes = [(s, key, bits, client) for s, key, bits, client in starts]
    changes = sorted(changes + [(s, key, None, None) for s, key in cancelled], key=lambda c: c[0])
    while changes or left:
        paces = pace(np.array([client_of[k] for k in left], dtype=int)) if left else []
        paces = dict(zip(left, paces, strict=True))
        due = min((now + left[k] * paces[k] for k in left), default=math.inf)
        until = min(due, changes[0][0] if changes else math.inf)
        for k in left:
            left[k] -= (until - now) / paces[k]
        now = until
        for k in [k for k in left if left[k] <= 1e-9]:
            ends[k] = now
            del left[k]
        while changes and changes[0][0] <= now:
            _, key, bits, client = changes.pop(0)
            if bits is None:
                left.pop(key, None)
            else:
                left[key], client_of[key] = bits, client
    return ends


@pytest.mark.parametrize("pace", PACES)
@given(uploads())
def test_completion_times_match_a_fluid_model(pace, problem):
    starts, cancelled = problem
    ends = play(SharedBand(PACES[pace]), starts, cancelled)
    assert ends.keys() >= {key for _, key, _, _ in starts} - {key for _, key in cancelled}
    for key, seconds in fluid(PACES[pace], starts, cancelled).items():
        # An upload cancelled exactly at its end may count as completed or cancelled.
        if key in ends:
            assert ends[key] == pytest.approx(seconds, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("pace", PACES)
def test_completion_times_match_small_time_steps(pace):
    """Times match integration in steps of 1 ms, which applies each change up to one step late."""
    rng = np.random.default_rng(5)
    starts = [
        (s, i, b, i)
        for i, (s, b) in enumerate(
            zip(np.sort(rng.uniform(0, 4, 8)), rng.uniform(1, 4, 8), strict=True)
        )
    ]
    ends = play(SharedBand(PACES[pace]), starts)
    assert len(ends) == 8
    step, left, found, waiting = 1e-3, {}, {}, list(starts)
    for tick in range(200_000):
        now = tick * step
        while waiting and waiting[0][0] <= now:
            left[waiting[0][1]] = waiting[0][2]
            waiting.pop(0)
        if not left and not waiting:
            break
        if left:
            for k, seconds in zip(list(left), PACES[pace](np.array(list(left))), strict=True):
                left[k] -= step / seconds
            for k in [k for k in left if left[k] <= 0]:
                found[k] = now + step
                del left[k]
    assert found == pytest.approx(ends, abs=0.05)


def test_two_uploads_by_hand():
    """At 1 bit/s, 10 bits start at 0 s and 4 bits at 2 s: the uploads end at 14 s and 10 s.

    From 2 s to 10 s they share the band equally and send 4 bits each. The remaining 4 bits of the
    first upload take 4 s.
    """
    band = SharedBand(lambda clients: np.full(len(clients), float(len(clients))))
    band.start(0.0, 1, 10.0)
    assert band.next_done() == (10.0, 1)
    band.start(2.0, 2, 4.0)
    assert band.next_done() == (10.0, 2)
    assert drain(band) == [(10.0, 2), (14.0, 1)]
    assert band.next_done() is None


def test_a_cancelled_upload_frees_its_share():
    band = SharedBand(lambda clients: np.full(len(clients), float(len(clients))))
    band.start(0.0, 1, 10.0)
    band.start(0.0, 2, 10.0)
    assert band.remove(4.0, 1) == 8.0
    assert drain(band) == [(12.0, 2)]


@given(st.floats(0, 1e6), st.floats(0, 1e9), st.floats(1e-9, 1e3))
def test_one_upload_takes_its_bits_times_seconds_per_bit(now, bits, pace):
    band = SharedBand(lambda clients: [pace])
    band.start(now, 7, bits)
    assert band.next_done() == (now + bits * pace, 7)
    band.finish(now + bits * pace, 7)
    assert band.next_done() is None


@given(uploads(), st.sampled_from(sorted(PACES)))
def test_no_bit_is_lost(problem, pace):
    """The integral of the rates, plus the unsent bits of cancelled uploads, equals all bits."""
    starts, cancelled = problem
    carried, sent, dropped = 0.0, sum(bits for _, _, bits, _ in starts), 0.0
    band, now, speed = SharedBand(PACES[pace]), 0.0, 0.0
    clients, events = {}, [(s, 1, (k, b, c)) for s, k, b, c in starts]
    events += [(s, 0, k) for s, k in cancelled]
    events = sorted(events, key=lambda event: event[:2])
    while events or clients:
        end = band.next_done()
        due = end is not None and (not events or end[0] <= events[0][0])
        at = end[0] if due else events[0][0]
        carried, now = carried + speed * (at - now), at
        if due:
            band.finish(*end)
            del clients[end[1]]
        else:
            _, kind, upload = events.pop(0)
            if kind:
                band.start(at, *upload)
                clients[upload[0]] = upload[2]
            elif upload in clients:
                dropped += band.remove(at, upload)
                del clients[upload]
        speed = (
            (1 / PACES[pace](np.array(list(clients.values()), dtype=int))).sum() if clients else 0.0
        )
    assert carried + dropped == pytest.approx(sent, rel=1e-9, abs=1e-9)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), st.floats(1e-3, 1e3))
def test_equal_uploads_end_together_in_order_of_their_starts(clients, bits):
    band = SharedBand(lambda clients: np.full(len(clients), 0.1 * len(clients)))
    keys = [31 * i % 97 for i in range(len(clients))]
    for key, client in zip(keys, clients, strict=True):
        band.start(0.3, key, bits, client)
    ends = drain(band)
    assert [key for _, key in ends] == keys
    assert {seconds for seconds, _ in ends} == {0.3 + bits * (0.1 * len(clients))}


def test_all_uploads_finish_despite_rounding():
    """1000 uploads of random sizes all end, although times near 1e6 s are rounded to 1e-10 s."""
    rng = np.random.default_rng(2)
    band = SharedBand(lambda clients: 1e-9 * len(clients) * (1 + clients % 7 / 3))
    starts = [
        (1e6 + s, i, b, i)
        for i, (s, b) in enumerate(
            zip(np.sort(rng.random(1000)), rng.uniform(0, 1e7, 1000), strict=True)
        )
    ]
    ends = play(band, starts)
    assert len(ends) == 1000
    assert all(ends[key] >= seconds for seconds, key, _, _ in starts)


@given(uploads(), st.integers(0, 12))
def test_a_restored_band_continues_without_a_difference(problem, cut):
    """Completion times are bit-identical after a round trip through JSON."""
    starts, _ = problem
    plain, whole = SharedBand(uneven), play(SharedBand(uneven), starts)
    ends = {}
    for number, (seconds, *upload) in enumerate(starts):
        while (end := plain.next_done()) is not None and end[0] <= seconds:
            plain.finish(*end)
            ends[end[1]] = end[0]
        plain.start(seconds, *upload)
        if number == cut:
            stored = json.dumps(plain.snapshot(), allow_nan=False)
            plain = SharedBand(uneven)
            plain.restore(json.loads(stored))
            assert json.dumps(plain.snapshot()) == stored
    assert ends | {key: seconds for seconds, key in drain(plain)} == whole


def test_an_empty_and_a_blocked_band_are_restored():
    """An empty band, and one with an upload at rate 0, can be restored.

    Restored rates apply until the next change.
    """
    band = SharedBand(lambda clients: np.where(clients == 1, np.inf, 2.0))
    other = SharedBand(lambda clients: np.ones(len(clients)))  # used from the next change on
    other.restore(json.loads(json.dumps(band.snapshot(), allow_nan=False)))
    assert other.next_done() is None
    band.start(1.0, 1, 5.0)
    assert band.next_done() is None  # never completes
    band.start(2.0, 2, 5.0)
    other.restore(json.loads(json.dumps(band.snapshot(), allow_nan=False)))
    assert other.next_done() == band.next_done() == (12.0, 2)
    other.finish(12.0, 2)
    assert other.remove(14.0, 1) == 3.0
    band.start(3.0, 3, 0.0, client=1)  # 0 bits take 0 s even at rate 0
    assert band.next_done() == (3.0, 3)


@pytest.mark.parametrize("scheme", [tdma_seconds_per_bit, ofdma_seconds_per_bit])
def test_the_band_of_a_network(scheme):
    """With the rates of a network with two cells, completion times equal those by hand."""
    network = Network.from_snr(
        [0, 0, 0, 1], cpu_hz=1e9, snr_db=[0, 10, 5, 3], bandwidth_hz=[1e6, 2e6]
    )
    draw = network.draw(Stream(3))
    band = SharedBand(lambda clients: scheme(draw, np.isin(np.arange(4), clients))[clients])
    for client in (2, 0, 3):
        band.start(0.0, client, 1e6)
    ends = {key: seconds for seconds, key in drain(band)}

    def bps(client, sharers):
        snr, hz = snr_linear(network.snr_db[client]), network.bandwidth_hz[network.cell_of[client]]
        if scheme is tdma_seconds_per_bit:
            return rate_bps(hz, snr, draw.gain[client]) / sharers
        return rate_bps(hz / sharers, sharers * snr, draw.gain[client])

    first, second = sorted((0, 2), key=lambda client: -bps(client, 2))
    assert ends[3] == pytest.approx(1e6 / bps(3, 1))
    assert ends[first] == pytest.approx(1e6 / bps(first, 2))
    rest = 1e6 - ends[first] * bps(second, 2)
    assert ends[second] == pytest.approx(ends[first] + rest / bps(second, 1))


def test_invalid_calls_raise_and_change_nothing():
    band = SharedBand(lambda clients: np.full(len(clients), float(len(clients))))
    with pytest.raises(ValueError, match="now_seconds is nan after -inf"):
        band.start(np.nan, 1, 1.0)
    band.start(2.0, 1, 4.0)
    with pytest.raises(ValueError, match=r"now_seconds is 1.0 after 2.0.*not before the last"):
        band.start(1.0, 2, 1.0)
    with pytest.raises(ValueError, match=r"now_seconds is 7.0, but upload 1 completed at 6.0"):
        band.start(7.0, 2, 1.0)
    with pytest.raises(ValueError, match=r"upload 1 completes at 6.0: finish it then, or"):
        band.finish(5.0, 1)
    with pytest.raises(ValueError, match="key is 1, which is in use by an active upload"):
        band.start(3.0, 1, 1.0)
    with pytest.raises(ValueError, match="key is 9, which is not the key of an active upload"):
        band.remove(3.0, 9)
    with pytest.raises(ValueError, match="bits is -1: give a finite number"):
        band.start(3.0, 2, -1)
    with pytest.raises(TypeError, match=r"key is 1\.5: give an integer"):
        band.start(3.0, 1.5, 1)
    assert band.next_done() == (6.0, 1)  # errors change nothing
    for pace in (lambda clients: [1.0, 2.0], lambda clients: [0.0], lambda clients: [np.nan]):
        with pytest.raises(ValueError, match=r"seconds_per_bit returned .* for clients \[4\]"):
            SharedBand(pace).start(0.0, 4, 1.0)
