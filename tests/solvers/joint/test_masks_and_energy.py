"""``optimize_masks_and_energy`` against all integer sizes and a dynamic program."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from solvers import Status, allocate_energy, optimize_masks_and_bands, optimize_masks_and_energy
from solvers.joint.deadline import cheapest
from solvers.joint.sized_energy_cells import SizedEnergyCells

LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 2e9, "kappa": 1e-28}


def drawn(random, cells, clients):
    return (
        10 ** random.uniform(3, 5, (cells, clients)),
        10 ** random.uniform(7, 8, (cells, clients)),
        10 ** random.uniform(7, 10, (cells, clients)),
        10 ** random.uniform(5, 6, cells),
    )


def table(bits, cycles, gain, band, most, deadline, more_bits=0.0, more_cycles=0.0):
    """Least energy [sizes, cells] of each cell at each size."""
    size = np.arange(most + 1)[:, None, None]
    return allocate_energy(
        more_bits + size * bits,
        more_cycles + size * cycles,
        gain,
        band,
        deadline_seconds=deadline,
        **LIMITS,
    ).objective


@pytest.mark.parametrize("seed", range(8))
def test_no_other_sizes_spend_less(seed):
    """All sizes of three cells, some of which may not end by the deadline."""
    random = np.random.default_rng(seed)
    problem = drawn(random, 3, 3)
    energy = table(*problem, 6, 3.0, 1e3, 1e6)
    found = optimize_masks_and_energy(
        *problem, 9, deadline_seconds=3.0, offset_bits=1e3, offset_cycles=1e6, cap=6, **LIMITS
    )
    best = min(
        sum(energy[p, j] for j, p in enumerate(sizes))
        for sizes in itertools.product(range(7), repeat=3)
        if sum(sizes) == 9
    )
    assert found.objective == pytest.approx(best, rel=1e-12)
    if found.status is Status.INFEASIBLE:
        assert "units end by 3 s" in found.message
    else:
        assert found.gap < 1e-9
        assert found.value.sizes.sum() == 9


def test_many_units_agree_with_a_dynamic_program():
    """120 units of three cells: the least energy of every number of units in the first cells."""
    random = np.random.default_rng(1)
    bits, cycles, gain, band = drawn(random, 3, 5)
    problem = bits / 10, cycles / 10, gain.clip(1e9), band
    energy = table(*problem, 120, 6.0)
    best = energy[:, 0]
    for column in energy.T[1:]:
        sums = best[:, None] + column
        best = np.array([sums[::-1].diagonal(k).min() for k in range(-120, 1)])
    found = optimize_masks_and_energy(*problem, 120, deadline_seconds=6.0, **LIMITS)
    assert found.objective == pytest.approx(best[120], rel=1e-12)


def two_equal_cells(seed):
    """Cycles that do not depend on the size: energy need not be convex in the size."""
    random = np.random.default_rng(seed)
    fixed = {"offset_bits": 1e4, "offset_cycles": 10 ** random.uniform(8, 10, 2)}
    bits = np.tile(10 ** random.uniform(3, 6, 2), (2, 1))
    problem = bits, 0.0, np.tile(10 ** random.uniform(7, 10, 2), (2, 1)), np.full(2, 1e6)
    limits = {"max_power_watts": 10.0, "max_cpu_hz": 1e10, "kappa": 1e-28}
    return problem, fixed | limits


def test_energy_that_is_not_convex_in_the_size():
    uneven = 0
    for seed in range(40):
        (bits, cycles, gain, band), rest = two_equal_cells(seed)
        found = optimize_masks_and_energy(bits, cycles, gain, band, 8, deadline_seconds=6.0, **rest)
        limits = {name: rest[name] for name in LIMITS}
        size = np.arange(9)[:, None]
        energy = allocate_energy(
            1e4 + size * bits[0],
            rest["offset_cycles"],
            gain[0],
            1e6,
            deadline_seconds=6.0,
            **limits,
        ).objective
        assert found.objective == pytest.approx((energy + energy[::-1]).min(), rel=1e-12)
        uneven += np.isfinite(found.objective) and (found.value.sizes != 4).any()
    assert uneven >= 3


def test_many_sizes_of_such_cells_have_a_bound():
    (bits, *problem), rest = two_equal_cells(3)
    found = optimize_masks_and_energy(bits / 1000, *problem, 12000, deadline_seconds=20.0, **rest)
    assert 0 <= found.gap < 0.01
    few = optimize_masks_and_energy(bits, *problem, 12, deadline_seconds=20.0, **rest)
    assert found.bound <= few.objective * (1 + 1e-12)
    assert found.objective <= few.objective * (1 + 1e-12)


@pytest.mark.parametrize("quota", [50, 70, 95])
def test_the_bound_from_a_grid_is_below_all_sizes(quota, monkeypatch):
    """A grid of 8 steps, against all sizes of three cells; their energy is not convex in them."""
    random, shape = np.random.default_rng(1), (3, 2)
    bits = 10 ** random.uniform(5, 5.5, shape)
    offsets = np.full(shape, 1e4), 10 ** random.uniform(8, 9.5, shape)
    gain = 10 ** random.uniform(9, 10, shape)
    limits = np.full(shape, 10.0), np.full(shape, 1e10), np.full(shape, 1e-28)
    cells = SizedEnergyCells(bits, np.zeros(shape), *offsets, gain, *limits, np.full(3, 1e6))
    energy = cells.solve(np.tile(np.arange(61.0)[:, None], 3), 20.0).objective
    pairs = energy[:, None, 0] + energy[:, 1]
    rest = quota - np.add.outer(np.arange(61), np.arange(61))
    best = (pairs + np.where((rest >= 0) & (rest <= 60), energy[rest.clip(0, 60), 2], np.inf)).min()
    low, high = np.zeros(3), np.full(3, 60.0)
    steps, bound = cheapest(cells, low, high, quota, 20.0)
    assert bound == pytest.approx(best, rel=1e-9)
    assert steps.sum() == quota
    monkeypatch.setattr("solvers.joint.deadline._TABLE", 8)
    bound = cheapest(cells, low, high, quota, 20.0)[1]
    assert 0.6 * best <= bound <= best


def test_the_deadline_of_least_time_leaves_one_design():
    """At the least time for these sizes, the slowest cell has no other choice."""
    random = np.random.default_rng(2)
    bits, cycles, gain, band = drawn(random, 3, 4)
    fast = optimize_masks_and_bands(bits, cycles / 2e9, 0.1 * gain, band, 30)
    late = optimize_masks_and_energy(
        bits, cycles, gain, band, 30, deadline_seconds=0.999 * fast.objective, **LIMITS
    )
    assert late.status is Status.INFEASIBLE
    found = [
        optimize_masks_and_energy(
            bits, cycles, gain, band, 30, deadline_seconds=more * fast.objective, **LIMITS
        ).objective
        for more in (1 + 1e-9, 1.1, 2.0, 8.0)
    ]
    assert found == sorted(found, reverse=True)
    assert np.isfinite(found).all()


def test_a_batch_equals_its_problems():
    random = np.random.default_rng(3)
    bits, cycles, gain, band = drawn(random, 2, 3)
    deadlines = np.array([2.0, 4.0, 1e-3])
    found = optimize_masks_and_energy(
        bits, cycles, gain.clip(1e9), band, 10, deadline_seconds=deadlines, **LIMITS
    )
    assert found.status[2] is Status.INFEASIBLE
    assert (found.value.sizes[2] == -1).all()
    assert found.message.startswith("1 of 3 problems are infeasible; item [2]: total is 10, but")
    for row in range(2):
        one = optimize_masks_and_energy(
            bits, cycles, gain.clip(1e9), band, 10, deadline_seconds=deadlines[row], **LIMITS
        )
        assert one.objective == pytest.approx(found.objective[row], rel=1e-13)
        assert (one.value.sizes == found.value.sizes[row]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gain_per_noise": [1e9]}, r"bits_per_unit has shape \(\), and no other argument has"),
        ({"bandwidth_hz": [1, 2, 3]}, "shapes do not fit"),
        (
            {"kappa": np.ones((2, 1, 1)), "deadline_seconds": np.ones(5)},
            r"deadline_seconds \(5,\)\. Give .*, and deadline_seconds \[\.\.\.\]\.$",
        ),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {
        "bits_per_unit": 1e4,
        "cycles_per_unit": 1e6,
        "gain_per_noise": [[1e9, 1e9], [1e9, 1e9]],
        "bandwidth_hz": 1e6,
        "total": 4,
        "deadline_seconds": 1.0,
    }
    with pytest.raises(ValueError, match=message):
        optimize_masks_and_energy(**(good | LIMITS | change))


@pytest.mark.parametrize("goal", [{"deadline_seconds": 4.0}, {"weights": (1.0, 1.0)}])
def test_a_cell_without_a_plan_leaves_the_problem_unknown(monkeypatch, goal):
    """As where rounding errors defeat ``allocate_energy`` for a cell of a given size."""
    bits, cycles, gain, band = drawn(np.random.default_rng(3), 2, 3)
    solve = SizedEnergyCells.solve

    def failing(*given):
        found = solve(*given)
        lost = np.arange(2) == 1
        return replace(
            found,
            objective=np.where(lost, np.inf, found.objective),
            bound=np.where(lost, np.nan, found.bound),
        )

    monkeypatch.setattr(SizedEnergyCells, "solve", failing)
    with np.errstate(invalid="ignore"):
        found = optimize_masks_and_energy(bits, cycles, gain.clip(1e9), band, 10, **goal, **LIMITS)
    assert (found.status, found.value) == (Status.UNKNOWN, None)


def test_a_cell_that_cannot_end_is_named():
    found = optimize_masks_and_energy(
        1e4,
        1e6,
        [[1e9], [0.0]],
        1e6,
        4,
        deadline_seconds=1.0,
        offset_bits=1.0,
        **LIMITS,
    )
    assert found.message == "cell 1: client 0 cannot send: gain_per_noise is 0"
    late = optimize_masks_and_energy(
        1e4, 1e6, [[1e9], [1e9]], 1e6, 4, deadline_seconds=1e-6, lower=1, **LIMITS
    )
    assert late.message == "cell 0 does not end by 1e-06 s at its least size"


def test_a_deadline_of_exactly_the_least_time():
    """The time that the best sizes and bands need can be met, whatever its last digit."""
    random = np.random.default_rng(7)
    for _ in range(30):
        bits, cycles, gain, band = drawn(random, 3, 4)
        speed, snr = LIMITS["max_cpu_hz"], gain * LIMITS["max_power_watts"]
        least = optimize_masks_and_bands(bits, cycles / speed, snr, band, 40)
        found = optimize_masks_and_energy(
            bits, cycles, gain, band, 40, deadline_seconds=least.objective, **LIMITS
        )
        assert found.status is not Status.INFEASIBLE, found.message
        assert found.value.seconds == pytest.approx(least.objective, rel=1e-14)
        assert found.value.sizes.sum() == 40
        sooner = least.objective * (1 - 1e-9)
        found = optimize_masks_and_energy(
            bits, cycles, gain, band, 40, deadline_seconds=sooner, **LIMITS
        )
        assert found.status is Status.INFEASIBLE


@pytest.mark.parametrize("goal", [{"deadline_seconds": 9.0}, {"weights": (1.0, 1.0)}])
def test_an_empty_batch_gives_an_empty_solution(goal):
    found = optimize_masks_and_energy(np.ones((0, 2, 3)), 1.0, 1.0, 1.0, 4, **goal, **LIMITS)
    assert found.status.shape == found.objective.shape == (0,)
    assert found.value.sizes.shape == (0, 2)
    assert found.value.power_watts.shape == (0, 2, 3)
    assert not found.message
