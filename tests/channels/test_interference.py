"""Interference of other cells, by hand and in draws of networks."""

from dataclasses import replace

import numpy as np
import pytest

from channels import (
    ActiveInterference,
    ChannelDraw,
    DelayProfile,
    EqualBands,
    EqualSlots,
    FileLayout,
    Hexagonal,
    Interference,
    Load,
    LogDistance,
    Network,
    RandomWaypoint,
    Recorded,
    Stream,
    Umi,
    link_budget,
    ofdma_seconds_per_bit,
    placed_network,
    tdma_seconds_per_bit,
)
from channels.access.groups import seconds_in_groups
from solvers import OverTheAir

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
    rise = listed.draws(STREAM, range(3)).external_rise
    np.testing.assert_allclose(rise, (1 + watts[[0, 1, 0]] / noise)[:, [0, 0, 1]])
    np.testing.assert_array_equal(called.draws(STREAM, range(3)).external_rise, rise)
    assert listed.draws(STREAM, range(3)).block(1).external_rise.tolist() == rise[1].tolist()
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


BY_CLIENT = np.array([[1e-13, 2e-13, 0, 4e-13, 5e-13, 6e-13], [0, 0, 3e-13, 0, 0, 1e-12]])
"""Watts while each client sends, [blocks, clients]."""


def test_watts_of_clients_by_hand():
    """Rates in bands: B/n log2(1 + n P g / (N + I_i + n J)), with I_i while client i sends."""
    network = made(interference_watts=BY_CLIENT)
    draw = network.draw(STREAM, 3)  # block 1 of two that repeat
    noise = 10 ** (network.noise_dbm / 10)[CELL_OF] / 1e3
    sizes = np.array([2, 1, 3])[CELL_OF]
    others = network.interference.watts(STREAM.child("interference"), 3)[CELL_OF]
    power = WATTS * 10 ** (-85 / 10) * draw.gain
    slots = 9e6 * np.log2(1 + power / (noise + BY_CLIENT[1] + others))
    np.testing.assert_allclose(tdma_seconds_per_bit(draw), sizes / slots, rtol=1e-9)
    heard = noise + BY_CLIENT[1] + sizes * others
    bands = 9e6 / sizes * np.log2(1 + sizes * power / heard)
    np.testing.assert_allclose(ofdma_seconds_per_bit(draw), 1 / bands, rtol=1e-9)
    np.testing.assert_allclose(draw.in_bands().snr * draw.gain, power / heard, rtol=1e-9)


@pytest.mark.parametrize("call", [False, True])
def test_equal_watts_of_the_clients_of_a_cell_are_those_of_the_cell(call):
    by_cell = BY_CLIENT[:, [0, 2, 5]]
    watts = (by_cell, by_cell[:, CELL_OF])
    if call:
        watts = [lambda block, values=values: values[block % 2] for values in watts]
    one, other = (made(interference_watts=values).draws(STREAM, range(3)) for values in watts)
    np.testing.assert_array_equal(one.snr, other.snr)
    np.testing.assert_array_equal(one.in_bands().snr, other.in_bands().snr)


@pytest.mark.parametrize("clients", [[0, 3], [2], [1, 2, 4], []])
@pytest.mark.parametrize("call", [False, True])
def test_clients_of_sub_networks_keep_their_watts(clients, call):
    """Also where as many clients are drawn as there are cells."""
    network = made(interference_watts=(lambda block: BY_CLIENT[block % 2]) if call else BY_CLIENT)
    whole = network.draws(STREAM, range(3))
    few = network.of([0, 1, 2, 3, 4]).of(clients) if 5 not in clients else network.of(clients)
    for draw in (few.draws(STREAM, range(3)), whole.of(clients)):
        np.testing.assert_array_equal(draw.external_rise, whole.external_rise[:, clients])
        np.testing.assert_array_equal(draw.snr, whole.snr[:, clients])
    np.testing.assert_array_equal(few.draw(STREAM, 1).snr, whole.block(1).of(clients).snr)


def test_one_client_per_cell_may_have_either():
    """Clients are sorted by cell, without gaps: the values of cells are those of clients."""
    network = Network([0, 1, 2], cpu_hz=1e9, gain_db=-85.0, interference_watts=BY_CLIENT[0, :3])
    noise = 10 ** (network.noise_dbm / 10) / 1e3
    np.testing.assert_allclose(network.draw(STREAM).external_rise, 1 + BY_CLIENT[0, :3] / noise)
    assert not network.watts_by_client


def test_budgets_show_the_watts_of_each_client():
    """The mean of the blocks; of a draw, those of its block."""
    network = replace(made(), interference=None, interference_watts=BY_CLIENT)
    noise = 10 ** (network.noise_dbm / 10)[CELL_OF] / 1e3
    for budget, watts in (
        (link_budget(network), BY_CLIENT.mean(0)),
        (link_budget(network.draw(STREAM, 1)), BY_CLIENT[1]),
    ):
        over = 10 ** (budget.interference_over_noise_db / 10)
        np.testing.assert_allclose(over, watts / noise, rtol=1e-9, atol=1e-12)
        rise = 10 ** (budget.noise_rise_db / 10)
        np.testing.assert_allclose(rise, 1 + watts / noise, rtol=1e-9)
    rows = network.mean_snr_db + 10 * np.log10(2) - link_budget(network).noise_rise_db
    np.testing.assert_allclose(link_budget(network).combined_snr_db, rows)


def test_seconds_in_smaller_cells_have_the_watts_of_their_clients():
    """Among one client of each cell, as if each were alone in it."""
    network = replace(made(), interference=None, interference_watts=BY_CLIENT)
    draw, load = network.draw(STREAM, 1), Load(elements=1e4)
    seconds = seconds_in_groups(EqualBands().seconds, load, draw, np.ones(3, int))
    alone = [EqualBands().seconds(load.of_rows([i]), draw.of([i]))[0] for i in range(6)]
    np.testing.assert_allclose(seconds, alone, rtol=1e-12)


def test_over_the_air_an_edge_server_hears_all_clients_at_once():
    for watts in (BY_CLIENT, lambda block: BY_CLIENT[block]):
        draw = made(interference_watts=watts).draw(STREAM)
        with pytest.raises(ValueError, match="has a value per client, and an edge server hears"):
            OverTheAir(convention="physical").serve(Load(elements=1e3), draw)
    OverTheAir(convention="physical").serve(Load(elements=1e3), made().draw(STREAM))


@pytest.mark.parametrize("call", [False, True])
def test_watts_of_placed_clients_follow_them(call, tmp_path):
    """Clients of a file are sorted by cell, and by another association once more."""
    watts = np.array([1e-13, 2e-13, 3e-13, 4e-13])
    lines = ["base_station,0,0,", "base_station,400,0,"]
    places = [(350, 30), (20, 30), (210, 0), (390, 40)]  # cells 1, 0, 1, 1
    lines += [f"client,{x},{y},{w}" for (x, y), w in zip(places, watts, strict=True)]
    file = tmp_path / "places.csv"
    file.write_text("\n".join(["kind,x_m,y_m,interference_watts", *lines]))
    plain = tmp_path / "plain.csv"
    plain.write_text("\n".join(line.rpartition(",")[0] for line in ["kind,x_m,y_m,", *lines]))
    radio = {"stream": Stream(1), "cpu_hz": 1e9}
    model = LogDistance(shadowing_db=0.0)
    stated_watts = (lambda block: watts) if call else watts
    for association, order in (("placed", [1, 0, 2, 3]), ([1, 0, 0, 1], [1, 2, 0, 3])):
        column = placed_network(FileLayout(file), model, association=association, **radio)
        stated = placed_network(
            FileLayout(plain),
            model,
            association=association,
            interference_watts=stated_watts,
            **radio,
        )
        noise = 10 ** (column.noise_dbm[0] / 10) / 1e3
        for network in (column, stated):
            draw = network.draw(STREAM)
            np.testing.assert_allclose(draw.external_rise, 1 + watts[order] / noise)
    with pytest.raises(ValueError, match="conflicts with that of the layout's clients: leave one"):
        placed_network(FileLayout(file), model, interference_watts=1e-13, **radio)


def test_clients_that_are_handed_over_keep_their_watts():
    """Whichever cell serves them, and in which order."""
    watts = 1e-13 * np.arange(12)
    network = placed_network(
        *(Hexagonal(100.0), Umi()),
        cells=3,
        clients=12,
        stream=Stream(1),
        cpu_hz=1e9,
        mobility=RandomWaypoint(60.0),
        block_seconds=10.0,
        handover="strongest",
        interference_watts=watts,
    )
    served = network.served(4)
    assert served.numbers.tolist() != sorted(served.numbers)
    noise = 10 ** (network.noise_dbm[0] / 10) / 1e3
    rise = served.draw(STREAM, 4).external_rise
    np.testing.assert_allclose(rise, 1 + watts[served.numbers] / noise)


@pytest.mark.parametrize(
    ("watts", "message"),
    [
        ([1e-13] * 2, r"give one number, \[cells\] or \[clients\], .* here for 3 cells and 6 cl"),
        (-1e-13, "interference_watts contains -1e-13: give received watts from 0 to 1"),
        (-100.0, "contains -100: give received watts from 0 to 1. -100 dBm are 1e-13 W"),
        (np.empty((0, 3)), "has no block"),
        (lambda block: [1e-13] * 2, r"returns shape \(2,\) for block 0: return one number, "),
    ],
)
def test_wrong_watts_are_refused(watts, message):
    with pytest.raises(ValueError, match=message):
        made(interference_watts=watts).draw(STREAM)


def test_active_clients_need_drawn_channels():
    h = 1e-5 * np.ones((1, 6, 2), dtype=complex)
    with pytest.raises(ValueError, match="active clients needs channels that are drawn"):
        active(fading=Recorded(h))


RESOURCE_BLOCKS = 1e-13 * np.arange(12.0).reshape(2, 3, 2) ** 2  # [blocks, cells, subcarriers]


def by_block(watts=RESOURCE_BLOCKS, **changes):
    settings = {"cpu_hz": 1e9, "gain_db": -95.0, "bandwidth_hz": 2e6, "antennas": 2}
    return Network(CELL_OF, interference_watts=watts, **(settings | changes))


def test_rates_with_interference_by_resource_block_are_sums_by_hand():
    """In slots and in bands of their own, also of some clients, and with a delay spread."""
    for fading in (None, DelayProfile(1e-6, subcarriers=2)):
        network = by_block(fading=fading)
        still = by_block(None, fading=fading).draws(STREAM, range(4))
        some = network.draws(STREAM, range(4), [1, 2, 5])
        draw = network.draws(STREAM, range(4))
        spectrum = np.ones((4, 6, 2)) if still.spectrum is None else still.spectrum
        heard = RESOURCE_BLOCKS[[0, 1, 0, 1]][:, CELL_OF]
        noise = 10 ** ((network.noise_dbm[CELL_OF] - 30) / 10)[:, None]  # watts in the whole band
        sinr = (still.snr * still.gain)[..., None] * spectrum / (1 + 2 * heard / noise)
        slots = 1e6 * np.log2(1 + sinr).sum(-1)
        number = np.array([2, 2, 1, 3, 3, 3])
        bands = 1e6 / number * np.log2(1 + number[:, None] * sinr).sum(-1)
        assert tdma_seconds_per_bit(draw) == pytest.approx(number / slots, rel=1e-9)
        assert ofdma_seconds_per_bit(draw) == pytest.approx(1 / bands, rel=1e-9)
        rows = [1, 2, 5]
        assert tdma_seconds_per_bit(some) == pytest.approx(1 / slots[:, rows], rel=1e-9)
        one = network.draw(STREAM, 3)
        assert (one.spectrum == draw.spectrum[3]).all()
        assert (one.external_rise == draw.external_rise[3]).all()


def test_equal_interference_in_all_resource_blocks_is_that_of_the_cell():
    watts = np.array([[1e-13, 0.0, 4e-13]])
    even = by_block(np.repeat(watts[..., None] / 4, 4, axis=2)).draws(STREAM, range(3))
    whole = by_block(watts).draws(STREAM, range(3))
    for rate in (tdma_seconds_per_bit, ofdma_seconds_per_bit):
        assert rate(even) == pytest.approx(rate(whole), rel=1e-12)
    one = by_block(watts[..., None]).draws(STREAM, range(3))
    assert (ofdma_seconds_per_bit(one) == ofdma_seconds_per_bit(whole)).all()
    assert by_block(np.repeat(watts[..., None] / 4, 4, axis=2)).external_rise() == pytest.approx(
        by_block(watts).external_rise()
    )


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"watts": np.ones((1, 2, 4))}, "for 3 cells"),
        ({"watts": -RESOURCE_BLOCKS}, "from 0 to 1"),
        ({"fading": DelayProfile(1e-6, subcarriers=3)}, "has 2 subcarriers, and the channels have"),
        ({"interference": Interference(GAIN, ENDS, ALL)}, "which spreads over the band"),
    ],
)
def test_interference_by_resource_block_that_does_not_fit_is_refused(changes, error):
    with pytest.raises(ValueError, match=error):
        by_block(**changes)


def test_a_sum_over_the_air_needs_interference_that_is_flat_over_the_band():
    with pytest.raises(ValueError, match="flat over the band"):
        OverTheAir().seconds(Load(np.ones(6), 1.0), by_block().draws(STREAM, range(2)))


def test_a_budget_takes_the_mean_sinr_of_the_resource_blocks():
    """One loud block of four leaves a quarter less, not the noise of the sum."""
    watts = np.zeros((1, 3, 4))
    watts[..., 0] = 1.0
    network = by_block(watts)
    assert link_budget(network).noise_rise_db == pytest.approx(10 * np.log10(4 / 3))


def test_a_sub_network_checks_the_shape_of_its_watts():
    watts = np.full((1, 3), 1e-13)
    watts.setflags(write=False)
    with pytest.raises(ValueError, match="for 2 cells"):
        Network(
            [0, 1],
            cpu_hz=1e9,
            gain_db=-95.0,
            bandwidth_hz=[9e6, 9e6],
            part=[0, 3],
            interference_watts=watts,
        )


def test_a_budget_has_no_sums_over_the_air_that_are_refused():
    for watts in (RESOURCE_BLOCKS, np.full(6, 1e-13)):
        assert {*link_budget(by_block(watts)).rate_bps} == {"equal slots", "equal bands"}
