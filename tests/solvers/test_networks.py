"""Networks as problems of the solvers: signal to noise in Hz, and one row per cell."""

import numpy as np
import pytest

from channels import Network, Stream, rate_bps, snr_linear
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
