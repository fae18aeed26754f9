"""Deadlines that are a least time: sizes that end by them, and plans that keep them."""

import itertools

import numpy as np
import pytest

from solvers import Status, allocate_bandwidth, allocate_energy, optimize_masks_and_energy
from tests.solvers.energy.cells import drawn, least_seconds

EPS = np.finfo(np.float64).eps


def small_problem(random):
    """One client per cell without computation, where times and energies have closed forms."""
    cells, total = random.integers(1, 4), int(random.integers(1, 6))
    bits, gain = 10 ** random.uniform(0, 1, cells), 10 ** random.uniform(1, 3, cells)
    return bits, gain, 10 ** random.uniform(-1, 0, cells), total


def all_sizes(cells, total):
    """All sizes [designs, cells] with the sum ``total``."""
    sizes = np.array(list(itertools.product(range(total + 1), repeat=cells)))
    return sizes[sizes.sum(-1) == total]


def by_brute_force(bits, gain, power, total, deadline):
    """Least energy of all sizes with the sum ``total``, infinite if none ends in time."""
    seconds = bits / np.log2(1 + power * gain)  # of one unit, in a band of 1 Hz
    sizes = all_sizes(len(bits), total)
    sizes = sizes[(sizes * seconds <= deadline * (1 + 6 * EPS)).all(-1)]
    return (deadline / gain * (2 ** (sizes * bits / deadline) - 1)).sum(-1).min(initial=np.inf)


def solved(bits, gain, power, total, **goal):
    limits = {"max_power_watts": power[:, None], "max_cpu_hz": 1.0, "kappa": 0.0}
    return optimize_masks_and_energy(
        bits[:, None], 0.0, gain[:, None], 1.0, total, **limits, **goal
    )


def test_sizes_that_end_at_the_deadline_itself_are_counted():
    """``optimize_masks_and_energy`` and ``allocate_energy`` agree on them, with brute force.

    The deadline is the least time of one size of one cell, or differs from it by rounding.
    """
    random = np.random.default_rng(0)
    binding = 0
    for _ in range(100):
        bits, gain, power, total = small_problem(random)
        cell, size = random.integers(len(bits)), random.integers(1, total + 1)
        least = size * (bits / np.log2(1 + power * gain))[cell]
        deadline = least * (1 + random.integers(-4, 3) * EPS)
        best = by_brute_force(bits, gain, power, total, deadline)
        found = solved(bits, gain, power, total, deadline_seconds=deadline)
        assert found.objective == pytest.approx(best, rel=1e-9)
        alone = allocate_energy(
            size * bits[cell : cell + 1], 0.0, gain[cell], 1.0, deadline_seconds=deadline,
            max_power_watts=power[cell], max_cpu_hz=1.0, kappa=0.0,
        )  # fmt: skip
        assert alone.objective == pytest.approx(power[cell] * least, rel=1e-9)
        binding += np.isfinite(best) and found.value.sizes[cell] == size
    assert binding > 20


def test_of_the_designs_of_least_time_the_least_energy_is_found():
    """Weights (1, 0): time first, then energy."""
    random = np.random.default_rng(1)
    tied = 0
    for _ in range(50):
        bits, gain, power, total = small_problem(random)
        if random.random() < 0.7:  # cells of equal times and other energies
            gain, bits = 100 / power, np.full(len(bits), bits[0])
        seconds = bits / np.log2(1 + power * gain)
        ends = np.sort((all_sizes(len(bits), total) * seconds).max(-1))
        tied += np.count_nonzero(ends <= ends[0] * (1 + 6 * EPS)) > 1
        found = solved(bits, gain, power, total, weights=(1.0, 0.0))
        assert found.objective == pytest.approx(ends[0], rel=1e-13)
        spent = (found.value.power_watts * found.value.upload_seconds).sum()
        assert spent == pytest.approx(by_brute_force(bits, gain, power, total, ends[0]), rel=1e-9)
    assert tied > 12


def test_two_cells_of_equal_time():
    """0.2 W and 0.1 W at the same SNR of 10: the larger submodel belongs to the second cell."""
    found = solved(np.ones(2), np.array([50.0, 100.0]), np.array([0.2, 0.1]), 3, weights=(1, 0))
    assert found.value.sizes.tolist() == [1, 2]
    end = 2 / np.log2(11)
    joules = end / 50 * (2 ** (1 / end) - 1) + 0.1 * end  # one bit in time, two at full power
    assert (found.value.power_watts * found.value.upload_seconds).sum() == pytest.approx(joules)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", ["slack", "mixed", "active"])
def test_plans_keep_their_deadline_to_rounding(regime):
    """From the least time on, with computations that last from hardly any to nearly all of it."""
    random = np.random.default_rng(3)
    for clients in (2, 8, 30):
        problem = drawn(random, 60, clients, regime=regime)
        problem["cycles"] *= 10 ** random.uniform(-4, 2, (60, clients))
        later = np.where(random.random(60) < 0.8, 10 ** random.uniform(-13, 0, 60), 0)
        end = least_seconds(problem) * (1 + later)
        found = allocate_energy(**problem, deadline_seconds=end)
        assert (found.status != Status.INFEASIBLE).all()
        band, window, power, speed, seconds = found.value
        rate = band * np.log1p(power * problem["gain_per_noise"] / band) / np.log(2)
        sent = np.maximum(problem["bits"] / rate, window)
        assert ((problem["cycles"] / speed + sent).max(-1) <= end * (1 + 2e-14)).all()
        assert (band.sum(-1) <= problem["bandwidth_hz"] * (1 + 1e-14)).all()
        assert (seconds <= end * (1 + 8 * EPS)).all()


def test_a_deadline_short_by_rounding_is_moved_to_the_least_time():
    problem = drawn(np.random.default_rng(4), 50, 6)
    least = allocate_bandwidth(
        problem["bits"],
        problem["cycles"] / problem["max_cpu_hz"],
        problem["gain_per_noise"] * problem["max_power_watts"],
        problem["bandwidth_hz"],
    )
    met = allocate_energy(**problem, deadline_seconds=least.bound * (1 - 4 * EPS))
    assert (met.status != Status.INFEASIBLE).all()
    np.testing.assert_allclose(met.value.seconds, least.objective, rtol=8 * EPS)
    missed = allocate_energy(**problem, deadline_seconds=least.bound * (1 - 40 * EPS))
    assert (missed.status == Status.INFEASIBLE).all()
