"""Bands of many cells by Newton's method against the solver with a certificate."""

from unittest.mock import patch

import numpy as np
import pytest

from channels import ChannelDraw, EqualSlots, Load, Network, Stream
from solvers import OptimalBands, allocate_bandwidth
from solvers.access.many_bands import ManyBands
from solvers.bands.least_time import BandCells
from solvers.bands.newton import newton_bands

CELL_OF = np.repeat(np.arange(60), np.arange(60) % 4 + 1)


def cells(seed, spread):
    random = np.random.default_rng(seed)
    size = 40, int(random.integers(1, 12))
    bits = 10 ** random.uniform(4, 4 + spread, size) * (random.random(size) < 0.8)
    bits[:, 0] += 1
    ready = 10 ** random.uniform(-3, spread - 3, size)
    snr_hz = 10 ** random.uniform(5, 5 + 2 * spread, size)
    ready[bits == 0] = 0
    return BandCells(bits, ready, snr_hz, 10 ** random.uniform(5, 7, 40))


@pytest.mark.parametrize("spread", [0.5, 1.5, 3.0])
def test_solved_cells_have_the_certified_ends_and_bands(spread):
    """Sizes, times and SNRs over up to 6 decades, and clients without bits."""
    for seed in range(5):
        problem = cells(seed, spread)
        bands, end, solved = newton_bands(problem)
        known = allocate_bandwidth(*problem)
        assert solved.mean() > 0.9
        np.testing.assert_allclose(end[solved], problem.ends(bands)[solved], rtol=1e-12)
        np.testing.assert_allclose(end[solved], known.objective[solved], rtol=1e-12)
        np.testing.assert_allclose(bands.sum(1)[solved], problem.bandwidth_hz[solved], rtol=1e-12)


def network(random, **more):
    count = len(CELL_OF)
    return Network.from_snr(
        CELL_OF,
        cpu_hz=random.uniform(0.5e9, 2e9, count),
        snr_db=random.uniform(-40, 30, count),  # also cells that Newton's method leaves
        bandwidth_hz=random.uniform(1e6, 9e6, 60),
        **more,
    )


@pytest.mark.parametrize("seed", range(3))
def test_costs_are_those_of_optimal_bands(seed):
    """Unequal cells, clients without bits, noise rises, and cells that are solved by the other."""
    random = np.random.default_rng(seed)
    count = len(CELL_OF)
    load = Load(random.uniform(0, 5e8, count), random.choice([0.0, 1e3, 1e5], count))
    draw = network(random).draw(Stream(seed))
    draw = ChannelDraw(draw.network, draw.h, random.uniform(1, 3, 60) if seed else None)
    many, each = ManyBands().serve(load, draw), OptimalBands().serve(load, draw)
    for name in ("seconds", "joules", "airtime_seconds"):
        np.testing.assert_allclose(
            getattr(many, name), getattr(each, name), rtol=1e-11, err_msg=name
        )
    np.testing.assert_allclose(many.decision.bands_hz, each.decision.bands_hz, rtol=1e-9)


def test_cells_that_newton_leaves_are_solved_by_the_other():
    random = np.random.default_rng(0)
    load = Load(np.full(len(CELL_OF), 1e8), np.full(len(CELL_OF), 1e4))
    draw = network(random).draw(Stream(1))
    few = np.full((60, 4), np.nan), np.full(60, np.nan), np.zeros(60, dtype=bool)
    with patch("solvers.access.many_bands.newton_bands", return_value=few):
        many = ManyBands().serve(load, draw)
    each = OptimalBands().serve(load, draw)
    np.testing.assert_allclose(many.seconds, each.seconds, rtol=1e-13)
    np.testing.assert_allclose(many.joules, each.joules, rtol=1e-13)


def test_no_client_is_reached_without_a_channel():
    load = Load(np.full(2, 1e6), np.full(2, 1e3))
    two = Network.from_snr([0, 0], cpu_hz=1e9, snr_db=[0, 0])
    draw = ChannelDraw(two, np.array([[1.0], [0.0]], dtype=np.complex64))
    many = ManyBands().serve(load, draw)
    assert many.arrived.tolist() == [True, False]
    assert many.seconds[0] < EqualSlots().serve(load, draw).seconds[0]
