"""Rates of a table of modulation and coding, against the standard, loops and a simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    ChannelDraw,
    EqualBands,
    EqualSlots,
    Load,
    Network,
    ReadyOrder,
    Stream,
    rate_bps,
    spectral_efficiency,
)
from channels.modulation import EFFICIENCY, THRESHOLD_DB

CODE_RATES = [78, 120, 193, 308, 449, 602, 378, 490, 616, 466, 567, 666, 772, 873, 948]
"""Times 1024, of CQI 1 to 15 in Table 5.2.2.1-2 of 3GPP TS 38.214."""
ORDERS = [2] * 6 + [4] * 3 + [6] * 6


def test_efficiencies_are_those_of_the_standard():
    """Bits of a symbol times the code rate, in four digits."""
    exact = np.multiply(ORDERS, CODE_RATES) / 1024
    np.testing.assert_allclose(EFFICIENCY, exact, atol=0.5e-4 + 1e-12)


def by_hand(snr):
    """The rate of one SNR."""
    best = 0.0
    for efficiency, threshold in zip(EFFICIENCY, THRESHOLD_DB, strict=True):
        if snr >= 10 ** (threshold / 10):
            best = 0.9 * efficiency
    if best or not snr:
        return best
    copies = 1
    while copies * snr < 10 ** (THRESHOLD_DB[0] / 10):
        copies += 1
    return 0.9 * EFFICIENCY[0] / copies


@given(st.floats(1e-3, 1e6) | st.sampled_from([0.0, *(10 ** (THRESHOLD_DB / 10))]))
def test_rates_are_those_of_the_table_and_below_capacity(snr):
    found = float(spectral_efficiency(snr, "mcs"))
    assert found == pytest.approx(by_hand(snr), rel=1e-12)
    assert found <= math.log2(1 + snr)
    assert spectral_efficiency(1.1 * snr, "mcs") >= found


def test_lost_blocks_are_sent_until_they_arrive():
    """Simple ARQ in a simulation: 40,000 blocks; the standard error of their mean is 0.2 %."""
    dice = np.random.default_rng(1)
    sent = dice.geometric(0.9, 40_000)
    goodput = EFFICIENCY[6] * len(sent) / sent.sum()
    assert spectral_efficiency(10**0.7, "mcs") == pytest.approx(goodput, rel=0.01)


def network():
    return Network([0, 0, 0, 1, 1], cpu_hz=1e9, gain_db=[-95.0, -100.0, -110.0, -98.0, -121.0])


def test_accesses_send_at_these_rates():
    """Seconds and joules of a loop, in slots, in turn and in bands, and rates while others send."""
    net, bits = network(), 3.2e5
    draw = net.draws(Stream(2), range(2))
    load = Load(0.0, bits / 32)
    band, snr = net.bandwidth_hz[net.cell_of], draw.snr * draw.gain
    count = net.cell_sizes[net.cell_of]
    alone, part = np.empty(snr.shape), np.empty(snr.shape)
    for at in np.ndindex(snr.shape):
        client = at[-1]
        alone[at] = bits / (band[client] * by_hand(snr[at]))
        part[at] = bits / (band[client] / count[client] * by_hand(count[client] * snr[at]))
    slots, turns, bands = (
        cls("mcs").serve(load, draw) for cls in (EqualSlots, ReadyOrder, EqualBands)
    )
    np.testing.assert_allclose(slots.seconds, count * alone, rtol=1e-12)
    np.testing.assert_allclose(slots.joules, net.transmit_power_w * alone, rtol=1e-12)
    np.testing.assert_allclose(turns.joules, net.transmit_power_w * alone, rtol=1e-12)
    np.testing.assert_allclose(turns.seconds[:, 4], alone[:, 3] + alone[:, 4], rtol=1e-12)
    np.testing.assert_allclose(bands.seconds, part, rtol=1e-12)
    received = np.array([3.0, 400.0])
    rates = EqualBands("mcs").rates(received, 1e6)
    np.testing.assert_allclose(rates.bps, [5e5 * by_hand(6.0), 5e5 * by_hand(800.0)])
    for cls, share in ((EqualSlots, [0.5, 0.5]), (ReadyOrder, [1, 0])):
        rates = cls("mcs").rates(received, 1e6)
        wanted = np.multiply(share, [1e6 * by_hand(snr) for snr in received])
        np.testing.assert_allclose(rates.bps, wanted)


def test_a_weak_client_repeats_its_blocks_and_one_without_a_channel_never_ends():
    net = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=-30.0)
    draw = ChannelDraw(net, np.array([[1.0], [0.0]]))
    seconds = EqualSlots("mcs").seconds(Load(0.0, 1000.0), draw)
    copies = math.ceil(10 ** (THRESHOLD_DB[0] / 10) / 1e-3)
    assert copies == 214
    rate = float(net.bandwidth_hz[0]) * 0.9 * EFFICIENCY[0] / copies
    assert seconds[0] == pytest.approx(2 * 32_000 / rate)
    assert seconds[1] == np.inf


@pytest.mark.parametrize(
    "make", [EqualBands, EqualSlots, ReadyOrder, lambda law: rate_bps(1, 1, 1, law)]
)
def test_unknown_laws_are_refused(make):
    with pytest.raises(ValueError, match=r"law is 'wifi': choose \"shannon\" or \"mcs\""):
        make("wifi")
