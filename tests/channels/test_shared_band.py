"""Upload times in a shared band match hand computation, small time steps and a fluid model."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    EqualBands,
    EqualSlots,
    Network,
    Rates,
    ReadyOrder,
    SharedBand,
    Stream,
    rate_bps,
    snr_linear,
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


def band_of(pace, duty=lambda clients: np.ones(len(clients))):
    """A band whose uploads take ``pace`` seconds per bit, and transmit for ``duty`` of the time."""
    return SharedBand(lambda clients: Rates(1 / np.asarray(pace(clients)), duty(clients)))


def equal(clients):
    """Seconds per bit of a band of 1 bit/s."""
    return np.full(len(clients), float(len(clients)))


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


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("pace", PACES)
@given(uploads())
def test_completion_times_match_a_fluid_model(pace, problem):
    starts, cancelled = problem
    ends = play(band_of(PACES[pace]), starts, cancelled)
    assert ends.keys() >= {key for _, key, _, _ in starts} - {key for _, key in cancelled}
    for key, seconds in fluid(PACES[pace], starts, cancelled).items():
        # An upload cancelled exactly at its end may count as completed or cancelled.
        if key in ends:
            assert ends[key] == pytest.approx(seconds, rel=1e-6, abs=1e-6)


@pytest.mark.thorough(every=8)
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
    ends = play(band_of(PACES[pace]), starts)
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
    band = band_of(equal)
    band.start(0.0, 1, 10.0)
    assert band.next_done() == (10.0, 1)
    band.start(2.0, 2, 4.0)
    assert band.next_done() == (10.0, 2)
    assert drain(band) == [(10.0, 2), (14.0, 1)]
    assert band.next_done() is None


def test_a_cancelled_upload_frees_its_share():
    band = band_of(equal)
    band.start(0.0, 1, 10.0)
    band.start(0.0, 2, 10.0)
    assert band.remove(4.0, 1) == (8.0, 4.0)
    assert drain(band) == [(12.0, 2)]


@given(st.floats(0, 1e6), st.floats(0, 1e9), st.floats(1e-3, 1e9), st.floats(0, 1))
def test_one_upload_takes_its_bits_over_its_rate(now, bits, bps, duty):
    band = SharedBand(lambda clients: Rates(np.array([bps]), np.array([duty])))
    band.start(now, 7, bits)
    end, key = band.next_done()
    assert (end, key) == (pytest.approx(now + bits / bps, rel=1e-15), 7)
    assert band.finish(end, 7) == (0.0, (end - now) * duty)
    assert band.next_done() is None


@given(uploads(), st.sampled_from(sorted(PACES)))
def test_no_bit_is_lost(problem, pace):
    """The integral of the rates, plus the unsent bits of cancelled uploads, equals all bits."""
    starts, cancelled = problem
    carried, sent, dropped = 0.0, sum(bits for _, _, bits, _ in starts), 0.0
    band, now, speed = band_of(PACES[pace]), 0.0, 0.0
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
                dropped += band.remove(at, upload).bits_left
                del clients[upload]
        speed = (
            (1 / PACES[pace](np.array(list(clients.values()), dtype=int))).sum() if clients else 0.0
        )
    assert carried + dropped == pytest.approx(sent, rel=1e-9, abs=1e-9)


@given(uploads(), st.integers(1, 6), st.sampled_from(["shannon", "mcs"]))
def test_a_time_shared_band_equals_one_that_computes_all_rates(problem, cut, law):
    """States and ends are bit-identical, also after a restored snapshot."""
    starts, cancelled = problem

    def run(time_shared):
        def new():
            rates = lambda clients: EqualSlots(law).rates(RATES[clients], 1.0)  # noqa: E731
            return SharedBand(rates, time_shared=time_shared)

        band = new()
        for seconds, *upload in starts[:cut]:
            while (end := band.next_done()) is not None and end[0] <= seconds:
                band.finish(*end)
            band.start(seconds, *upload)
        state = json.dumps(band.snapshot(), allow_nan=False)
        band = new()
        band.restore(json.loads(state))
        later = [(seconds, key) for seconds, key in cancelled if seconds >= starts[:cut][-1][0]]
        return state, play(band, starts[cut:], later)

    assert run(time_shared=True) == run(time_shared=False)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8), st.floats(1e-3, 1e3))
def test_equal_uploads_end_together_in_order_of_their_starts(clients, bits):
    band = band_of(lambda clients: np.full(len(clients), 0.1 * len(clients)))
    keys = [31 * i % 97 for i in range(len(clients))]
    for key, client in zip(keys, clients, strict=True):
        band.start(0.3, key, bits, client)
    ends = drain(band)
    assert [key for _, key in ends] == keys
    assert {seconds for seconds, _ in ends} == {0.3 + bits * (1 / (1 / (0.1 * len(clients))))}


def test_all_uploads_finish_despite_rounding():
    """1000 uploads of random sizes all end, although times near 1e6 s are rounded to 1e-10 s."""
    rng = np.random.default_rng(2)
    band = band_of(lambda clients: 1e-9 * len(clients) * (1 + clients % 7 / 3))
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
    plain, whole = band_of(uneven), play(band_of(uneven), starts)
    ends = {}
    for number, (seconds, *upload) in enumerate(starts):
        while (end := plain.next_done()) is not None and end[0] <= seconds:
            plain.finish(*end)
            ends[end[1]] = end[0]
        plain.start(seconds, *upload)
        if number == cut:
            stored = json.dumps(plain.snapshot(), allow_nan=False)
            plain = band_of(uneven)
            plain.restore(json.loads(stored))
            assert json.dumps(plain.snapshot()) == stored
    assert ends | {key: seconds for seconds, key in drain(plain)} == whole


def test_an_empty_and_a_blocked_band_are_restored():
    """An empty band, and one with an upload at rate 0, can be restored.

    Restored rates apply until the next change.
    """
    band = band_of(lambda clients: np.where(clients == 1, np.inf, 2.0))
    other = band_of(lambda clients: np.ones(len(clients)))  # used from the next change on
    other.restore(json.loads(json.dumps(band.snapshot(), allow_nan=False)))
    assert other.next_done() is None
    band.start(1.0, 1, 5.0)
    assert band.next_done() is None  # never completes
    band.start(2.0, 2, 5.0)
    other.restore(json.loads(json.dumps(band.snapshot(), allow_nan=False)))
    assert other.next_done() == band.next_done() == (12.0, 2)
    other.finish(12.0, 2)
    assert other.remove(14.0, 1) == (3.0, 13.0)
    band.start(3.0, 3, 0.0, client=1)  # 0 bits take 0 s even at rate 0
    assert band.next_done() == (3.0, 3)


@pytest.mark.parametrize("access", [EqualSlots(), EqualBands(), ReadyOrder()])
def test_the_rates_of_an_access(access):
    """Completion times and seconds of transmission of two uploads equal those by hand."""
    network = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=[0, 5], bandwidth_hz=1e6)
    draw = network.draw(Stream(3))
    band = SharedBand(lambda clients: access.rates((draw.snr * draw.gain)[clients], 1e6))
    for client in (1, 0):
        band.start(0.0, client, 1e6)
    ends = {}
    while (end := band.next_done()) is not None:
        ends[end[1]] = end[0], band.finish(*end).transmit_seconds

    def bps(client, sharers):
        snr = snr_linear(network.snr_db[client])
        if isinstance(access, EqualBands):
            return rate_bps(1e6 / sharers, sharers * snr, draw.gain[client])
        return rate_bps(1e6, snr, draw.gain[client]) / sharers

    alone = {client: 1e6 / bps(client, 1) for client in (0, 1)}
    if isinstance(access, ReadyOrder):
        assert ends[1] == pytest.approx((alone[1], alone[1]))
        assert ends[0] == pytest.approx((alone[1] + alone[0], alone[0]))
        return
    first, second = sorted((0, 1), key=lambda client: -bps(client, 2))
    both = 1e6 / bps(first, 2)
    last = both + (1e6 - both * bps(second, 2)) / bps(second, 1)
    slots = isinstance(access, EqualSlots)  # a client transmits in its own slots only
    assert ends[first] == pytest.approx((both, alone[first] if slots else both))
    assert ends[second] == pytest.approx((last, alone[second] if slots else last))


@given(uploads(), st.sampled_from(sorted(PACES)))
def test_the_duty_cycle_is_integrated(problem, pace):
    """Seconds of transmission equal the sum of duty x seconds over the intervals between changes.

    The duty cycle depends on the number of uploads and on the client.
    """
    starts, cancelled = problem

    def duty(clients):
        return 1 / (len(clients) + clients)

    band, log = band_of(PACES[pace], duty), []  # [(seconds, clients by key from now on)]
    found, active, now = {}, {}, 0.0
    changes = sorted(
        [(s, 1, (k, b, c)) for s, k, b, c in starts] + [(s, 0, k) for s, k in cancelled],
        key=lambda change: change[:2],
    )
    while changes or active:
        end = band.next_done()
        if end is not None and (not changes or end[0] <= changes[0][0]):
            now, key = end
            found[key] = band.finish(now, key).transmit_seconds
            del active[key]
        else:
            now, kind, upload = changes.pop(0)
            if kind:
                band.start(now, *upload)
                active[upload[0]] = upload[2]
            elif upload in active:
                found[upload] = band.remove(now, upload).transmit_seconds
                del active[upload]
        log.append((now, dict(active)))
    expected = dict.fromkeys(found, 0.0)
    for (begin, clients), (end, _) in pairwise(log):
        for key, client in clients.items():
            expected[key] += (end - begin) / (len(clients) + client)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_invalid_calls_raise_and_change_nothing():
    band = band_of(equal)
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
    for bad in ([1.0, 2.0], [-1.0], [np.nan], [np.inf]):
        wrong, fine = np.array(bad), np.ones(1)
        with pytest.raises(ValueError, match=r"rates returned bps .* for clients \[4\]"):
            SharedBand(lambda clients: Rates(wrong, fine)).start(0.0, 4, 1.0)  # noqa: B023
        with pytest.raises(ValueError, match=r"rates returned duty .* for clients \[4\]"):
            SharedBand(lambda clients: Rates(fine, wrong)).start(0.0, 4, 1.0)  # noqa: B023


@pytest.mark.parametrize("bps", [np.nan, -1.0])
def test_uploads_are_kept_if_rates_are_invalid(bps):
    """The uploads end as if the invalid changes had not been tried."""
    valid = True

    def rates(clients):
        values = RATES[clients] / len(clients)
        return Rates(values if valid else np.full(len(clients), bps), values)

    band, other = SharedBand(rates), SharedBand(rates)
    for key in range(3):
        band.start(0.1 * key, key, 1.0)
        other.start(0.1 * key, key, 1.0)
    seconds, first = band.next_done()
    for change in (
        lambda: band.start(0.3, 7, 2.0),
        lambda: band.remove(0.4, 0),
        lambda: band.finish(seconds, first),
    ):
        valid = False
        with pytest.raises(ValueError, match="rates returned bps"):
            change()
        valid = True
        assert band.snapshot()["keys"] == band.snapshot()["clients"] == [0, 1, 2]
    for (a, key), (b, same) in zip(drain(band), drain(other), strict=True):
        assert (a, key) == (pytest.approx(b, rel=1e-12), same)
