"""Uplinks: received values match reference sums, and user-defined uplinks are found."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    EqualBands,
    EqualSlots,
    Load,
    Network,
    ReadyOrder,
    section_vi_c,
    tdma_seconds_per_bit,
)
from channels.streams import Stream
from solvers import OptimalBands
from wirelessfl.air.uplinks import UPLINKS, Transmission
from wirelessfl.air.uplinks.aircomp import AirComp
from wirelessfl.air.uplinks.fixed import Fixed
from wirelessfl.air.uplinks.ofdma import Ofdma
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.training.workers.shards import Shards


def air_round(sizes, weights, each=()):
    node = np.repeat(np.arange(len(sizes)), sizes)
    network = Network.from_snr(node, cpu_hz=1e9, snr_db=30)
    return Transmission(
        nodes=len(sizes),
        node=node,
        clients=np.arange(len(node)),
        weights=np.asarray(weights, dtype=float),
        each=frozenset(each),
        units={},
        draw=network.draw(Stream(1)),
        stream=Stream(1),
    )


def test_sums_do_not_depend_on_the_chunks():
    """Sums are bit-identical for all chunk sizes."""
    sent = torch.from_numpy(Stream(0).generator().random((9, 50))).float()
    results = []
    for chunk in (1, 2, 4, 9):
        reception = UPLINKS.find("tdma")().receive(air_round([4, 5], np.full(9, 1 / 7)))
        for first in range(0, 9, chunk):
            part = slice(first, min(first + chunk, 9))
            reception.add(part, {"update": sent[part]})
        results.append(reception.result().mean["update"])
    assert all(torch.equal(result, results[0]) for result in results)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 7), st.integers(0, 99))
def test_nodes_receive_weighted_sums_for_any_chunk_size(sizes, chunk, seed):
    random = Stream(seed).generator()
    clients = sum(sizes)
    weights, sent = random.random(clients), torch.from_numpy(random.random((clients, 5))).float()
    air = air_round(sizes, weights, each=["second"])
    reception = UPLINKS.find("tdma")().receive(air)
    for first in range(0, clients, chunk):
        part = slice(first, min(first + chunk, clients))
        reception.add(part, {"first": sent[part], "second": 2 * sent[part]})
    received = reception.result()
    for node in range(len(sizes)):
        expected = sum(weights[c] * sent[c].double() for c in range(clients) if air.node[c] == node)
        assert torch.allclose(received.mean["first"][node].double(), expected, atol=1e-6)
        assert torch.allclose(received.mean["second"][node].double(), 2 * expected, atol=1e-6)
    assert received.each.keys() == {"second"}
    assert torch.equal(received.each["second"], 2 * sent)


def process(total):
    """One of several processes, with ``total`` in place of the sum over all of them."""
    return SimpleNamespace(sum=total, by_first=lambda action: action())


@pytest.mark.parametrize("uplink", [Tdma(), AirComp("physical", "random")])
@pytest.mark.parametrize("share", [0, 2, 5])
def test_payloads_are_added_across_processes(uplink, share):
    """One of two processes has the first clients, the other the rest; one of them may have none."""
    air = air_round([3, 2], [0.2, 0.3, 0.5, 0.4, 0.6], each=["second"])
    sent = torch.from_numpy(Stream(0).generator().random((5, 50))).float()
    names = ["first", "second"]

    def received(shards, part):
        reception = uplink.receive(air)
        if len(sent[part]):
            reception.add(part, {"first": sent[part], "second": 2 * sent[part]})
        reception.finish(shards, names, torch.zeros(2, 50))
        return reception.result()

    def record(tensor):
        tensors.append(tensor.clone())
        return tensor

    whole, tensors = received(Shards(), slice(0, 5)), []
    received(process(record), slice(0, share))
    both = received(process(lambda tensor: tensor.add_(tensors.pop(0))), slice(share, 5))
    assert not tensors
    for name in names:
        torch.testing.assert_close(both.mean[name], whole.mean[name])
    assert torch.equal(both.each["second"], 2 * sent)
    assert both.metrics == pytest.approx(whole.metrics, rel=1e-5)


RATES = {
    "slots": (Tdma(), [2e6 / 3, 4e6 / 3, 1e6], [1 / 3] * 3),
    "ready": (Tdma(order="ready"), [2e6, 0.0, 0.0], [1.0, 0.0, 0.0]),
    "ofdma": (Ofdma(), [1e6 / 3 * np.log2(1 + 3 * snr) for snr in (3, 15, 7)], [1.0] * 3),
    "fixed": (Fixed(rate_mbps=5.0), [5e6] * 3, [0.0] * 3),
}


@pytest.mark.parametrize(("uplink", "bps", "duty"), RATES.values(), ids=RATES.keys())
def test_rates_while_three_clients_upload(uplink, bps, duty):
    """Rates and duty cycles in 1 MHz at 2, 4 and 3 bit/s/Hz over the whole band."""
    rates = uplink.access.rates(np.array([3.0, 15.0, 7.0]), 1e6)
    assert uplink.access.asynchronous
    assert rates.bps == pytest.approx(bps)
    assert rates.duty == pytest.approx(duty)


@pytest.mark.parametrize(
    ("uplink", "kind"),
    [
        (Tdma(), EqualSlots),
        (Tdma(order="ready"), ReadyOrder),
        (Ofdma(), EqualBands),
        (Ofdma(allocation="optimal"), OptimalBands),
    ],
)
def test_settings_choose_the_access(uplink, kind):
    assert type(uplink.access) is kind


def test_uplinks_are_discovered_in_their_folder():
    assert set(UPLINKS.classes()) >= {"tdma", "ofdma"}


def test_airtime_counts_only_a_clients_own_transmission():
    """With TDMA and four clients per cell, a client transmits for a quarter of the upload time."""
    draw = section_vi_c(2, 8, stream=Stream(1)).draw(Stream(1))
    tdma, ofdma = UPLINKS.find("tdma")(), UPLINKS.find("ofdma")()
    one, parallel = (uplink.access.serve(Load(elements=1), draw) for uplink in (tdma, ofdma))
    assert one.seconds == pytest.approx(32 * tdma_seconds_per_bit(draw))
    assert one.joules == pytest.approx(0.1 * one.seconds / 4)
    assert parallel.joules == pytest.approx(0.1 * parallel.seconds)
    assert (parallel.seconds < one.seconds).all()


def test_band_is_shared_among_uploading_clients_only():
    draw = section_vi_c(2, 8, stream=Stream(1)).draw(Stream(1))
    tdma = UPLINKS.find("tdma")()
    whole, alone = (tdma.access.serve(Load(elements=1), d).seconds for d in (draw, draw.of([3])))
    assert alone == pytest.approx([whole[3] / 4])
