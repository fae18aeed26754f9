"""Uploads that share a band under the buffered schedule, simulated without training."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels import section_vi_c
from channels.streams import Stream
from tests.wirelessfl.engine.schedules.buffered import Watched, simulated, traffic_of
from wirelessfl.air.delays import Wireless
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.engine.events import Returned, Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.handler import Records
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.training.steps import StepCounts


def wireless(uplink, elements=1000, clients=2, down=None, **settings):
    network = section_vi_c(1, clients, stream=Stream(4))
    made = UPLINKS.find(uplink)(**settings)
    seconds = np.array([1.0, 1.5, 2.5, 4.0])[:clients] / 10
    steps, crossing = [StepCounts(10)], [traffic_of(elements)]
    return Wireless(network, made, steps, [seconds], crossing, down, Stream(8))


def test_uploads_share_the_band_by_hand():
    """A TDMA upload has the full rate alone, and half the rate while another one is active."""
    delays = wireless("tdma", elements=9_000_000, clients=4)
    one, two = (delays.received_snr(client, client) for client in (0, 1))
    alone = [32 * 9_000_000 / float(delays.rates(np.array([snr])).bps[0]) for snr in (one, two)]
    assert min(alone) > 0.5  # they overlap
    _, handler, spans, _ = simulated(
        [(2, 2, 1)],
        delays,
        99.0,
        clients=4,
        choose=lambda number: number,  # client 2 is slower
    )
    # Client 0 is ready at 1.0, client 1 at 1.5; when one ends, the other gets the full band again.
    left0 = alone[0] - 0.5
    if 2 * left0 <= 2 * alone[1]:
        first = 1.5 + 2 * left0
        second = first + alone[1] - left0
        expected = {0: first, 1: second}
    else:
        first = 1.5 + 2 * alone[1]
        expected = {1: first, 0: first + left0 - alone[1]}
    assert {s.client: s.end for s in spans[:2]} == pytest.approx(expected)
    network = delays.network
    # Client 2 starts at the first update and is stopped at the merge.
    stopped = max(expected.values()) - min(expected.values())
    assert stopped < 2.5
    computing = [
        network.switched_capacitance[i] * network.cpu_hz[i] ** 3 * seconds
        for i, seconds in enumerate((1.0, 1.5, stopped))
    ]
    sending = [network.transmit_power_w[i] * alone[i] for i in (0, 1)]  # only in their own slots
    assert handler.ledger.spent.each == pytest.approx(np.add([*computing, 0], [*sending, 0, 0]))
    assert handler.ledger.spent.total == pytest.approx(sum(computing) + sum(sending))


@pytest.mark.parametrize("uplink", ["tdma", "ofdma", "fixed"])
def test_a_single_upload_takes_bits_divided_by_rate(uplink):
    delays = wireless(uplink, clients=1, down=1e6)
    _, _, spans, _ = simulated([(1, 1, 1)], delays, 99.0, clients=1)
    bits = 32 * 1000
    bps = float(delays.rates(np.array([delays.received_snr(0, 0)])).bps[0])
    assert spans[0].end == pytest.approx(bits / 1e6 + 1.0 + bits / bps)


def test_uploads_in_order_of_readiness_by_hand():
    """One client sends at a time, first come first served, and uses energy only while it sends."""
    delays = wireless("tdma", elements=9_000_000, clients=4, order="ready")
    clock, ends = Clock(), []
    requests = Requests(clock, delays, 4, Stream(3), choose=lambda number: number)
    for _ in range(4):
        requests.ask(0, 0)
    while (what := clock.next()) is not None:
        if isinstance(event := requests.happened(what), Returned):
            ends.append((event.request, clock.now))
    network, end, joules = delays.network, 0.0, 0.0
    for client, ready in enumerate((1.0, 1.5, 2.5, 4.0)):
        bps = network.bandwidth_hz[0] * np.log2(1 + delays.received_snr(client, client))
        sending = 32 * 9_000_000 / bps
        assert client == 0 or end > ready  # it waits
        end = max(end, ready) + sending
        assert ends[client] == (client, pytest.approx(end))
        joules += network.transmit_power_w[client] * sending
        joules += network.switched_capacitance[client] * network.cpu_hz[client] ** 3 * ready
    assert requests.ledger.spent.total == pytest.approx(joules)


@settings(max_examples=20)
@given(
    st.integers(1, 4),
    st.sampled_from(
        [{"uplink": "tdma"}, {"uplink": "tdma", "order": "ready"}, {"uplink": "ofdma"}]
    ),
    st.integers(0, 100),
)
def test_invariants_hold_with_a_shared_band(requests, uplink, seed):
    delays = wireless(**uplink, elements=200_000, clients=4)

    def check(schedule, handler):
        assert schedule.active == len(handler.requests.out)
        uploads = handler.requests.uploads.snapshot()
        on_air = uploads["band"]["keys"]
        assert on_air == [number for number, *_ in uploads["senders"]]
        assert len(on_air) <= len(handler.requests.queues)

    schedule, _, _, merges = simulated(
        [(requests, 2, 12)],
        delays,
        500.0,
        clients=4,
        check=check,
        choose=lambda number: (number * 7 + seed) % 4,
    )
    assert schedule.tasks[0].version == 12 == len(merges)


def test_restored_snapshots_continue_identically():
    """New objects restored from a snapshot continue with the same spans and merges."""

    def fresh_run():
        clock, spans, merges = Clock(), [], []
        delays = wireless("ofdma", elements=100_000, clients=4)
        schedule = BufferedScheduler([TaskPlan(5, 2, 30)], report_every=3, ticks=True, period=0.5)
        requests = Requests(
            clock,
            delays,
            4,
            Stream(3),
            busy_clients=3,
            drop_out=0.1,
            records=Records(spans, merges),
        )
        handler = Asynchronous([Watched()], requests, requests.records)
        return clock, schedule, handler, spans, merges

    def go(clock, schedule, handler, save):
        simulate(schedule, handler, clock, lambda report: None, save, tick_seconds=0.7)

    clock, schedule, handler, spans, merges = fresh_run()
    clock.after(0.0, Started())
    saved = []

    def save():
        state = {"schedule": schedule.snapshot(), "handler": handler.snapshot()}
        saved.append((json.dumps(state), handler.tensors(), len(spans), len(merges)))

    go(clock, schedule, handler, save)
    assert len(saved) > 20
    assert handler.ledger.spent.each.sum() == pytest.approx(handler.ledger.spent.total)
    for state, tensors, spans_done, merges_done in saved[:: len(saved) // 5]:
        clock2, schedule2, handler2, spans2, merges2 = fresh_run()
        state = json.loads(state)
        schedule2.restore(state["schedule"])
        handler2.restore(tensors, state["handler"])
        handler2.learners[0].issue = lambda request: None
        handler2.learners[0].merge_updates = lambda requests, staleness, draw: None
        go(clock2, schedule2, handler2, lambda: None)
        assert spans2 == spans[spans_done:]
        assert merges2 == merges[merges_done:]
        assert handler2.ledger.spent.total == handler.ledger.spent.total
        assert handler2.ledger.spent.each.tolist() == handler.ledger.spent.each.tolist()
