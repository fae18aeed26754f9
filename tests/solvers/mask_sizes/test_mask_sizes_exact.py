"""Exact mask sizes match brute force and greedy allocation, and satisfy optimality conditions."""

from __future__ import annotations

import heapq
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solvers import Status, optimize_mask_sizes
from solvers.mask_sizes.cell_steps import CellSteps


class Problem(NamedTuple):
    seconds: list[float]
    total: int
    offset: list[float]
    cap: list[float]
    lower: list[float]
    granularity: int

    def solve(self, **more):
        return optimize_mask_sizes(
            self.seconds,
            self.total,
            offset_seconds=self.offset,
            cap=self.cap,
            lower=self.lower,
            granularity=self.granularity,
            **more,
        )

    def latency(self, cell, size):
        return self.seconds[cell] * float(size) + self.offset[cell]

    def slowest(self, sizes):
        return max(self.latency(cell, int(size)) for cell, size in enumerate(sizes))

    def choices(self, cell):
        every = range(0, self.total + 1, self.granularity)
        return [size for size in every if self.lower[cell] <= size <= self.cap[cell]]

    def splits(self):
        choices = product(*(self.choices(cell) for cell in range(len(self.seconds))))
        return (sizes for sizes in choices if sum(sizes) == self.total)


LATENCIES = {
    "ties": st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]),
    "tenths": st.sampled_from([0.1, 0.2, 0.3, 0.7]),  # products that need rounding
    "nanoseconds": st.floats(1e-10, 1e-8),
    "ratios": st.floats(-3, 3).map(lambda power: 10**power),
}


@st.composite
def problems(draw, cells=(1, 4), total=(0, 13)):
    number, units = draw(st.integers(*cells)), draw(st.integers(*total))

    def each(values):
        return draw(st.lists(values, min_size=number, max_size=number))

    family = draw(st.sampled_from(sorted(LATENCIES)))
    seconds = each(LATENCIES[family])
    scale = draw(st.sampled_from([0.0, 1.0, 10.0, 1e6, 1e17])) * min(seconds)
    offset = [scale * share for share in each(st.sampled_from([0.0, 0.5, 1.0, 2.5]))]
    step = draw(st.sampled_from([1, 1, 2, 3]))
    # Mostly feasible: caps of about two even shares, lower bounds of about half a share.
    share = units / number
    cap = [(share + 1e-9) * x for x in each(st.sampled_from([0.3, 1.0, 1.5, 2.2, 10.0, np.inf]))]
    lower = [share * x for x in each(st.sampled_from([0.0, 0.0, 0.0, 0.4, 0.9, 1.2]))]
    return Problem(seconds, units, offset, cap, lower, step)


def check_feasible(problem, sizes):
    assert sizes.dtype == np.int64
    assert sizes.sum() == problem.total
    assert (sizes % problem.granularity == 0).all()
    assert (sizes >= np.array(problem.lower)).all()
    assert (sizes <= np.array(problem.cap)).all()


@given(problems())
def test_no_split_is_faster(problem):
    """On small problems, the objective exactly equals that of brute force over all splits."""
    solution = problem.solve()
    best = min(map(problem.slowest, problem.splits()), default=None)
    if best is None:
        assert solution.status is Status.INFEASIBLE
        assert solution.value is None
        assert solution.objective == np.inf
        assert solution.message
    else:
        assert solution.status is Status.OPTIMAL
        check_feasible(problem, solution.value)
        assert isinstance(solution.objective, float)
        assert solution.objective == problem.slowest(solution.value) == best
        assert solution.bound == best
        assert solution.gap == 0


def greedy(problem):
    """Allocate one step at a time to the cell with the smallest next latency, which is optimal."""
    step = problem.granularity
    sizes = [-(-int(np.ceil(low)) // step) * step for low in problem.lower]

    def push(cell):
        if sizes[cell] + step <= problem.cap[cell]:
            heapq.heappush(heap, (problem.latency(cell, sizes[cell] + step), cell))

    heap = []
    for cell in range(len(sizes)):
        push(cell)
    for _ in range((problem.total - sum(sizes)) // step):
        cell = heapq.heappop(heap)[1]
        sizes[cell] += step
        push(cell)
    return sizes


@given(problems(cells=(1, 40), total=(0, 3000)))
def test_larger_problems_match_greedy(problem):
    solution = problem.solve()
    if solution.status is Status.INFEASIBLE:
        with pytest.raises((IndexError, AssertionError)):
            check_feasible(problem, np.array(greedy(problem)))
    else:
        check_feasible(problem, solution.value)
        assert solution.objective == problem.slowest(greedy(problem))


def count_ended(seconds, offset, cap, level):
    """Maximum p of each cell in [0, cap] with c p + b <= level, by integer bisection."""
    low, high = np.zeros_like(cap), cap
    while (low < high).any():
        middle = (low + high + 1) // 2
        ends = seconds * middle + offset <= level
        low, high = np.where(ends, middle, low), np.where(ends, high, middle - 1)
    return low


def check_certificate(seconds, offset, cap, total, solution):
    """Assert that no latency below the objective allows all units, or that it is an offset."""
    sizes, objective = solution.value, solution.objective
    assert sizes.sum() == total
    assert (sizes >= 0).all()
    assert (sizes <= cap).all()
    assert (seconds * sizes + offset).max() == objective
    earlier = np.nextafter(objective, 0)
    fewer = count_ended(seconds, offset, cap, earlier).sum()
    assert fewer < total or objective == offset.max()


@pytest.mark.parametrize("kind", ["plain", "capped", "offsets", "ratios", "equal", "huge offsets"])
@pytest.mark.parametrize("cells", [3, 700])
def test_optimality_for_large_totals(kind, cells):
    """Solutions satisfy optimality conditions where totals are too large for brute force."""
    rng = np.random.default_rng(cells)
    for _ in range(10):
        power = {"ratios": 3, "equal": 0}.get(kind, 0.5)
        seconds = 10 ** rng.uniform(-power, power, cells) * 1e-6
        total = int(rng.integers(1, 10**6)) * cells
        offset, cap = np.zeros(cells), np.full(cells, total)
        if kind in ("offsets", "ratios"):
            offset = rng.uniform(0, 1, cells) * rng.choice([1e-6, 1, 100])
        if kind == "huge offsets":
            offset = rng.choice([1.0, 1.0 + 1e-9], cells) * rng.choice([1e6, 1e12])
        if kind in ("capped", "ratios"):
            cap = rng.integers(0, 3 * total // cells, cells)
            cap[0] = total
        solution = optimize_mask_sizes(seconds, total, offset_seconds=offset, cap=cap)
        check_certificate(seconds, offset, cap, total, solution)


@pytest.mark.thorough
def test_optimality_for_a_million_cells():
    rng = np.random.default_rng(0)
    seconds = rng.uniform(0.1, 10, 10**6) * 1e-6
    total = 75 * 10**6
    for cap in (np.full(10**6, total), rng.integers(50, 150, 10**6)):
        solution = optimize_mask_sizes(seconds, total, cap=cap)
        check_certificate(seconds, np.zeros(10**6), cap, total, solution)


@given(
    st.sampled_from([0.0, 0.3, 1e3, 1e9, 1e15]), st.sampled_from([1, 3]), st.integers(0, 2**32 - 1)
)
def test_counts_are_right_despite_rounding(offset, step, seed):
    """``CellSteps.ended`` is right within one float64 of a latency, where divisions round."""
    rng = np.random.default_rng(seed)
    seconds, offset = rng.uniform(0.1, 1, (2, 50)), offset * rng.uniform(1, 2, (2, 50))
    low, high = rng.integers(0, 10, (2, 50)), rng.integers(10, 10**7, (2, 50))
    cells = CellSteps(seconds, offset, low.astype(float), high.astype(float), step)
    for _ in range(10):
        pick = rng.integers(50)
        exact = cells.latency(rng.uniform(low, high).round())[:, pick : pick + 1]
        for level in (exact, np.nextafter(exact, 0), np.nextafter(exact, np.inf)):
            ended = cells.ended(level)
            assert ((low <= ended) & (ended <= high)).all()
            assert ((cells.latency(ended) <= level) | (ended == low)).all()
            assert ((cells.latency(ended + 1) > level) | (ended == high)).all()


def test_steps_of_equal_latency_are_not_listed():
    """2^40 steps with the same rounded latency are counted, not listed one by one."""
    for total in (2**40, 2**40 - 1):
        solution = optimize_mask_sizes([1e-40, 3e-40, 1.0], total, offset_seconds=[1.0, 1.0, 0.0])
        assert solution.value.tolist() == [total, 0, 0]
        assert solution.objective == 1


def test_one_cell_may_get_several_leftover_units():
    """Rounding down and adding one unit to each of the best cells is not always optimal."""
    rng = np.random.default_rng(5)
    worse = 0
    for _ in range(200):
        seconds = np.append(10 ** rng.uniform(0, 0.3, 5), 10 ** rng.uniform(-3, -1))
        total = int(rng.integers(20, 200))
        floored = np.floor(total / (1 / seconds).sum() / seconds)
        left = int(total - floored.sum())
        naive = floored.copy()
        naive[np.argsort(seconds * (floored + 1))[:left]] += 1
        assert naive.sum() == total
        exact = optimize_mask_sizes(seconds, total)
        free = Problem(list(seconds), total, [0.0] * 6, [np.inf] * 6, [0.0] * 6, 1)
        assert exact.objective == free.slowest(greedy(free))
        assert exact.objective <= (seconds * naive).max()
        worse += exact.objective < (seconds * naive).max()
    assert worse >= 20


@given(st.lists(problems(cells=(3, 3), total=(12, 12)), min_size=1, max_size=6))
def test_batch_equals_single(items):
    """In a batch, each problem has the same sizes as alone, although optima are not unique."""
    items = [item._replace(granularity=items[0].granularity) for item in items]
    seconds, offset, cap, lower = (
        np.array([getattr(item, name) for item in items])[None]
        for name in ("seconds", "offset", "cap", "lower")
    )
    batch = optimize_mask_sizes(
        seconds,
        12,
        offset_seconds=offset,
        cap=cap,
        lower=lower,
        granularity=items[0].granularity,
    )
    assert batch.value.shape == (1, len(items), 3)
    assert batch.objective.shape == batch.status.shape == batch.gap.shape == (1, len(items))
    assert (batch.bound == batch.objective).all()
    for index, item in enumerate(items):
        alone = item.solve()
        assert batch.status[0, index] is alone.status
        assert batch.objective[0, index] == alone.objective
        value = [-1, -1, -1] if alone.value is None else alone.value
        assert batch.value[0, index].tolist() == list(value)
    infeasible = sum(status is Status.INFEASIBLE for status in batch.status.flat)
    assert batch.message.startswith(f"{infeasible} of {len(items)}" if infeasible else "")
    assert bool(batch.message) == bool(infeasible)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_input_gives_torch_output(dtype):
    seconds = torch.rand(5, 4, dtype=dtype, requires_grad=True) + 0.1
    cap = torch.full((4,), 40)
    solution = optimize_mask_sizes(seconds, 100, cap=cap)
    same = optimize_mask_sizes(seconds.detach().double().numpy(), 100, cap=40)
    assert isinstance(solution.value, torch.Tensor)
    assert solution.value.dtype == torch.int64
    assert solution.objective.dtype == solution.bound.dtype == torch.float64
    assert not solution.objective.requires_grad
    assert np.array_equal(solution.value.numpy(), same.value)
    assert np.array_equal(solution.objective.numpy(), same.objective)
    alone = optimize_mask_sizes(seconds[0], 100)
    assert isinstance(alone.value, torch.Tensor)
    assert isinstance(alone.objective, float)
    assert optimize_mask_sizes(seconds[0], 100, cap=3).value is None


def test_an_empty_batch_gives_an_empty_solution():
    solution = optimize_mask_sizes(np.ones((0, 4)), 10)
    assert solution.value.shape == (0, 4)
    assert solution.objective.shape == solution.status.shape == (0,)


def test_inputs_are_not_modified():
    arrays = [np.array([1.0, 2.0, 3.0]), np.array([0.5, 0, 0]), np.array([5.0, 9, 9]), np.ones(3)]
    copies = [array.copy() for array in arrays]
    seconds, offset, cap, lower = arrays
    optimize_mask_sizes(seconds, 12, offset_seconds=offset, cap=cap, lower=lower)
    assert all(map(np.array_equal, arrays, copies))
