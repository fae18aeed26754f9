"""Networks as problems of the solvers: signal to noise in Hz, and one row per cell."""

import numpy as np
import pytest

import solvers
from channels import Load, Network, Stream, rate_bps, snr_linear
from solvers import allocate_bandwidth, allocate_energy

BITS = 1e6


@pytest.fixture
def draw():
    """Two blocks of three unequal cells with bands of their own."""
    network = Network.from_snr(
        [0, 0, 0, 1, 2, 2],
        cpu_hz=[1e9, 2e9, 3e9, 1e9, 2e9, 3e9],
        snr_db=[0, 10, 20, 5, 15, 25],
        bandwidth_hz=[1e6, 2e6, 3e6],
        transmit_power_w=[0.1, 0.2, 0.1, 0.2, 0.1, 0.2],
    )
    return network.draws(Stream(1), [0, 1])


def test_rates_in_the_whole_band(draw):
    """B log2(1 + snr_hz / B) is the rate of channels."""
    band = draw.network.bandwidth_hz[draw.network.cell_of]
    rates = rate_bps(band, snr_linear(draw.network.snr_db), draw.gain)
    np.testing.assert_allclose(band * np.log2(1 + draw.snr_hz / band), rates, rtol=1e-13)
    power = draw.network.transmit_power_w
    np.testing.assert_allclose(power * draw.gain_per_noise, draw.snr_hz, rtol=1e-15)


def test_cells_of_unequal_sizes_are_one_batch(draw):
    """A cell's row gives what the cell alone gives; places without a client get no band."""
    network = draw.network
    cycles = np.full(network.clients, 1e8)
    bits, seconds, snr_hz = map(
        network.by_cell, (np.full(network.clients, BITS), cycles / network.cpu_hz, draw.snr_hz)
    )
    bands = allocate_bandwidth(bits, seconds, snr_hz, network.bandwidth_hz)
    energy = allocate_energy(
        bits,
        network.by_cell(cycles),
        network.by_cell(draw.gain_per_noise),
        network.bandwidth_hz,
        max_power_watts=network.by_cell(network.transmit_power_w),
        max_cpu_hz=network.by_cell(network.cpu_hz),
        kappa=network.by_cell(network.switched_capacitance),
        deadline_seconds=1.5 * bands.objective,
    )
    assert bands.objective.shape == energy.objective.shape == (2, 3)
    for block, cell in np.ndindex(2, 3):
        mine = network.cell_of == cell
        alone = allocate_bandwidth(
            BITS, (cycles / network.cpu_hz)[mine], draw.snr_hz[block, mine], (cell + 1) * 1e6
        )
        assert bands.objective[block, cell] == pytest.approx(alone.objective, rel=1e-12)
        np.testing.assert_allclose(bands.value[block, cell, : mine.sum()], alone.value, rtol=1e-9)
        assert (bands.value[block, cell, mine.sum() :] == 0).all()
        joules = allocate_energy(
            BITS,
            cycles[mine],
            draw.gain_per_noise[block, mine],
            (cell + 1) * 1e6,
            max_power_watts=network.transmit_power_w[mine],
            max_cpu_hz=network.cpu_hz[mine],
            kappa=network.switched_capacitance[mine],
            deadline_seconds=1.5 * alone.objective,
        )
        assert energy.objective[block, cell] == pytest.approx(joules.objective, rel=1e-9)


GRID = {"local_steps": [1, 4], "edge_rounds": [1, 2]}
SHARE = {"cap": 5, "granularity": 1}


def arrays_of(load, draw, *names):
    """What the arguments of these names are for a load and a draw, by cell."""
    network = draw.network
    values = {
        "bits": load.bits,
        "cycles": load.cycles,
        "seconds": load.start_seconds + load.cycles / network.cpu_hz,
        "snr": draw.snr_hz,
        "gain": draw.gain_per_noise,
        "power": network.transmit_power_w,
        "cpu": network.cpu_hz,
        "kappa": network.switched_capacitance,
    }
    each = (
        np.broadcast_to(values[n], np.broadcast_shapes(np.shape(values[n]), (6,))) for n in names
    )
    return [network.by_cell(a) for a in each]


def limits(load, draw):
    names = "max_power_watts", "max_cpu_hz", "kappa"
    return dict(zip(names, arrays_of(load, draw, "power", "cpu", "kappa"), strict=True))


def fields(value):
    return [np.asarray(each) for each in (value if isinstance(value, tuple) else [value])]


@pytest.mark.parametrize("name", ["allocate_bandwidth", "allocate_bands_in_time"])
def test_a_load_stands_for_the_uploads_of_each_cell(name, draw):
    """The same solution as with arrays; a start delays a client."""
    load = Load(1e8, [3e4, 0, 1e4, 2e4, 3e4, 1e4], start_seconds=[0, 0, 0.3, 0.1, 0, 0])
    given = arrays_of(load, draw, "bits", "seconds", "snr")
    wanted = getattr(solvers, name)(*given, draw.network.bandwidth_hz)
    found = getattr(solvers, name)(load, draw)
    assert (found.objective == wanted.objective).all()
    for mine, theirs in zip(fields(found.value), fields(wanted.value), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_load_stands_for_the_energies_of_each_cell(draw):
    load, band = Load(1e8, [3e4, 0, 1e4, 2e4, 3e4, 1e4]), draw.network.bandwidth_hz
    given = arrays_of(load, draw, "bits", "cycles", "gain")
    for goal in ({"deadline_seconds": 2.0}, {"weights": (1.0, 5.0)}):
        wanted = allocate_energy(*given, band, **limits(load, draw), **goal)
        found = allocate_energy(load, draw, **goal)
        assert (found.objective == wanted.objective).all()
        for mine, theirs in zip(found.value, wanted.value, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_load_is_that_of_a_unit_where_sizes_are_chosen(draw):
    """Sizes with bands, and with energies; ``total`` follows the draw, or is named."""
    unit, band = Load(1e7, 1e3), draw.network.bandwidth_hz
    uploads = arrays_of(unit, draw, "bits", "seconds", "snr")
    wanted = solvers.optimize_masks_and_bands(*uploads, band, 10, **SHARE)
    for found in (
        solvers.optimize_masks_and_bands(unit, draw, 10, **SHARE),
        solvers.optimize_masks_and_bands(unit, draw, total=10, **SHARE),
    ):
        assert (found.objective == wanted.objective).all()
        assert (found.value.sizes == wanted.value.sizes).all()
    work, goal = arrays_of(unit, draw, "bits", "cycles", "gain"), {"deadline_seconds": 1.0, **SHARE}
    wanted = solvers.optimize_masks_and_energy(*work, band, 10, **limits(unit, draw), **goal)
    found = solvers.optimize_masks_and_energy(unit, draw, 10, **goal)
    assert (found.objective == wanted.objective).all()
    assert (found.value.sizes == wanted.value.sizes).all()


def test_a_load_gives_the_problem_of_a_training(draw):
    unit, band = Load(1e6, 1e3), draw.network.bandwidth_hz
    rounds = [[90.0, 60.0], [50.0, 40.0]]
    work = (*arrays_of(unit, draw, "bits", "cycles", "gain", "power", "cpu", "kappa"), band)
    arrays = solvers.TrainingProblem(*work, 10)
    of_load = solvers.TrainingProblem.of_load(unit, draw, 10)
    wanted = solvers.optimize_rounds(arrays, rounds, **GRID)
    assert solvers.optimize_rounds(of_load, rounds, **GRID).objective == wanted.objective
    costs = solvers.evaluate_rounds(wanted.value, arrays)
    again = solvers.evaluate_rounds(wanted.value, of_load)
    assert again.cost == costs.cost
    np.testing.assert_array_equal(again.joules, costs.joules)


@pytest.mark.parametrize(
    ("load", "more", "error", "message"),
    [
        (Load(1e8, 1e3, start_seconds=1.0), {}, ValueError, "start_seconds of the load"),
        (Load(1e8, 1e3, after_seconds=1.0), {}, ValueError, "after_seconds of the load"),
        (Load(1e8, 1e3, deadline_seconds=1.0), {}, ValueError, "deadline_seconds of the load"),
        (Load(1e8, [1e3] * 5), {}, ValueError, "the draw has 6 clients"),
        (Load(1e8, 1e3), {"kappa": 1e-28}, TypeError, "kappa is given twice"),
    ],
)
def test_loads_that_do_not_fit(load, more, error, message, draw):
    with pytest.raises(error, match=message):
        allocate_energy(load, draw, deadline_seconds=1.0, **more)


def test_a_load_needs_its_draw(draw):
    with pytest.raises(TypeError, match="allocate_bandwidth got a Load: give the ChannelDraw"):
        allocate_bandwidth(Load(1e8, 1e3), [1.0] * 6)
    with pytest.raises(TypeError, match="got 3 arguments, which are too many"):
        allocate_bandwidth(Load(1e8, 1e3), draw, 1e6)
