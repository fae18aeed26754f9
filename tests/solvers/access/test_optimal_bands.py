"""``OptimalBands`` against the solver called by hand, equal bands, and rates written out."""

from itertools import combinations

import numpy as np
import pytest

from channels import ChannelDraw, EqualBands, Interference, Load, Network, Stream
from solvers import EnergyWithinDeadline, OptimalBands, allocate_bandwidth

CELLS = np.array([0, 0, 0, 1, 2, 2])


def network(random, **more):
    return Network.from_snr(
        CELLS,
        cpu_hz=random.uniform(0.5e9, 2e9, 6),
        snr_db=random.uniform(-10, 20, 6),
        bandwidth_hz=[1e6, 2e6, 5e5],
        transmit_power_w=random.uniform(0.05, 0.2, 6),
        **more,
    )


def example(seed=0, **more):
    random = np.random.default_rng(seed)
    load = Load(random.uniform(0, 5e8, 6), random.uniform(1e3, 1e5, 6), vectors=2, **more)
    return load, network(random).draw(Stream(seed))


def realised(bits, bands, snr_hz):
    """Seconds of uploads within the bands at full power."""
    sends = bits > 0
    seconds = np.zeros(bits.shape)
    rate = bands[sends] * np.log2(1 + snr_hz[sends] / bands[sends])
    seconds[sends] = bits[sends] / rate
    return seconds


@pytest.mark.parametrize("seed", range(5))
def test_each_cell_has_the_bands_of_the_solver(seed):
    load, draw = example(seed, start_seconds=np.arange(6) / 10)
    network = draw.network
    service = OptimalBands().serve(load, draw)
    ready = np.arange(6) / 10 + load.cycles / network.cpu_hz
    for cell in range(3):
        mine = cell == CELLS
        by_hand = allocate_bandwidth(
            load.bits[mine], ready[mine], draw.snr_hz[mine], network.bandwidth_hz[cell]
        )
        np.testing.assert_allclose(service.decision.bands_hz[mine], by_hand.value, rtol=1e-12)
        assert service.seconds[mine].max() == pytest.approx(by_hand.objective, rel=1e-13)
    upload = realised(load.bits, service.decision.bands_hz, draw.snr_hz)
    np.testing.assert_allclose(service.seconds, ready + upload, rtol=1e-13)
    training = network.switched_capacitance * network.cpu_hz**2 * load.cycles
    sending = network.transmit_power_w * upload
    np.testing.assert_allclose(service.joules, training + sending, rtol=1e-13)
    assert service.arrived.all()


@pytest.mark.parametrize("seed", range(5))
def test_no_cell_is_slower_than_with_equal_bands(seed):
    load, draw = example(seed)
    ends = [
        draw.network.over_cells(np.maximum, access.serve(load, draw).seconds)
        for access in (OptimalBands(), EqualBands())
    ]
    assert (ends[0] <= ends[1] * (1 + 1e-12)).all()
    assert ends[0][0] < 0.999 * ends[1][0]


def test_leading_axes_of_load_and_draw_broadcast():
    random = np.random.default_rng(1)
    draws = network(random).draws(Stream(1), range(3))
    share = np.array([0.0, 0.3, 1.0])[:, None, None]
    load = Load(share * 1e8, share * random.uniform(1e3, 1e5, 6))
    service = OptimalBands().serve(load, draws)
    assert service.seconds.shape == service.joules.shape == service.arrived.shape == (3, 3, 6)
    for i, j in np.ndindex(3, 3):
        one = OptimalBands().serve(
            Load(load.cycles[i, 0], load.elements[i, 0]), draws.network.draw(Stream(1), j)
        )
        np.testing.assert_allclose(service.seconds[i, j], one.seconds, rtol=1e-13)
        np.testing.assert_allclose(service.joules[i, j], one.joules, rtol=1e-13)
    assert (service.decision.bands_hz[0] == 0).all()


def test_clients_without_bits_get_no_band_and_delay_nobody():
    load, draw = example()
    elements, cycles = load.elements.copy(), load.cycles.copy()
    elements[1], cycles[1] = 0, 1e12
    service = OptimalBands().serve(Load(cycles, elements), draw)
    others = OptimalBands().serve(Load(cycles[[0, 2]], elements[[0, 2]]), draw.of([0, 2]))
    assert service.decision.bands_hz[1] == 0
    assert service.seconds[1] == 1e12 / draw.network.cpu_hz[1]
    np.testing.assert_allclose(service.seconds[[0, 2]], others.seconds, rtol=1e-13)


def test_empty_cells():
    load, draw = example()
    part = draw.of([0, 4])
    service = OptimalBands().serve(Load(load.cycles[[0, 4]], load.elements[[0, 4]]), part)
    np.testing.assert_allclose(service.decision.bands_hz, [1e6, 5e5], rtol=1e-13)
    assert OptimalBands().serve(Load(), draw.of([])).seconds.shape == (0,)


def test_a_client_without_a_channel_never_arrives():
    load, draw = example()
    h = draw.h.copy()
    h[0] = 0
    service = OptimalBands().serve(load, ChannelDraw(draw.network, h))
    assert service.arrived.tolist() == [False] + [True] * 5
    assert service.seconds[0] == np.inf
    assert service.joules[0] == load.compute_joules(draw.network)[0]
    assert service.decision.bands_hz[0] == 0
    assert service.decision.bands_hz[:3].sum() == pytest.approx(1e6)
    assert np.isfinite(service.seconds[1:]).all()


def test_interference_is_that_of_equal_bands():
    """Equal clients have equal bands, and then the rates of ``EqualBands``."""
    gain = np.full((6, 3), 1e-9)
    cells = Interference(gain, [3, 4, 6], np.zeros(3, int))
    loud = Network(CELLS, cpu_hz=1e9, gain_db=-90, interference=cells)
    h = np.ones((6, 1))
    draw = ChannelDraw(loud, h, loud.draw(Stream(1)).noise_rise)
    load = Load(elements=1e4)
    optimal, equal = (each.serve(load, draw).seconds for each in (OptimalBands(), EqualBands()))
    quiet = OptimalBands().serve(load, ChannelDraw(loud, h)).seconds
    assert optimal == pytest.approx(equal, rel=1e-9)
    assert (optimal > 2 * quiet).all()


def test_least_energy_has_the_interference_of_equal_bands():
    """At the earliest deadline clients have full power and the optimal bands."""
    gain = np.full((6, 3), 1e-9)
    cells = Interference(gain, [3, 4, 6], np.zeros(3, int))
    loud = Network(CELLS, cpu_hz=1e9, gain_db=-90, interference=cells)
    draw = ChannelDraw(loud, np.ones((6, 1)), loud.draw(Stream(1)).noise_rise)
    load = Load(elements=[1e4] * 3 + [3e4] + [1.5e4] * 2)
    end = EqualBands().serve(load, draw).seconds.max()
    with pytest.raises(ValueError, match="even at full power"):
        EnergyWithinDeadline(0.999 * end).serve(load, draw)
    assert EnergyWithinDeadline(1.001 * end).serve(load, draw).arrived.all()


def least_end(load, draw, some):
    """When the last of some clients of a cell ends in the best bands, by ``allocate_bandwidth``."""
    part = draw.of(draw.network.numbers[[*some]]).in_bands()
    cell = part.network.cell_of[0]
    bits, ready = load.bits[[*some]], load.ready_seconds(draw.network)[[*some]]
    bands = part.network.bandwidth_hz[cell]
    return allocate_bandwidth(bits, ready, part.snr_hz, bands).objective


@pytest.mark.parametrize(
    "access", [OptimalBands(), EnergyWithinDeadline(1e6)], ids=["bands", "energy"]
)
@pytest.mark.parametrize("rise", [None, [3.0, 9.0, 5.0, 2.0]], ids=["alone", "interference"])
@pytest.mark.parametrize("seed", [0, 10])
@pytest.mark.parametrize(
    "counts", [(2, 0, 2, 2), (3, 1, 0, 1), (2, 2, 1, 3), (0, 0, 0, 0), (9, 2, 2, 4)]
)
def test_no_other_clients_of_a_cell_end_sooner(access, rise, counts, seed):
    """Brute force, in cells of different sizes; clients 1, 5, 9 have no channel, 4 no bits.

    With seeds 0 and 10, the interference of ``counts`` clients in bands of their own chooses others
    than that of one client, and than that of all clients of the cells.
    """
    cells = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3])
    random = np.random.default_rng(seed)
    whole = Network.from_snr(
        cells,
        cpu_hz=random.uniform(0.5e9, 2e9, 12),
        snr_db=random.uniform(-10, 30, 12),
        bandwidth_hz=[1e6, 2e6, 5e5, 1e6],
    )
    h = random.normal(size=(12, 1)) * ~np.isin(np.arange(12), [1, 5, 9])[:, None]
    draw = ChannelDraw(whole, h, rise)
    bits = 10 ** random.uniform(4, 6, 12) * (np.arange(12) != 4)
    load = Load(random.uniform(0, 5e8, 12), bits / 32)
    found = access.soonest(load, draw, np.array(counts))
    assert not found[[1, 5, 9]].any()
    for cell, count in enumerate(counts):
        able = [i for i in np.flatnonzero(cells == cell) if i not in (1, 5, 9)]
        chosen = [i for i in able if found[i]]
        assert len(chosen) == min(count, len(able))
        if chosen:
            best = min(least_end(load, draw, some) for some in combinations(able, len(chosen)))
            assert least_end(load, draw, chosen) == pytest.approx(best, rel=1e-9)
