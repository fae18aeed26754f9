"""Branch and bound over sizes against enumeration, HiGHS and costs of arbitrary sizes."""

import numpy as np
import pytest

import solvers
from solvers import Status
from solvers.training_rounds import grid_search, sizes_program, sizes_tree
from solvers.training_rounds.grid_search import GridSearch, all_sizes
from solvers.training_rounds.sizes_program import SizesCase
from solvers.training_rounds.sizes_tree import SizesTree
from tests.solvers.training_rounds.networks import drawn, rounds, solved
from tests.solvers.training_rounds.test_grid_bounds import read

POINT = 0, 1, 0
OTHERS = {
    "none": {},
    "extra": {"extra_seconds": [[0.3, 0.0, 0.1]]},
    "per unit": {"extra_seconds_per_unit": [0.02, 0.05, 0.0], "start_seconds": 0.1},
    "offsets": {"lower": 1, "extra_seconds": 0.2},
}


def searched(seed, cells, total, others, joule):
    """The search of a grid, and a point's constraints."""
    network = drawn(seed, cells=cells, clients=3, spread=0.5)
    problem = read(network, total, others, (1.0, joule), largest=None)
    search = GridSearch(problem)
    m, h, e = POINT
    case = SizesCase(
        h, search.fixed, problem.low[m], search.high[POINT], problem.quota, search.lost[e],
        search.growth[e], search.latest[POINT], problem.weights,
    )  # fmt: skip
    return search, case


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("joule", [30.0, 1000.0])
def test_the_best_of_all_sizes(others, joule):
    """Enumeration at true costs, which tangents 0.7 % apart undercut by some 1e-5."""
    search, case = searched(41, 3, 24, OTHERS[others], joule)
    every = all_sizes(case.low, case.high, case.quota, 10_000)
    costs = search._true_costs(POINT, every)[0]
    near = every[costs.argsort()[1]]
    ends = search.phases(POINT, near[None]).ends[0]
    answer = SizesTree(search.units, case, near, ends).search(1e-6)
    assert answer.bound <= costs.min() * (1 + 1e-9)
    assert answer.bound >= costs.min() * (1 - 1e-4)
    best = search._true_costs(POINT, answer.steps[None])[0][0]
    assert best <= costs.min() * (1 + 2e-5)
    assert costs.max() > 1.05 * costs.min()


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_in_any_box(seed):
    """No sizes of a box cost less than its bound, from any fractions."""
    random = np.random.default_rng(seed)
    search, case = searched(50 + seed, 5, 60, {}, 10 ** random.uniform(0, 3))
    tree = SizesTree(search.units, case, search.near_steps, search.near_ends)
    sizes = random.multinomial(60, random.dirichlet(np.full(5, 3.0), 8)).astype(float)
    costs = search._true_costs(POINT, sizes)[0]
    low = np.maximum(sizes - random.integers(0, 6, sizes.shape), 0.0)
    high = sizes + random.integers(0, 6, sizes.shape)
    for number in (1, 12):
        with np.errstate(all="ignore"):
            boxes = tree._relaxed(low, high, random.uniform(0, 30, sizes.shape), number)
        assert (boxes.bound <= costs * (1 + 1e-9)).all()


def instance(seed, cells, joule, **others):
    """Arguments of ``optimize_rounds`` with a grid of 4 x 3 points."""
    network = drawn(seed, draws=2, cells=cells, clients=2, spread=0.5)
    grid = {"local_steps": [1, 2, 4, 8], "edge_rounds": [1, 2, 4]}
    number = rounds(*grid.values())
    return number, network | grid | {"total": 9 * cells, "weights": (1.0, joule)} | others


@pytest.mark.thorough(every=4)
@pytest.mark.parametrize("joule", [0.3, 10.0, 300.0])
@pytest.mark.parametrize("extra", [0.1, np.linspace(0, 0.4, 10)])
def test_highs_agrees(joule, extra, monkeypatch):
    """Ten cells: the integer program of HiGHS has the same optimum, within both gaps."""
    number, arguments = instance(61, 10, joule, extra_seconds=extra)
    monkeypatch.setattr(grid_search, "MANY", 10)
    program = solved(number, **arguments)
    monkeypatch.setattr(grid_search, "MANY", 8)
    tree = solved(number, **arguments)
    for one, other in ((program, tree), (tree, program)):
        assert one.status is Status.OPTIMAL
        assert one.bound <= other.objective * (1 + 1e-12)
    assert tree.objective == pytest.approx(program.objective, rel=2e-5)


@pytest.mark.parametrize(("ended", "message"), [(False, "time limit"), (True, "left a gap")])
def test_the_integer_program_follows_where_the_tree_leaves_a_gap(ended, message, monkeypatch):
    """A program that HiGHS stops, or that repeats its bound, ends the search of its point."""
    number, arguments = instance(61, 10, 3.0)
    best = solved(number, **arguments)
    monkeypatch.setattr(sizes_tree, "_NODES", 1)
    closed = solved(number, **arguments)
    assert closed.status is Status.OPTIMAL
    assert closed.objective == pytest.approx(best.objective, rel=2e-5)
    calls, solve = [], sizes_program.solve_program

    def stopped(model, case, lines, scales, whole):
        answer = solve(model, case, lines, scales, whole)
        calls.append(whole)
        return answer._replace(bound=0.0, ended=ended) if whole else answer

    monkeypatch.setattr(grid_search, "solve_program", stopped)
    limited = solved(number, **arguments)
    assert 1 <= calls.count(True) <= 4
    assert (limited.status, limited.gap > 1e-4) == (Status.FEASIBLE, True)
    assert message in limited.message
    assert limited.bound <= best.objective
    assert limited.objective <= best.objective * (1 + 1e-3)


def test_programs_do_not_alternate_between_two_designs():
    """Tangents near one design leave out those that exclude another one."""
    random = np.random.default_rng(3)
    cells, clients = int(random.integers(9, 12)), int(random.integers(1, 3))
    gain = 10 ** random.uniform(7, 10, (int(random.integers(1, 3)), cells, clients))
    joule, total = 10 ** random.uniform(-3, 3), int(random.integers(cells, 4 * cells))
    problem = solvers.TrainingProblem(1e7, 1e6, gain, 0.1, 1e9, 1e-28, np.full(cells, 1e6), total)
    numbers = [[90.0, 60.0], [50.0, 40.0]]
    design = solvers.optimize_rounds(
        problem, numbers, local_steps=[1, 5], edge_rounds=[1, 2], weights=(1.0, joule)
    )
    assert design.status is Status.OPTIMAL
