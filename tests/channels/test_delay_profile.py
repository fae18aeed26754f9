"""Channels that differ over the band: power-delay profiles, recordings, rates and refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import j0

import channels
import solvers
from channels import (
    ChannelDraw,
    DelayProfile,
    Doppler,
    EqualBands,
    EqualSlots,
    Load,
    Network,
    Rayleigh,
    ReadyOrder,
    Recorded,
    Rician,
    Stream,
    from_sionna,
    link_budget,
    load_network,
    over_band,
    save_network,
    section_vi_c,
    spectral_efficiency,
)
from channels.delay_profile import TABLES

CLIENTS = 20_000
BAND = 20e6
LOAD = Load([1e6, 2e6, 3e6, 4e6], [1e5, 2e5, 3e5, 4e5])


def cell(fading=None, antennas=1, clients=4, **others):
    return Network(
        [0] * clients,
        cpu_hz=1e9,
        gain_db=-100.0,
        bandwidth_hz=BAND,
        antennas=antennas,
        fading=fading,
        **others,
    )


def powers(draw):
    """Gain of each subcarrier of one antenna, of mean 1, [clients, subcarriers]."""
    return draw.gain[..., None] * draw.spectrum


@pytest.mark.parametrize("profile", TABLES)
def test_tables_have_unit_delay_spread(profile):
    """Normalised, to the four digits of the tables."""
    delays, power_db = map(np.array, TABLES[profile])
    weights = 10 ** (power_db / 10) / (10 ** (power_db / 10)).sum()
    spread = math.sqrt(weights @ delays**2 - (weights @ delays) ** 2)
    assert spread == pytest.approx(1.0, abs=1e-4)


def correlation(power, first, second):
    """Squared magnitude of the correlation of Rayleigh channels, from powers of two subcarriers,
    and its standard error."""
    products = (power[:, first] - 1) * (power[:, second] - 1)
    return products.mean(), products.std() / math.sqrt(len(products))


@pytest.mark.parametrize("spread_ns", [20.0, 300.0])
def test_an_exponential_profile_has_its_frequency_correlation(spread_ns):
    """|1 / (1 + 2 pi j df tau)|^2, as the covariance of powers of Rayleigh channels is the square
    of the correlation of channels; the standard error is a quarter of the tolerance."""
    fading = DelayProfile(1e-9 * spread_ns, subcarriers=8)
    power = powers(cell(fading, clients=CLIENTS).draw(Stream(3)))
    mean_error = power.std() / math.sqrt(CLIENTS)
    assert abs(power.mean() - 1) < 4 * mean_error < 0.03
    for step in (1, 3, 7):
        expected = 1 / (1 + (2 * math.pi * step * BAND / 8 * 1e-9 * spread_ns) ** 2)
        value, error = correlation(power, 0, step)
        assert abs(value - expected) < 4 * error < 0.12, step


def test_responses_have_the_complex_correlation_of_the_profile():
    """E[H(f + df) H*(f)] = 1 / (1 + 2 pi j df tau); the standard error is 0.007."""
    tau, clients = 30e-9, np.arange(CLIENTS)
    fading, band = DelayProfile(tau, subcarriers=4), np.full(CLIENTS, BAND)
    h = fading.responses(Stream(5), 0, clients, np.eye(1), band)[:, 0]
    for step in (1, 2, 3):
        products = h[:, step] * h[:, 0].conj()
        expected = 1 / (1 + 2j * np.pi * step * BAND / 4 * tau)
        assert abs(products.mean() - expected) < 4 * products.std() / math.sqrt(CLIENTS) < 0.03


@pytest.mark.parametrize("profile", TABLES)
def test_tables_have_their_frequency_correlation(profile):
    """The transform of the powers over the delays, by Monte Carlo; mean power 1."""
    delays, power_db = map(np.array, TABLES[profile])
    weights = 10 ** (power_db / 10) / (10 ** (power_db / 10)).sum()
    fading = DelayProfile(100e-9, profile, subcarriers=4)
    power = powers(cell(fading, clients=CLIENTS).draw(Stream(4)))
    for step in (1, 3):
        turns = np.exp(-2j * np.pi * step * BAND / 4 * 100e-9 * delays)
        value, error = correlation(power, 0, step)
        assert abs(value - abs(weights @ turns) ** 2) < 4 * error < 0.12


def test_one_subcarrier_is_the_flat_channel_to_the_bit():
    flat, one = section_vi_c(stream=Stream(1)), DelayProfile(300e-9, "tdl-b", subcarriers=1)
    selective = replace(flat, fading=one)
    for a, b in (
        (flat.draw(Stream(2), 7), selective.draw(Stream(2), 7)),
        (flat.draws(Stream(2), range(3)), selective.draws(Stream(2), range(3))),
    ):
        assert b.spectrum is None
        np.testing.assert_array_equal(a.h, b.h)
    gains = [network.draw_gains(Stream(2), 0, 9) for network in (flat, selective)]
    np.testing.assert_array_equal(*gains)
    h = 1e-5 * np.random.default_rng(0).normal(size=(3, 4, 2, 2)).view(complex)[..., 0]
    recorded = Recorded(h[:, :, None])
    assert recorded.subcarriers == 1
    np.testing.assert_array_equal(recorded.h, Recorded(h).h)


ACCESSES = [EqualSlots(), EqualBands(), ReadyOrder(), EqualSlots("mcs"), EqualBands("mcs")]


@pytest.mark.parametrize("access", ACCESSES, ids=repr)
def test_equal_subcarriers_are_a_flat_channel(access):
    """Within 1e-12, also in smaller groups of clients."""
    h = 1e-5 * np.random.default_rng(1).normal(size=(3, 4, 2, 2)).view(complex)[..., 0]
    flat = Network([0, 0, 1, 1], cpu_hz=1e9, **Recorded(h).links)
    equal = Recorded(np.repeat(h[:, :, None], 5, axis=2))
    spread = Network([0, 0, 1, 1], cpu_hz=1e9, **equal.links)
    one, two = (n.draws(Stream(1), range(3)) for n in (flat, spread))
    assert two.spectrum.shape == (3, 4, 5)
    for name in ("seconds", "joules"):
        a, b = (getattr(access.serve(LOAD, draw), name) for draw in (one, two))
        np.testing.assert_allclose(b, a, rtol=1e-12)
    counts = np.array([1, 2])
    chosen = [access.soonest(LOAD, draw, counts) for draw in (one, two)]
    np.testing.assert_array_equal(*chosen)


def test_rates_are_sums_over_subcarriers():
    """By hand: two clients, three subcarriers, one antenna."""
    gains = np.array([[1e-10, 4e-10, 0.5e-10], [2e-10, 3e-10, 9e-10]])
    links = Recorded.of_gains(gains[None]).links
    network = Network([0, 0], cpu_hz=1e9, bandwidth_hz=9e6, transmit_power_w=0.2, **links)
    draw = network.draw(Stream(1))
    noise = 10 ** (-174 / 10) / 1000 * 9e6
    snr = 0.2 * gains / noise
    whole = [sum(3e6 * math.log2(1 + x) for x in row) for row in snr]
    halves = [sum(1.5e6 * math.log2(1 + 2 * x) for x in row) for row in snr]
    np.testing.assert_allclose(1 / channels.airtime_seconds_per_bit(draw, "tdma"), whole, 1e-6)
    np.testing.assert_allclose(1 / channels.tdma_seconds_per_bit(draw), np.divide(whole, 2), 1e-6)
    np.testing.assert_allclose(1 / channels.ofdma_seconds_per_bit(draw), halves, 1e-6)
    # One modulation and coding for the band: that of the flat SNR of the same capacity.
    flat = [2 ** (rate / 9e6) - 1 for rate in whole]
    expected = 9e6 * spectral_efficiency(flat, "mcs")
    rates = 1 / channels.airtime_seconds_per_bit(draw, "tdma", law="mcs")
    np.testing.assert_allclose(rates, expected, rtol=1e-12)
    budget = link_budget(draw, accesses={"alone": EqualSlots()})
    np.testing.assert_allclose(budget.rate_bps["alone"], np.divide(whole, 2), 1e-6)
    mean = draw.gain * 10 ** (network.gain_db / 10)
    np.testing.assert_allclose(mean, gains.mean(-1), rtol=1e-6)


def test_rates_vary_less_over_a_wider_profile():
    """A band of many coherence bandwidths averages its fading; its mean capacity does not change.

    The capacity at one frequency is that of Rayleigh fading for any delay spread: within four
    standard errors, each under 0.7 % of the mean.
    """

    def rates_of(fading, stream):
        draw = cell(fading, clients=CLIENTS).draw(stream)
        return 1 / channels.airtime_seconds_per_bit(draw, "tdma")

    rates = {
        spread: rates_of(DelayProfile(1e-9 * spread, subcarriers=16), Stream(6))
        for spread in (1.0, 1000.0)
    }
    flat = rates_of(None, Stream(7))
    errors = {spread: rate.std() / math.sqrt(CLIENTS) for spread, rate in rates.items()}
    for spread, rate in rates.items():
        error = math.hypot(errors[spread], flat.std() / math.sqrt(CLIENTS))
        assert abs(rate.mean() - flat.mean()) < 4 * error < 0.03 * flat.mean()
    assert rates[1000.0].std() < 0.4 * rates[1.0].std()


@pytest.mark.parametrize("profile", ["exponential", "tdl-c"])
def test_some_clients_have_the_channels_of_a_draw_of_all(profile):
    network = section_vi_c(cells=2, clients=9, stream=Stream(1))
    network = replace(network, fading=DelayProfile(200e-9, profile, subcarriers=8))
    draws = network.draws(Stream(2), [0, 5])
    for some in ([4], [1, 2, 8]):
        part = network.draws(Stream(2), [0, 5], some)
        np.testing.assert_array_equal(part.h, draws.h[:, some])
        np.testing.assert_array_equal(part.spectrum, draws.spectrum[:, some])
        np.testing.assert_array_equal(draws.of(some).spectrum, part.spectrum)
    np.testing.assert_array_equal(draws.block(1).spectrum, network.draw(Stream(2), 5).spectrum)


def test_taps_move_each_by_itself():
    """Powers of one subcarrier at two times have the correlation J0(2 pi f_d T)^2."""
    taps = Doppler(Rayleigh(), doppler_hz=5.0, block_seconds=0.03, model="ar1")
    network = cell(DelayProfile(300e-9, subcarriers=4, taps=taps), clients=CLIENTS)
    first, second = (powers(network.draw(Stream(8), block))[:, 1] for block in (0, 1))
    products = (first - 1) * (second - 1)
    error = products.std() / math.sqrt(CLIENTS)
    assert abs(products.mean() - j0(2 * math.pi * 0.15) ** 2) < 4 * error < 0.12
    again = network.fading.independent
    assert type(again.taps) is Rayleigh
    assert again.independent is again


def test_antennas_keep_their_correlation():
    root, bands = channels.correlation_root(2, 0.7), np.full(CLIENTS, BAND)
    fading = DelayProfile(300e-9, subcarriers=4)
    h, spectrum = fading.draw_band(Stream(9), 0, np.arange(CLIENTS), root, bands)
    power = (abs(h) ** 2).sum(-1)[:, None] * spectrum
    # Var ||h||^2 = 1 + 1 + 2 * 0.7^2 at one frequency.
    squares = (power[:, 2] - 2) ** 2
    assert abs(squares.mean() - 2.98) < 4 * squares.std() / math.sqrt(CLIENTS) < 0.5


def test_over_band_of_a_null_in_the_middle():
    h, spectrum = over_band(np.array([[[3.0, 0.0]], [[0.0, 0.0]]]))
    np.testing.assert_allclose(h[:, 0], [math.sqrt(4.5), 0])
    assert spectrum.tolist() == [[2.0, 0.0], [1.0, 1.0]]


def test_recorded_responses_are_replayed(tmp_path):
    h = 1e-5 * np.random.default_rng(2).normal(size=(3, 4, 6, 2, 2)).view(complex)[..., 0]
    recorded = Recorded(h)
    network = Network([0, 0, 1, 1], cpu_hz=1e9, **recorded.links)
    draw = network.draw(Stream(1), 4)
    power = (abs(h[1]) ** 2).sum(-1)
    np.testing.assert_allclose(
        draw.gain[:, None] * draw.spectrum * 10 ** (network.gain_db / 10)[:, None], power, 1e-6
    )
    assert repr(recorded) == "Recorded(3 blocks, 4 clients, 6 subcarriers, 2 antennas)"
    np.savez(tmp_path / "h.npz", h=h)
    np.testing.assert_array_equal(Recorded.read(tmp_path / "h.npz").spectrum, recorded.spectrum)
    np.savez(tmp_path / "gain.npz", gain_db=10 * np.log10(abs(h[..., 0]) ** 2))
    one = Recorded.read(tmp_path / "gain.npz")
    np.testing.assert_allclose(one.spectrum, Recorded(h[..., :1]).spectrum)
    for kept in (network, cell(DelayProfile(1e-7, "tdl-a", 5, Doppler(Rayleigh(), 3.0)))):
        save_network(kept, tmp_path / "network.npz")
        other = load_network(tmp_path / "network.npz")
        for name in ("h", "spectrum"):
            values = [getattr(n.draw(Stream(3), 1), name) for n in (kept, other)]
            np.testing.assert_array_equal(*values)


def test_sionna_gives_subcarriers():
    """Two paths by their formula; and evenly spaced ones of the subcarriers that it returns."""
    a = 1e-5 * np.array([1.0, 0.5j]).reshape(1, 1, 1, 1, 1, 2, 1)
    tau = np.array([0.0, 0.2e-6]).reshape(1, 1, 1, 2)
    network = from_sionna(a, tau, cpu_hz=1e9, bandwidth_hz=8e6, subcarriers=4)
    offsets = np.array([-3e6, -1e6, 1e6, 3e6])
    power = 1e-10 * abs(1 + 0.5j * np.exp(-2j * np.pi * offsets * 0.2e-6)) ** 2
    draw = network.draw(Stream(1))
    gain = draw.gain * 10 ** (network.gain_db / 10) * draw.spectrum[0]
    np.testing.assert_allclose(gain, power, rtol=1e-6)
    h = 1e-5 * np.random.default_rng(3).normal(size=(2, 1, 3, 2, 1, 4, 12, 2)).view(complex)[..., 0]
    some = from_sionna(h=h, cpu_hz=1e9, subcarriers=4)
    flat = from_sionna(h=h, cpu_hz=1e9, subcarriers=1)
    assert (some.subcarriers, some.antennas, some.fading.blocks) == (4, 3, 8)
    assert flat.subcarriers == 1
    # [batch, antennas, clients, symbols, subcarriers] to [blocks, clients, subcarriers, antennas].
    chosen = h[:, 0, :, :, 0, :, 1::3].transpose(0, 3, 2, 4, 1).reshape(8, 2, 4, 3)
    np.testing.assert_allclose(some.fading.spectrum, Recorded(chosen).spectrum)
    with pytest.raises(ValueError, match="subcarriers is 5: h has 12, give a divisor"):
        from_sionna(h=h, cpu_hz=1e9, subcarriers=5)
    with pytest.raises(ValueError, match="mean_power makes the band flat"):
        from_sionna(h=h, cpu_hz=1e9, subcarriers=4, mean_power=True)


def test_what_needs_a_flat_band_refuses_others():
    network = section_vi_c(cells=2, clients=4, stream=Stream(1))
    network = replace(network, fading=DelayProfile(300e-9, subcarriers=8))
    draw, counts = network.draw(Stream(1)), np.array([1, 1])
    refused = "needs channels that are flat over the band, and these differ over 8 subcarriers"
    for access in (
        solvers.OptimalBands(),
        solvers.EnergyWithinDeadline(9.0),
        solvers.LeastTimeAndEnergy(1.0),
        solvers.OverTheAir(),
    ):
        assert access.flat
        for call in (
            lambda access=access: access.serve(LOAD, draw),
            lambda access=access: access.seconds(LOAD, draw),
            lambda access=access: access.soonest(LOAD, draw, counts),
        ):
            with pytest.raises(ValueError, match=refused):
                call()
    with pytest.raises(ValueError, match=refused):
        solvers.allocate_bandwidth(LOAD, draw)
    with pytest.raises(ValueError, match=f"gain_per_noise {refused}"):
        _ = draw.gain_per_noise
    with pytest.raises(ValueError, match=refused):
        network.draw_gains(Stream(1), 0, 3)


def test_wrong_values_are_named():
    for wrong in (0.0, -1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="delay_spread_s is"):
            DelayProfile(wrong)
    with pytest.raises(ValueError, match="profile is 'tdl-d': choose exponential, tdl-a"):
        DelayProfile(1e-7, "tdl-d")
    with pytest.raises(TypeError, match="taps have the fading Rician"):
        DelayProfile(1e-7, taps=Rician())
    network = cell()
    h = np.full((4, 1), 1e-5 + 0j)
    for spectrum, message in (
        (np.ones((4, 2, 1)), r"spectrum has shape \(4, 2, 1\): give \[..., clients, subcarriers"),
        (np.full((4, 3), 2.0), "spectrum has .* means other than 1"),
        (np.array([[3.0, -1.0]] * 4), "spectrum has negative"),
        (np.full((4, 2), np.nan), "spectrum has negative or non-finite"),
    ):
        with pytest.raises(ValueError, match=message):
            ChannelDraw(network, h, spectrum=spectrum)


def test_water_filling_takes_the_subcarriers_of_a_draw():
    """No powers carry more: equal power on each subcarrier carries at most the optimum."""
    network = cell(DelayProfile(300e-9, subcarriers=16))
    draw = network.draw(Stream(1))
    gain = draw.snr_hz[:, None] * draw.spectrum / network.transmit_power_w[:, None]
    best = solvers.water_filling(gain, network.transmit_power_w, BAND)
    equal = 1 / channels.airtime_seconds_per_bit(draw, "tdma")
    assert (best.objective >= equal).all()
    np.testing.assert_allclose(best.objective, best.bound, rtol=1e-12)
