"""``OverTheAir`` against solvers called by hand, and against networks without silent clients."""

import numpy as np
import pytest

from channels import ChannelDraw, Load, Network, Simultaneous, Stream
from solvers import OverTheAir, align_transmitters
from solvers.beamforming import Anneal

CELLS = np.array([0, 0, 0, 0, 1, 1, 1, 3])  # no client in cell 2
CONVENTIONS = ["published", "physical", "mmse"]
ELEMENTS = 900


def network(**more):
    random = np.random.default_rng(1)
    options = {"snr_db": random.uniform(-10, 10, 9), "antennas": 3, **more}
    cells = np.insert(CELLS, 7, 2)
    whole = Network.from_snr(cells, cpu_hz=1e9, transmit_power_w=0.2, **options)
    return whole.of(np.flatnonzero(cells != 2))


def over_the_air(convention, per_symbol=1):
    times = Simultaneous(elements_per_symbol=per_symbol)
    return OverTheAir(times, convention, Anneal(4), starts=8)


def load(vectors=1.0, weights=(3, 1, 1, 2, 1, 2, 2, 5)):
    return Load(1e6, ELEMENTS, vectors=vectors, weights=np.array(weights, float))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("per_symbol", [1, 2])
def test_powers_and_joules_of_least_error(per_symbol):
    """Each cell has the powers of ``align_transmitters`` with noise 1/2 and power limit P / e."""
    draw = network().draws(Stream(2), range(2))
    service = over_the_air("mmse", per_symbol).serve(load(), draw)
    powers = np.zeros((2, len(CELLS)))
    for block in range(2):
        for cell in (0, 1, 3):
            own = cell == CELLS
            weights = load().weights[own] / load().weights[own].sum()
            limits = np.sqrt(draw.snr[block, own] / per_symbol)
            found = align_transmitters(draw.h[block, own], weights, limits, 0.5)
            powers[block, own] = 0.2 * np.abs(found.value.transmit / limits) ** 2
            beamformer = service.decision.beamformers[block, cell]
            overlap = abs(np.vdot(beamformer, found.value.receive))
            assert overlap == pytest.approx(np.linalg.norm(beamformer) ** 2, rel=1e-3)
    assert (service.decision.beamformers[:, 2] == 0).all()
    np.testing.assert_allclose(service.decision.powers_w, powers, rtol=1e-3, atol=1e-9)
    assert (powers > 0.19999).sum() > 3 * 2  # more than one client per cell at its limit
    seconds = Simultaneous(elements_per_symbol=per_symbol).seconds(load(), draw)
    np.testing.assert_array_equal(service.seconds, seconds)
    airtime = seconds - 1e-3
    joules = load().compute_joules(draw.network) + service.decision.powers_w * airtime
    np.testing.assert_allclose(service.joules, joules, rtol=1e-9)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_the_others_are_served_as_if_silent_clients_were_not_there(convention):
    """Weights are renormalised over those that send; a cell may have none."""
    draw = network().draw(Stream(3))
    sends = np.array([1, 0, 1, 1, 0, 0, 0, 1.0])
    service = over_the_air(convention).serve(load(vectors=sends), draw)
    some = np.flatnonzero(sends)
    without = draw.of(draw.network.numbers[some])
    found = over_the_air(convention).serve(load(weights=load().weights[some]), without)
    np.testing.assert_allclose(service.joules[some], found.joules, rtol=1e-6)
    np.testing.assert_allclose(service.seconds[some], found.seconds, rtol=1e-12)
    np.testing.assert_allclose(service.decision.powers_w[some], found.decision.powers_w, rtol=1e-6)
    silent = sends == 0
    training = load().compute_joules(draw.network)
    np.testing.assert_array_equal(service.joules[silent], training[silent])
    assert (service.decision.powers_w[silent] == 0).all()
    all_silent = over_the_air(convention).serve(load(vectors=0.0), draw)
    np.testing.assert_array_equal(all_silent.joules, training)


@pytest.mark.parametrize("antennas", [1, 3])
def test_least_error_at_high_snr_inverts_the_channels(antennas):
    """Without noise to speak of, the powers are those of ``physical``, up to the beamformer."""
    draw = network(snr_db=90.0, antennas=antennas).draw(Stream(4))
    aligned, inverted = (
        OverTheAir(convention=name, backend=Anneal()).serve(load(), draw).decision
        for name in ("mmse", "physical")
    )
    np.testing.assert_allclose(aligned.powers_w, inverted.powers_w, rtol=0.02)


def test_a_client_alone_sends_at_full_power():
    """At any gain a g b, a larger b takes a smaller a, and so less noise."""
    draw = network().draw(Stream(5))
    power = over_the_air("mmse").serve(load(), draw).decision.powers_w
    assert power[7] == pytest.approx(0.2, rel=1e-9)


def test_two_elements_per_symbol_share_the_power():
    """They are sent as single ones at half the SNR."""
    some, snr_db = np.arange(4), np.linspace(-5, 10, 9)
    single, double = (
        over_the_air("mmse", count).serve(
            load(weights=(3, 1, 1, 2)), network(snr_db=db).draw(Stream(5)).of(some)
        )
        for count, db in ((1, snr_db), (2, snr_db + 10 * np.log10(2)))
    )
    powers = single.decision.powers_w
    assert powers.min() < 0.1
    np.testing.assert_allclose(double.decision.powers_w, powers, rtol=1e-6)


def test_a_network_without_clients():
    draw = network().draw(Stream(0)).of([])
    service = over_the_air("mmse").serve(Load(1.0, 1.0), draw)
    assert service.joules.shape == (0,)


def test_cells_too_large_for_least_error_are_refused():
    draw = Network.from_snr(np.zeros(2001, int), cpu_hz=1e9, snr_db=10).draw(Stream(1))
    for method in ("serve", "seconds"):
        with pytest.raises(ValueError, match="a cell has 2001 clients, and convention is 'mmse'"):
            getattr(OverTheAir(convention="mmse"), method)(Load(0, 10.0), draw)
    assert OverTheAir(convention="physical").seconds(Load(0, 10.0), draw).shape == (2001,)


@pytest.mark.parametrize("per_symbol", [1, 2])
def test_powers_of_inverted_channels(per_symbol):
    """Signals of all clients of a cell arrive alike; the weakest client sends at 0.2 W.

    Client i sends e elements per symbol of power |b_i|^2 each, with b_i a^H h_i = g q_i.
    """
    draw = network().draws(Stream(6), range(2))
    service = over_the_air("physical", per_symbol).serve(load(), draw)
    powers, beams = service.decision.powers_w, service.decision.beamformers
    for block in range(2):
        for cell in (0, 1, 3):
            own = cell == CELLS
            weights = load().weights[own] / load().weights[own].sum()
            arrives = np.abs(draw.h[block, own] @ beams[block, cell].conj()) / weights
            amplitude = np.sqrt(powers[block, own] * draw.snr[block, own] / per_symbol)
            np.testing.assert_allclose(arrives * amplitude, arrives[0] * amplitude[0], rtol=1e-6)
            assert powers[block, own].max() == pytest.approx(0.2, rel=1e-6)


def test_published_powers_are_shares_of_the_weights():
    """At most the fraction q_i^2 of a client's power, which the weakest sends."""
    draw = network().draw(Stream(7))
    powers = over_the_air("published").serve(load(), draw).decision.powers_w
    for cell in (0, 1, 3):
        own = cell == CELLS
        weights = load().weights[own] / load().weights[own].sum()
        assert (powers[own] / (0.2 * weights**2)).max() == pytest.approx(1, rel=1e-6)


def test_the_soonest_have_channels_and_interference_does_not_matter():
    """Seconds depend on what a cell's clients send jointly; client 1 has no channel."""
    whole = network().draw(Stream(8))
    h = whole.h * (np.arange(8) != 1)[:, None]
    cycles = 1e6 * np.array([1, 0, 3, 2, 5, 4, 6, 1.0])
    counts = np.array([2, 2, 0, 1])
    for rise in (None, np.full(4, 7.0)):
        draw = ChannelDraw(whole.network, h, rise)
        found = over_the_air("physical").soonest(Load(cycles, 10.0), draw, counts)
        assert found.tolist() == [True, False, False, True, True, True, False, True]
