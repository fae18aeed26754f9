"""Interference of other cells, by hand and in draws of networks."""

from dataclasses import replace

import numpy as np
import pytest

from channels import (
    ActiveInterference,
    ChannelDraw,
    EqualBands,
    EqualSlots,
    Interference,
    Load,
    Network,
    Recorded,
    Stream,
    ofdma_seconds_per_bit,
    tdma_seconds_per_bit,
)

ENDS = np.array([2, 3, 6])  # cells of 2, 1 and 3 clients
CELL_OF = [0, 0, 1, 2, 2, 2]
WATTS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
GAIN = 1e-9 * np.arange(1, 19).reshape(6, 3)
STREAM = Stream(7, ("channel",))
ALL = np.zeros(3, int)


def made(band_of=ALL, gain=GAIN, **changes):
    settings = {"cpu_hz": 1e9, "gain_db": -85.0, "transmit_power_w": WATTS, "antennas": 2}
    return Network(CELL_OF, **settings, interference=Interference(gain, ENDS, band_of), **changes)


def test_one_client_of_every_other_cell_is_heard():
    """The sum over the other cells is that of one of the 2 x 1 x 3 choices of active clients."""
    heard = Interference(GAIN, ENDS, ALL, WATTS)
    choices = {
        tuple(
            sum(WATTS[i] * GAIN[i, cell] for other, i in enumerate(active) if other != cell)
            for cell in range(3)
        ): active
        for active in np.ndindex(2, 1, 3)
        for active in [(active[0], 2, 3 + active[2])]
    }
    seen = set()
    for index in range(60):
        watts = heard.watts(STREAM, index)
        near = [at for at in choices if np.allclose(watts, at, rtol=1e-12, atol=0)]
        assert len(near) == 1
        seen.add(choices[near[0]])
    assert len(seen) == 6  # the probability to miss one of them is below 6 (5/6)^60 = 1e-4


def test_active_clients_are_uniform():
    """Cell 1 hears client 0 or 1 half of the time; standard error of 400 blocks is 0.025."""
    only = np.zeros_like(GAIN)
    only[0, 1] = 1e-9
    heard = Interference(only, ENDS, ALL, WATTS)
    share = np.mean([heard.watts(STREAM, index)[1] > 0 for index in range(400)])
    assert abs(share - 0.5) < 0.1


def test_only_cells_with_the_same_band_interfere():
    one_each = Interference(GAIN, ENDS, np.arange(3), WATTS)
    assert one_each.watts(STREAM, 0).tolist() == [0, 0, 0]
    pair = Interference(GAIN, ENDS, np.array([4, 8, 4]), WATTS)
    watts = pair.watts(STREAM, 0)
    assert watts[1] == 0
    assert any(np.isclose(watts[2], WATTS[i] * GAIN[i, 2], rtol=1e-12, atol=0) for i in (0, 1))
    assert any(np.isclose(watts[0], WATTS[i] * GAIN[i, 0], rtol=1e-12, atol=0) for i in (3, 4, 5))


def test_the_noise_rise_of_a_draw_by_hand():
    """1 + I / N with the noise of each cell's band; the SNR of a client falls by it."""
    network = made(bandwidth_hz=[1e6, 2e6, 4e6], noise_figure_db=3)
    draw = network.draw(STREAM, 5)
    noise = 1e-3 * 10 ** ((-174 + 3) / 10) * np.array([1e6, 2e6, 4e6])
    watts = network.interference.watts(STREAM.child("interference"), 5)
    assert (watts > 0).all()
    assert draw.noise_rise == pytest.approx(1 + watts / noise, rel=1e-9)
    quiet = 10 ** (network.snr_db / 10)
    assert draw.snr == pytest.approx(quiet / draw.noise_rise[CELL_OF], rel=1e-12)
    assert draw.snr_hz == pytest.approx(
        draw.snr * draw.gain * network.bandwidth_hz[CELL_OF], rel=1e-12
    )


@pytest.mark.parametrize("access", [EqualSlots(), EqualBands()])
def test_interference_lowers_rates(access):
    loud = made().draw(STREAM)
    quiet = made().draw(STREAM)
    quiet = ChannelDraw(quiet.network, quiet.h)
    load = Load(elements=1e4)
    slow, fast = (access.serve(load, draw) for draw in (loud, quiet))
    assert (slow.seconds > fast.seconds).all()
    assert (slow.joules > fast.joules).all()
    alone = replace(made(), interference=None).draw(STREAM)
    assert alone.noise_rise is None
    assert (alone.h == quiet.h).all()
    assert (access.serve(load, alone).seconds == fast.seconds).all()


def test_the_power_of_interferers_is_that_of_the_network():
    """Also after a change of the powers."""
    one = made()
    two = replace(one, transmit_power_w=2 * WATTS)
    rises = [network.draw(STREAM, 2).noise_rise - 1 for network in (one, two)]
    assert rises[1] == pytest.approx(2 * rises[0], rel=1e-9)


def test_equal_streams_and_blocks_hear_the_same():
    network = made()
    again = made().draws(STREAM, [3, 4, 3])
    for block, index in enumerate([3, 4, 3]):
        assert (again.noise_rise[block] == network.draw(STREAM, index).noise_rise).all()
    rises = {tuple(network.draw(STREAM, index).noise_rise) for index in range(20)}
    assert len(rises) > 1
    assert not (network.draws(Stream(8), range(9)).noise_rise == 0).any()


@pytest.mark.parametrize("clients", [[0, 3], [2], [1, 2, 4, 5], []])
def test_a_sub_network_hears_the_same(clients):
    """Clients that are not drawn interfere as well."""
    network = made()
    whole = network.draws(STREAM, [1, 2])
    for draw in (network.of(clients).draws(STREAM, [1, 2]), whole.of(clients)):
        assert (draw.noise_rise == whole.noise_rise).all()
        assert (draw.snr == whole.snr[:, clients]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gain": GAIN[:, :2]}, r"gain has shape \(6, 2\) and ends is \[2, 3, 6\]: give gains"),
        ({"gain": GAIN[:5]}, r"gain has shape \(5, 3\)"),
        ({"gain": -GAIN}, r"gain contains -1e-09: .*ratios"),
        ({"gain": GAIN * 1e9}, r"gain contains 2\.0.*: .* A gain of -90 dB is 1e-9"),
        ({"gain": GAIN * np.nan}, "gain contains nan"),
        ({"band_of": [0, 0]}, r"band_of has shape \(2,\): give one band per cell, here \(3,\)"),
    ],
)
def test_invalid_interference_is_refused(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        made(**changes)
    assert "\n" not in str(caught.value)


def test_interference_of_other_clients_is_refused():
    interference = Interference(GAIN, ENDS, ALL)
    with pytest.raises(ValueError, match=r"interference has gains of shape \(6, 3\): .*\(3, 2\)"):
        Network([0, 0, 1], cpu_hz=1e9, gain_db=-90, interference=interference)
    with pytest.raises(ValueError, match="transmit_power_w is None: give a power"):
        interference.watts(STREAM, 0)


@pytest.mark.parametrize(
    ("rise", "message"),
    [
        (np.ones(2), r"noise_rise has shape \(2,\): give \[..., cells\], here \(3,\)"),
        ([1, 1, 0.5], "noise_rise contains 0.5: give ratios"),
        ([1, np.inf, 1], "noise_rise contains inf"),
    ],
)
def test_invalid_noise_rises_are_refused(rise, message):
    network = made()
    with pytest.raises(ValueError, match=message):
        ChannelDraw(network, np.ones((6, 2)), rise)


def test_each_of_equal_bands_has_one_interferer_at_full_power():
    """SINR in a band B / n: P g / (N0 B / n + I), with the whole power I of one client there."""
    network = made(bandwidth_hz=[1e6, 2e6, 4e6])
    draw = network.draw(STREAM, 3)
    sizes = np.array([2, 1, 3])[CELL_OF]
    band = np.array([1e6, 2e6, 4e6])[CELL_OF] / sizes
    heard = network.interference.watts(STREAM.child("interference"), 3)[CELL_OF]
    assert (heard > 0).all()
    noise = 1e-3 * 10 ** (-174 / 10) * band
    sinr = WATTS * 10 ** (-85 / 10) * draw.gain / (noise + heard)
    rate = band * np.log2(1 + sinr)
    assert ofdma_seconds_per_bit(draw) == pytest.approx(1 / rate, rel=1e-9)
    assert EqualBands().serve(Load(elements=1e4), draw).seconds == pytest.approx(
        32e4 / rate, rel=1e-9
    )


def test_only_clients_that_send_divide_the_band():
    """A client that is alone in its band has the same rate as under time division."""
    draw = made().draw(STREAM, 3)
    active = np.array([True, False, True, False, False, True])
    alone = ofdma_seconds_per_bit(draw, active)
    assert alone[active] == pytest.approx(tdma_seconds_per_bit(draw, active)[active], rel=1e-12)


def test_channels_in_bands():
    """n_j times the interference; no change without interference, or with one client per cell."""
    draw = made().draws(STREAM, range(3))
    rise = draw.in_bands().noise_rise
    assert rise - 1 == pytest.approx((draw.noise_rise - 1) * [2, 1, 3], rel=1e-9)
    quiet = replace(made(), interference=None).draw(STREAM)
    assert quiet.in_bands() is quiet
    few = draw.of([0, 2, 4])
    assert (few.in_bands().noise_rise == few.noise_rise).all()


class Still:
    """Every channel has power 1 per antenna."""

    def draw(self, stream, index, clients, root):
        return np.ones((len(clients), len(root)), dtype=np.complex64)


def active(**changes):
    return replace(made(**changes), interference=ActiveInterference(GAIN, ENDS, ALL))


def test_active_clients_are_heard_at_their_own_gains():
    """By hand without fading: the mean over the participants of each other cell."""
    network = active(fading=Still())
    noise = 10 ** (network.noise_dbm / 10) / 1e3
    rise = network.draw(STREAM, 0, [1, 2, 3, 5]).noise_rise
    power = WATTS[:, None] * GAIN
    heard = np.array([power[1], power[2], (power[3] + power[5]) / 2])
    expected = [heard[1, 0] + heard[2, 0], heard[0, 1] + heard[2, 1], heard[0, 2] + heard[1, 2]]
    np.testing.assert_allclose(rise, 1 + expected / noise, rtol=1e-6)
    # Cell 1 has no participant: it does not interfere.
    rise = network.draw(STREAM, 0, [1, 3]).noise_rise
    np.testing.assert_allclose(rise, 1 + [power[3, 0], sum(power[[1, 3], 1]), power[1, 2]] / noise)
    # All of a cell's bands are filled: with n clients a cell, n times as much is heard.
    bands = network.draw(STREAM, 0, [1, 2, 3]).in_bands().noise_rise
    np.testing.assert_allclose(bands, network.draw(STREAM, 0, [1, 2, 3]).noise_rise)


def test_the_mean_over_participants_and_fading_is_that_of_one_client():
    """Random participants, Rayleigh fading: 3000 blocks, a third of the tolerance."""
    network, random = active(), np.random.default_rng(1)
    noise = 10 ** (network.noise_dbm / 10) / 1e3
    watts = []
    for index in range(3000):
        who = np.sort([random.integers(2), 2, *random.choice([3, 4, 5], 2, replace=False)])
        watts.append((network.draw(STREAM, index, who).noise_rise - 1) * noise)
    error = np.std(watts, axis=0) / np.sqrt(3000)
    mean = network.interference.mean_watts()
    assert (3 * error < 0.06 * mean).all()
    np.testing.assert_allclose(np.mean(watts, axis=0), mean, rtol=0.06)


def test_watts_are_noise_of_every_part_of_the_band():
    """I/N of 3 in cell 0 and 1 in cell 1 divide SNRs by 4 and 2, alike in parts of the band."""
    plain = Network([0, 0, 1], cpu_hz=1e9, gain_db=-85.0)
    noise = 10 ** (plain.noise_dbm / 10) / 1e3
    louder = replace(plain, interference_watts=noise * [3, 1])
    clean, draw = plain.draw(STREAM), louder.draw(STREAM)
    np.testing.assert_allclose(draw.snr, clean.snr / [4, 4, 2], rtol=1e-12)
    np.testing.assert_array_equal(draw.h, clean.h)
    assert draw.in_bands() is draw
    # The same as that much noise.
    noisier = [replace(plain, noise_figure_db=float(10 * np.log10(rise))) for rise in (4, 2)]
    for seconds in (ofdma_seconds_per_bit, tdma_seconds_per_bit):
        both = [seconds(network.draw(STREAM)) for network in noisier]
        expected = [both[0][0], both[0][1], both[1][2]]
        np.testing.assert_allclose(seconds(draw), expected, rtol=1e-9)


def test_watts_by_block_repeat_and_functions_return_them():
    watts = np.array([[1e-13, 2e-13], [3e-13, 0.0]])
    plain = Network([0, 0, 1], cpu_hz=1e9, gain_db=-85.0)
    listed = replace(plain, interference_watts=watts)
    called = replace(plain, interference_watts=lambda block: watts[block % 2])
    noise = 10 ** (plain.noise_dbm / 10) / 1e3
    rise = listed.draws(STREAM, range(3)).given_rise
    np.testing.assert_allclose(rise, 1 + watts[[0, 1, 0]] / noise)
    np.testing.assert_array_equal(called.draws(STREAM, range(3)).given_rise, rise)
    assert listed.draws(STREAM, range(3)).block(1).given_rise.tolist() == rise[1].tolist()
    some = listed.draw(STREAM, 1, clients=[1, 2])
    np.testing.assert_array_equal(some.snr, listed.draw(STREAM, 1).snr[1:])


def test_watts_add_to_clients_of_other_cells():
    """SINR P g / (N + I + n J) in bands, with J of one client of each other cell."""
    network = replace(made(), interference_watts=1e-10)
    draw, alone = network.draw(STREAM), made().draw(STREAM)
    noise = 10 ** (network.noise_dbm / 10) / 1e3
    others = (alone.noise_rise - 1) * noise
    sinr = 10 ** (network.snr_db / 10) * (noise / (noise + 1e-10 + [2, 1, 3] * others))[CELL_OF]
    np.testing.assert_allclose(draw.in_bands().snr, sinr, rtol=1e-9)


@pytest.mark.parametrize(
    ("watts", "message"),
    [
        ([1e-13] * 2, r"give one number, \[cells\] or \[blocks, cells\] in watts, here for 3"),
        (-1e-13, "interference_watts contains -1e-13: give received watts from 0 to 1"),
        (-100.0, "contains -100: give received watts from 0 to 1. -100 dBm are 1e-13 W"),
        (np.empty((0, 3)), "has no block"),
        (lambda block: [1e-13] * 2, r"returns shape \(2,\) for block 0: return one number or"),
    ],
)
def test_wrong_watts_are_refused(watts, message):
    with pytest.raises(ValueError, match=message):
        made(interference_watts=watts).draw(STREAM)


def test_active_clients_need_drawn_channels():
    h = 1e-5 * np.ones((1, 6, 2), dtype=complex)
    with pytest.raises(ValueError, match="active clients needs channels that are drawn"):
        active(fading=Recorded(h))
