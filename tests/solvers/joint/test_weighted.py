"""Weighted sums of seconds and joules over sizes, bands, powers, frequencies and the time."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
import torch

from solvers import (
    Status,
    allocate_bandwidth,
    allocate_energy,
    optimize_masks_and_bands,
    optimize_masks_and_energy,
)
from solvers.joint.fronts import Fronts
from solvers.joint.sized_energy_cells import SizedEnergyCells

LIMITS = {"max_power_watts": 0.1, "max_cpu_hz": 2e9, "kappa": 1e-28}


def drawn(random, cells, clients, units=10):
    return (
        10 ** random.uniform(3, 5, (cells, clients)) * 10 / units,
        10 ** random.uniform(7, 8, (cells, clients)) * 10 / units,
        10 ** random.uniform(7, 10, (cells, clients)),
        10 ** random.uniform(5, 6, cells),
    )


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("seed", "second"), [(0, 0.003), (1, 0.1), (5, 0.6), (7, 5.0)])
def test_no_other_sizes_cost_less(seed, second):
    """All sizes of three cells, each at its own best time, by ever finer grids of ln T."""
    random = np.random.default_rng(seed)
    bits, cycles, gain, band = drawn(random, 3, 4)
    fixed = np.array([[0.0], [0.5], [2.0]]) * (seed % 2)
    found = optimize_masks_and_energy(
        bits, cycles, gain, band, 9, weights=(second, 1.0), cap=6,
        offset_bits=fixed * bits, offset_cycles=fixed * cycles, **LIMITS,
    )  # fmt: skip

    every = [sizes for sizes in itertools.product(range(7), repeat=3) if sum(sizes) == 9]
    size = np.array(every)[..., None] + fixed  # [sizes, cells, clients or 1]
    bits, cycles = size * bits, size * cycles
    soonest = allocate_bandwidth(bits, cycles / 2e9, 0.1 * gain, band).objective.max(-1)
    low, high = np.log(soonest) + 1e-12, np.log(soonest) + 6
    for _ in range(9):
        grid = low + np.linspace(0, 1, 9)[:, None] * (high - low)  # [places, sizes]
        energy = allocate_energy(
            bits, cycles, gain, band, deadline_seconds=np.exp(grid)[..., None], **LIMITS
        )
        cost = second * np.exp(grid) + energy.objective.sum(-1)
        at, each = cost.argmin(0), np.arange(len(every))
        low, high = grid[np.maximum(at - 1, 0), each], grid[np.minimum(at + 1, 8), each]
    best = cost.min()
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert found.bound <= best
    assert found.status is Status.OPTIMAL


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("cells", "units", "second"), [(1, 200, 1.0), (4, 200, 1e-5), (8, 1000, 0.1), (4, 10**6, 10.0)]
)
def test_many_cells_and_units_are_closed(cells, units, second):
    random = np.random.default_rng(cells)
    problem = drawn(random, cells, 5, units)
    found = optimize_masks_and_energy(*problem, units, weights=(second, 1.0), **LIMITS)
    assert found.gap <= 1e-6
    assert found.value.sizes.sum() == units
    later = optimize_masks_and_energy(
        *problem, units, deadline_seconds=found.value.seconds, **LIMITS
    )
    assert second * found.value.seconds + later.objective == pytest.approx(
        found.objective, rel=1e-6
    )


def test_tangents_are_below_the_energy_of_any_size_and_time():
    random = np.random.default_rng(3)
    bits, cycles, gain, band = drawn(random, 4, 3)
    shape = np.ones(bits.shape)
    limits = 0.1 * shape, 2e9 * shape, 1e-28 * shape
    fronts = Fronts(SizedEnergyCells(bits, cycles, 0 * bits, 0 * bits, gain, *limits, band))
    tau = fronts.soonest[1] * np.geomspace(1, 30, 7)[:, None]
    tangents = fronts.tangents(tau)
    for time in np.geomspace(0.2, 100, 9):
        size = time / (fronts.soonest[1] * random.uniform(1, 30, 4))
        energy = allocate_energy(
            size[:, None] * bits,
            size[:, None] * cycles,
            gain,
            band,
            deadline_seconds=time,
            **LIMITS,
        ).objective
        lower = tangents.per_unit * size + tangents.per_second * time
        assert (lower <= energy * (1 + 1e-9)).all()
    tight = tangents.per_unit + tangents.per_second * tau
    assert tight == pytest.approx(
        np.stack([allocate_energy(bits, cycles, gain, band, deadline_seconds=t, **LIMITS).objective
                  for t in tau]),
        rel=1e-7,
    )  # fmt: skip


def test_without_a_price_of_energy_the_time_is_the_least():
    random = np.random.default_rng(2)
    bits, cycles, gain, band = drawn(random, 3, 4)
    fast = optimize_masks_and_bands(bits, cycles / 2e9, 0.1 * gain, band, 30)
    prices = np.array([0.0, 1e-9, 1.0])
    found = optimize_masks_and_energy(bits, cycles, gain, band, 30, weights=(2.0, prices), **LIMITS)
    assert found.value.seconds[:2] == pytest.approx(fast.objective, rel=1e-9)
    assert found.value.seconds[2] > fast.objective
    assert found.objective[0] == pytest.approx(2 * fast.objective, rel=1e-12)
    assert (found.value.sizes.sum(-1) == 30).all()
    alone = optimize_masks_and_energy(
        torch.tensor(bits), cycles, gain, band, 30, weights=(2.0, 1.0), **LIMITS
    )
    assert isinstance(alone.value.seconds, torch.Tensor)
    assert float(alone.value.seconds) == pytest.approx(found.value.seconds[2], rel=1e-12)


@pytest.mark.parametrize("seed", [1, 9])
def test_the_least_time_has_the_least_energy(seed):
    """Cell 0 is slow and has two units at least: within its time, the others have a choice."""
    bits, cycles, gain, band = drawn(np.random.default_rng(seed), 3, 4)
    cycles[0] *= 10
    bounds = {"cap": 6, "lower": [2, 0, 0]}
    fast = optimize_masks_and_bands(bits, cycles / 2e9, 0.1 * gain, band, 9, **bounds)
    found = optimize_masks_and_energy(
        bits, cycles, gain, band, 9, weights=(1, 0), **bounds, **LIMITS
    ).value
    sizes = np.array([(2, one, 7 - one) for one in range(1, 7)])[..., None]
    energy = allocate_energy(
        sizes * bits, sizes * cycles, gain, band,
        deadline_seconds=fast.objective * (1 + 1e-12), **LIMITS,
    ).objective  # fmt: skip
    spent = energy[:, 1:].sum(-1)
    assert (found.sizes == sizes[spent.argmin(), :, 0]).all()
    computed = LIMITS["kappa"] * cycles * found.sizes[:, None] * found.cpu_hz**2
    joules = (found.power_watts * found.upload_seconds + computed).sum(-1)
    assert joules[1:].sum() == pytest.approx(spent.min(), rel=1e-6)
    assert (found.sizes != fast.value.sizes).any()  # which also end in time
    assert found.seconds == pytest.approx(fast.objective, rel=1e-12)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("bits", "cycles", "gain", "power", "speed", "band", "kappa"),
    [
        ([18, -39], [4, 43], [-24, -47], [-39, -39], [-24, 47], 38, 43),
        ([-31, -49], [-52, 48], [-35, -3], [-7, 41], [-39, 55], 57, 13),
        ([-14, -16], [45, -57], [2, -18], [-17, 54], [-49, 26], 52, 16),
    ],
)
def test_the_least_time_of_numbers_near_the_limits(bits, cycles, gain, power, speed, band, kappa):
    """Powers of ten; warnings are errors. Each cell has one client, so times have a closed form."""
    bits, cycles, gain, power, speed = 10.0 ** np.array([bits, cycles, gain, power, speed])
    band, kappa = 10.0 ** np.array([band, kappa])
    rate = band * np.log1p(gain * power / band) / np.log(2)
    ends = [(np.array([one, 3 - one]) * (cycles / speed + bits / rate)).max() for one in range(4)]
    found = optimize_masks_and_energy(
        bits[:, None], cycles[:, None], gain[:, None], band, 3, weights=(1, 0), kappa=kappa,
        max_power_watts=power[:, None], max_cpu_hz=speed[:, None],
    )  # fmt: skip
    assert found.objective == pytest.approx(min(ends), rel=1e-12)
    assert found.value.sizes[0] == np.argmin(ends)


def test_cells_without_work_or_channel():
    random = np.random.default_rng(0)
    bits, cycles, gain, band = drawn(random, 3, 4)
    gain[1, 0] = 0

    def solve(**change):
        good = {"bits_per_unit": bits, "cycles_per_unit": cycles, "weights": (1.0, 1.0)}
        arguments = good | {"gain_per_noise": gain, "bandwidth_hz": band, "total": 9} | LIMITS
        return optimize_masks_and_energy(**(arguments | change))

    named = "cell 1: client 0 cannot send: gain_per_noise is 0"
    few = f"total is 9, but only 8 units are in cells that can send them; {named}"
    for goal in ({}, {"weights": (1.0, 0.0)}, {"weights": None, "deadline_seconds": 1e3}):
        found = solve(**goal)
        assert (found.value.sizes[1], found.message) == (0, named)
        assert solve(lower=1, **goal).message == named
        assert solve(cap=4, **goal).message in (
            few,
            few.replace("are in cells that can send them", "end by 1000 s"),
        )
    nothing = solve(total=0)
    assert (nothing.objective, nothing.value.seconds) == (0, 0)
    rest = solve(bits_per_unit=bits * [[0], [1], [1]], cycles_per_unit=cycles * [[0], [1], [1]])
    assert (rest.value.sizes == [9, 0, 0]).all()
    assert rest.objective == 0
    work = [[0], [0], [1]]
    many = solve(bits_per_unit=bits * work, cycles_per_unit=cycles * work, total=10**6)
    assert (many.objective, many.value.sizes.sum(), many.value.sizes[2]) == (0, 10**6, 0)


def test_offsets_of_other_proportions_need_a_deadline():
    random = np.random.default_rng(0)
    problem = drawn(random, 2, 3)
    with pytest.raises(ValueError, match="offset_bits and offset_cycles of cell 0 are not those"):
        optimize_masks_and_energy(*problem, 9, weights=(1, 1), offset_bits=1e3, **LIMITS)
    fast = optimize_masks_and_energy(*problem, 9, weights=(1, 0), offset_bits=1e3, **LIMITS)
    assert fast.status is Status.OPTIMAL


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("total", range(1, 13))
def test_at_the_least_time_all_units_are_allocated(total):
    """Rounding errors decide there which sizes end in time."""
    found = optimize_masks_and_energy(
        [[1e4], [3e4]], 1e7, 1e9, 1e6, total, weights=(1, 0), **LIMITS
    )
    assert found.value.sizes.sum() == total
    assert found.gap < 1e-12


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", [5, 302, 303, 304])
def test_wide_ranges_are_closed(seed):
    """With 5, the energy has no bound but 0 at the least time itself."""
    random = np.random.default_rng(10**6 + seed)
    cells, clients = random.integers(1, 9, 2)
    bits, cycles, gain = (
        10 ** random.uniform(*ends, (cells, clients)) for ends in ((2, 6), (6, 9), (6, 11))
    )
    speed = 10 ** random.uniform(8.5, 9.5, (cells, clients))
    weights = 10 ** random.uniform(-4, 4), 1.0
    limits = LIMITS | {"max_cpu_hz": speed}
    found = optimize_masks_and_energy(bits, cycles, gain, 1e6, 40, weights=weights, **limits)
    assert found.gap <= 1e-6
    assert found.value.sizes.sum() == 40
    sent = found.value.bandwidth_hz * np.log2(
        1 + found.value.power_watts * gain / np.maximum(found.value.bandwidth_hz, 1e-300)
    )
    assert (
        sent * found.value.upload_seconds >= found.value.sizes[:, None] * bits * (1 - 1e-9)
    ).all()
    assert (found.value.bandwidth_hz.sum(-1) <= 1e6 * (1 + 1e-9)).all()


def test_a_cell_that_is_far_too_slow_trains_nothing():
    random = np.random.default_rng(6)
    bits, cycles, gain, band = drawn(random, 4, 3)
    cycles[2] *= 1e20
    found = optimize_masks_and_energy(bits, cycles, gain, band, 12, weights=(1, 1), **LIMITS)
    assert found.gap <= 1e-6
    assert found.value.sizes[2] == 0
    rest = [0, 1, 3]
    others = optimize_masks_and_energy(
        bits[rest], cycles[rest], gain[rest], band[rest], 12, weights=(1, 1), **LIMITS
    )
    assert found.objective == pytest.approx(others.objective, rel=1e-7)


def test_one_cell_has_one_choice():
    found = optimize_masks_and_energy(
        [[10.0]], 0.0, 1e9, 1e6, 10**4, deadline_seconds=9.0, offset_cycles=1e9, **LIMITS
    )
    assert found.status is Status.OPTIMAL


def silent_clients(seed):
    """Random problems in which a client may have neither power nor bits."""
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 6, 2))
    bits, cycles, gain = (10 ** random.uniform(*ends, shape) for ends in ((2, 6), (6, 9), (6, 11)))
    power = np.where(random.random(shape) < 0.2, 0, 10 ** random.uniform(-4, 0, shape))
    bits = np.where((power == 0) & (random.random(shape) < 0.9), 0, bits)
    limits = LIMITS | {
        "max_power_watts": power,
        "max_cpu_hz": 10 ** random.uniform(8.5, 9.5, shape),
    }
    weights = 10 ** random.uniform(-4, 4), 1.0
    band, total = 10 ** random.uniform(5, 7, shape[0]), int(10 ** random.uniform(0.5, 3))
    return optimize_masks_and_energy(bits, cycles, gain, band, total, weights=weights, **limits)


@pytest.mark.thorough
def test_programs_that_highs_fails_on_at_first_are_closed():
    found = silent_clients(66)
    assert found.gap <= 1e-6
    assert found.message == ""


def test_a_failure_of_highs_is_in_the_message(monkeypatch):
    failed = SimpleNamespace(x=None, status=4, message="model_status is Unknown")
    monkeypatch.setattr("scipy.optimize.milp", lambda *_, **__: failed)
    found = silent_clients(66)
    assert found.status is Status.FEASIBLE
    assert "HiGHS ended without a solution (model_status is Unknown)" in found.message


def test_a_program_that_highs_stops_is_the_last(monkeypatch):
    """Its sizes and what is bounded remain, and the message names the limit."""
    problem = drawn(np.random.default_rng(8), 6, 3, 40)
    usual = optimize_masks_and_energy(*problem, 40, weights=(0.1, 1.0), **LIMITS)
    solve, calls = scipy.optimize.milp, []

    def stopped(*arguments, integrality, **options):
        answer = solve(*arguments, integrality=integrality, **options)
        if integrality.any():
            calls.append(1)
            answer.status, answer.mip_dual_bound = 1, 0.0
        return answer

    monkeypatch.setattr("scipy.optimize.milp", stopped)
    limited = optimize_masks_and_energy(*problem, 40, weights=(0.1, 1.0), **LIMITS)
    assert calls == [1]
    assert "time limit" in limited.message
    assert limited.status is Status.FEASIBLE
    assert limited.bound <= usual.objective <= limited.objective <= usual.objective * 1.01
