"""Physical networks: SNR from gain, power, band and noise; decibels, dBm and watts."""

import math
import pickle
import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import (
    ChannelDraw,
    EqualSlots,
    Interference,
    Load,
    Network,
    Placement,
    Stream,
    dbm_to_watts,
    noise_power_dbm,
    section_vi_c,
    watts_to_dbm,
)

DOUBLE_DB = 10 * math.log10(2)  # 3.0103
CELLS = [0, 0, 1]


def physical(**changes):
    settings = {
        "cpu_hz": 1e9,
        "gain_db": [-90.0, -100.0, -121.5],
        "transmit_power_w": [0.1, 0.2, 0.05],
        "bandwidth_hz": [1e6, 20e6],
        "noise_figure_db": 7.0,
        "antennas": 2,
    }
    return Network(CELLS, **(settings | changes))


def given_snr(**changes):
    settings = {"cpu_hz": 1e9, "snr_db": [5.0, 10.3, -3.0], "bandwidth_hz": [1e6, 20e6]}
    return Network.from_snr(CELLS, **(settings | changes))


NETWORKS = {"physical": physical, "from_snr": given_snr}


@given(st.floats(-300, 290))
def test_dbm_and_watts_are_inverse(dbm):
    watts = float(dbm_to_watts(dbm))
    assert watts_to_dbm(watts) == pytest.approx(dbm, abs=1e-9)
    assert dbm_to_watts([dbm, dbm + 10]).tolist() == pytest.approx([watts, 10 * watts], rel=1e-12)


def test_known_powers():
    """20, 23 and 30 dBm are 100 mW, 200 mW and 1 W; noise of 20 MHz at 7 dB is -94 dBm."""
    assert dbm_to_watts([20, 23.0103, 30]) == pytest.approx([0.1, 0.2, 1], rel=1e-6)
    assert noise_power_dbm(1.0) == -174
    assert noise_power_dbm([20e6, 40e6], 7.0) == pytest.approx([-93.98970, -90.97940], abs=1e-5)
    boltzmann = 1.380649e-23  # J/K; at 290 K
    assert noise_power_dbm(1.0) == pytest.approx(watts_to_dbm(boltzmann * 290), abs=0.03)


def test_the_snr_is_received_power_over_noise():
    """P g / (N0 B NF), written out in watts client by client."""
    network = physical()
    h = np.array([[1, 1j], [0.5, 0], [3, 4]])
    draw = ChannelDraw(network, h)
    for i, cell in enumerate(CELLS):
        gain = 10 ** ([-90.0, -100.0, -121.5][i] / 10)
        noise = 1e-3 * 10**-17.4 * [1e6, 20e6][cell] * 10**0.7
        snr = [0.1, 0.2, 0.05][i] * gain / noise
        assert 10 ** (network.snr_db[i] / 10) == pytest.approx(snr, rel=1e-9)
        assert 10 ** (network.mean_snr_db[i] / 10) == pytest.approx(snr, rel=1e-9)
        assert draw.snr[i] == pytest.approx(snr, rel=1e-9)
        norm = sum(abs(x) ** 2 for x in h[i])
        assert draw.snr_hz[i] == pytest.approx(snr * norm * [1e6, 20e6][cell], rel=1e-9)
        per_watt = gain * norm / (1e-3 * 10**-17.4 * 10**0.7)
        assert draw.gain_per_noise[i] == pytest.approx(per_watt, rel=1e-9)
    assert network.gain_db == pytest.approx([-90, -100, -121.5], abs=1e-9)


def test_an_urban_micro_cell():
    """23 dBm, noise figure 7 dB, 20 MHz and a loss of 121.43 dB give a mean SNR of -4.44 dB."""
    network = Network(
        [0],
        cpu_hz=1e9,
        gain_db=-121.43,
        transmit_power_w=dbm_to_watts(23),
        bandwidth_hz=20e6,
        noise_figure_db=7,
    )
    assert network.antennas == 1
    assert network.mean_snr_db[0] == pytest.approx(-4.44, abs=0.005)


@pytest.mark.parametrize("made", NETWORKS.values(), ids=NETWORKS)
def test_twice_the_power_doubles_snr_and_joules_per_second(made):
    """The rate rises as well, so an upload takes 2 P times its shorter airtime."""
    one = made()
    two = replace(one, transmit_power_w=2 * one.transmit_power_w)
    assert two.snr_db - one.snr_db == pytest.approx(DOUBLE_DB, abs=1e-9)
    assert two.gain_db == pytest.approx(one.gain_db, abs=1e-12)
    h = np.full((3, one.antennas), 0.3 + 0.4j)
    bits, load = 32 * 1e4, Load(elements=1e4)
    for network in (one, two):
        served = EqualSlots().serve(load, ChannelDraw(network, h))
        for i, cell in enumerate(CELLS):
            snr = 10 ** (network.snr_db[i] / 10) * 0.25 * network.antennas
            airtime = bits / (network.bandwidth_hz[cell] * math.log2(1 + snr))
            joules = network.transmit_power_w[i] * airtime
            assert served.joules[i] == pytest.approx(joules, rel=1e-6)
            assert served.seconds[i] == pytest.approx([2, 1][cell] * airtime, rel=1e-6)
    assert (two.transmit_power_w == 2 * one.transmit_power_w).all()
    draws = [ChannelDraw(network, h) for network in (one, two)]
    assert draws[0].gain_per_noise == pytest.approx(draws[1].gain_per_noise, rel=1e-12)


@pytest.mark.parametrize("made", NETWORKS.values(), ids=NETWORKS)
def test_more_noise_lowers_the_snr(made):
    one = made()
    wide = replace(one, bandwidth_hz=2 * one.bandwidth_hz)
    assert wide.snr_db - one.snr_db == pytest.approx(-DOUBLE_DB, abs=1e-9)
    noisy = replace(one, noise_figure_db=one.noise_figure_db + 4)
    assert noisy.snr_db - one.snr_db == pytest.approx(-4, abs=1e-9)
    dense = replace(one, noise_dbm_per_hz=-170.0)
    assert dense.snr_db - one.snr_db == pytest.approx(-4, abs=1e-9)
    for other in (wide, noisy, dense):
        assert other.gain_db == pytest.approx(one.gain_db, abs=1e-12)


@given(st.lists(st.floats(-300, 300), min_size=3, max_size=3), st.floats(1e3, 1e9))
def test_a_given_snr_is_kept_exactly(snr_db, band):
    """At 0.1 W it is the same float, also in copies, parts and after with_snr."""
    network = given_snr(snr_db=snr_db, bandwidth_hz=band, noise_figure_db=5.0)
    kept = (network, replace(network), pickle.loads(pickle.dumps(network)))
    for made in (*kept, given_snr(bandwidth_hz=band / 3).with_snr(snr_db)):
        assert made.snr_db.tolist() == snr_db
        assert made.of([0, 2]).snr_db.tolist() == snr_db[::2]
    assert physical(transmit_power_w=0.1).with_snr(snr_db).snr_db.tolist() == snr_db


def test_a_given_snr_holds_at_the_default_power():
    network = given_snr(transmit_power_w=dbm_to_watts([20, 23, 10]))
    assert network.snr_db == pytest.approx([5, 13.3, -13], abs=1e-9)
    assert network.with_snr(0).snr_db == pytest.approx([0, 3, -10], abs=1e-9)
    assert network.with_snr(0).noise_dbm.tolist() == network.noise_dbm.tolist()


def test_gain_in_the_channels_is_not_counted_twice():
    """A path gain is part of h and of the mean SNR, and not of the transmit SNR."""
    network = given_snr(path_gain_db=[-20.0, 3.0, 0.0])
    assert network.snr_db.tolist() == [5.0, 10.3, -3.0]
    assert network.mean_snr_db == pytest.approx([-15, 13.3, -3])
    noise_dbm = np.array([-114.0, -114.0, -100.98970])
    assert network.gain_db == pytest.approx(network.mean_snr_db + noise_dbm - 20, abs=1e-5)
    same = Network(CELLS, cpu_hz=1e9, gain_db=network.gain_db, bandwidth_hz=[1e6, 20e6])
    assert same.mean_snr_db == pytest.approx(network.mean_snr_db, abs=1e-9)
    draws = [n.draw(Stream(1)) for n in (network, same)]
    assert draws[0].snr_hz == pytest.approx(draws[1].snr_hz, rel=1e-5)  # h is complex64


def test_gains_replace_an_snr():
    network = replace(given_snr(path_gain_db=-5.0), gain_db=-100.0)
    assert network.gain_db == pytest.approx([-100] * 3)
    assert network.path_gain_db.tolist() == [0] * 3
    assert network.mean_snr_db == pytest.approx([34, 34, 20.98970], abs=1e-5)


def test_sub_networks_keep_everything():
    at, loss = np.zeros((3, 2)), -physical().gain_db
    placement = Placement(at[:2], at, at[:, 0], at[:, 0] > 0, loss, at[:, 0])
    interference = Interference(np.full((3, 2), 1e-10), np.array([2, 3]), np.array([0, 0]))
    network = physical(
        noise_dbm_per_hz=-170.0, interference=interference, placement=placement, cycles_per_step=7
    )
    part = network.of([1, 2]).of([2])
    for name in ("snr_db", "mean_snr_db", "gain_db", "transmit_power_w", "path_gain_db"):
        assert getattr(part, name).tolist() == getattr(network, name)[2:].tolist(), name
    for name in ("bandwidth_hz", "noise_dbm"):
        assert getattr(part, name).tolist() == getattr(network, name).tolist(), name
    for name in ("noise_figure_db", "noise_dbm_per_hz", "antennas", "interference", "placement"):
        assert getattr(part, name) is getattr(network, name), name
    assert part.with_snr(4.0).snr_db == pytest.approx([4 - 3.0103], abs=1e-5)  # 0.05 W


def test_arrays_of_a_network_are_read_only():
    for name in ("snr_db", "mean_snr_db", "gain_db"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(physical(), name)[0] = 1.0


def test_a_network_of_many_clients_costs_its_uploads():
    """A draw of 3 of 10^6 clients takes no array over all clients."""
    clients = 10**6
    network = Network(np.zeros(clients, np.int8), cpu_hz=1e9, gain_db=-100.0, antennas=2)
    rows = np.array([0, 5, clients - 1])
    start = time.perf_counter()
    tracemalloc.start()
    try:
        draw = network.draw(Stream(1), 3, rows)
        served = EqualSlots().serve(Load(1e6, 1e4), draw)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert served.seconds.shape == (3,)
    assert peak < 100_000
    assert time.perf_counter() - start < 1
    assert network.snr_db_of(rows) == pytest.approx(draw.network.snr_db)


def test_the_preset_holds_at_the_default_power():
    network = section_vi_c(2, 4, stream=Stream(1))
    assert set(network.snr_db.tolist()) == {30.0, 40.0}
    stronger = replace(network, transmit_power_w=0.2)
    assert stronger.snr_db == pytest.approx(network.snr_db + DOUBLE_DB, abs=1e-9)


REFUSED = [
    ({"gain_db": 90.0}, r"gain_db contains 90: .* at most 0 dB.*path_loss_db"),
    ({"gain_db": [-90, 1e-9, -90]}, "gain_db contains 1e-09"),
    ({"transmit_power_w": 23}, r"transmit_power_w contains 23, .* 10 W.*watts: dbm_to_watts\(23\)"),
    ({"noise_dbm_per_hz": 3.98e-21}, "noise_dbm_per_hz is 3.98e-21: .* dBm/Hz.*watts_to_dbm"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_mixed_up_units_are_refused_in_one_line(changes, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        physical(**changes)
    assert "\n" not in str(caught.value)


def test_a_network_needs_gains():
    with pytest.raises(TypeError, match=r"^gain_db is missing: .*Network\.from_snr"):
        Network(CELLS, cpu_hz=1e9)
    with pytest.raises(TypeError, match=r"^gain_db conflicts with snr_db, which fixes the gains"):
        given_snr(gain_db=-90)


def test_the_number_of_cells_is_not_replaced():
    """The gains of an SNR hold for the noise of their cells."""
    message = "cell_of has 1 cells, and the SNRs hold for 2: .*build a new network"
    with pytest.raises(ValueError, match=message):
        replace(given_snr(), cell_of=[0, 0, 0], bandwidth_hz=1e6)
    moved = replace(physical(), cell_of=[0, 0, 0], bandwidth_hz=1e6, gain_db=-90)
    assert moved.cells == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: watts_to_dbm([0.1, 0]), "power_w contains 0.0: give finite watts > 0.*dBm"),
    ],
)
def test_helpers_refuse_other_units(call, message):
    with pytest.raises(ValueError, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)
