"""The common end of cells against a grid of ends, single cells, and limits."""

import numpy as np
import pytest

from solvers import allocate_energy
from solvers.energy.common_end import common_end
from solvers.energy.energy_problem import read_problem


def cells(seed, groups=2, number=3, clients=3):
    """Arguments of ``allocate_energy`` for groups of cells, and seconds lost in each cell."""
    random = np.random.default_rng(seed)
    shape = (groups, number, clients)
    each = {
        "bits": random.uniform(1e5, 5e6, shape) * (random.random(shape) < 0.8),
        "cycles": random.uniform(1e8, 2e9, shape),
        "gain_per_noise": 10 ** random.uniform(6, 9, shape),
        "max_power_watts": np.full(shape, 0.1),
        "max_cpu_hz": random.uniform(0.5e9, 2e9, shape),
        "kappa": np.full(shape, 1e-28),
    }
    return each, random.uniform(0, 1, (groups, number))


def solved(each, lost, weight, latest=None):
    return common_end(read_problem(each, 1e7, None, (1, 1)), lost, weight, latest)


def cost(each, lost, weight, end):
    """Seconds plus weighted joules of groups [groups] that end at ``end`` [groups, ends]."""
    rows = {name: value[:, None] for name, value in each.items()}
    found = allocate_energy(
        rows.pop("bits"),
        rows.pop("cycles"),
        rows.pop("gain_per_noise"),
        1e7,
        deadline_seconds=end[..., None] - lost[:, None],
        **rows,
    )
    return end + weight * found.objective.sum(-1)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("weight", [1e-3, 1.0, 100.0, 1e5])
@pytest.mark.parametrize("seed", range(2))
def test_no_other_end_is_better(seed, weight):
    """Infeasible ends cost inf on the grid; the bound holds for all ends."""
    each, lost = cells(seed)
    found = solved(each, lost, weight)
    grid = found.end[:, None] * np.concatenate(([0.5, 0.9], np.linspace(0.98, 1.02, 21), [1.5, 3]))
    np.testing.assert_allclose(
        cost(each, lost, weight, found.end[:, None] * (1 + 1e-12))[:, 0], found.objective, rtol=1e-8
    )
    assert (cost(each, lost, weight, grid) >= found.objective[:, None] * (1 - 1e-9)).all()
    assert (found.bound <= found.objective).all()
    assert (found.bound >= found.objective * (1 - 1e-5)).all()


def test_one_cell_has_the_answer_of_allocate_energy():
    each, _ = cells(3, groups=4, number=1)
    found = solved(each, np.zeros((4, 1)), 2.0)
    args = {name: value[:, 0] for name, value in each.items()}
    alone = allocate_energy(
        *(args.pop(name) for name in ("bits", "cycles", "gain_per_noise")),
        1e7,
        weights=(1.0, 2.0),
        **args,
    )
    np.testing.assert_allclose(found.objective, alone.objective, rtol=1e-9)


def test_limits():
    """Without weight the slowest cell decides; later than the limit no round ends."""
    each, lost = cells(4)
    soonest = solved(each, lost, 0.0)
    assert (cost(each, lost, 1.0, soonest.end[:, None] * (1 + 1e-12)) < np.inf).all()
    assert (cost(each, lost, 1.0, soonest.end[:, None] * (1 - 1e-9)) == np.inf).all()
    free = solved(each, lost, 1e4)
    limited = solved(each, lost, 1e4, np.array([0.8, 2.0]) * free.end)
    np.testing.assert_allclose(limited.end, [0.8 * free.end[0], free.end[1]], rtol=1e-12)
    np.testing.assert_allclose(solved(each, lost, 1e-9).end, soonest.end, rtol=1e-9)


def test_cells_without_work_do_not_count():
    each, lost = cells(5, groups=1)
    more = {name: np.concatenate((value, value), 1) for name, value in each.items()}
    more["bits"][:, 3:] = more["cycles"][:, 3:] = 0
    both = solved(more, np.concatenate((lost, np.full((1, 3), -np.inf)), 1), 3.0)
    assert both.end == solved(each, lost, 3.0).end
    assert both.until[0, 3:].tolist() == [0, 0, 0]
    idle = solved({name: 0 * value for name, value in each.items()}, lost, 3.0)
    assert idle.objective == idle.bound == lost.max()
