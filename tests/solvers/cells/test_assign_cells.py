"""``assign_cells`` against all assignments of small problems, and its certificate."""

import itertools

import numpy as np
import pytest
import torch

from solvers import Status, allocate_bandwidth, assign_cells


def end(cell_of, bits, ready, snr_hz, bandwidth_hz, bands):
    """When the slowest cell ends, from the formula, and from the solver of one cell's bands."""
    ends = [0.0]
    for cell in np.unique(cell_of):
        of = np.flatnonzero(cell_of == cell)
        snr, whole = snr_hz[of, cell], bandwidth_hz[cell]
        if not snr.all():
            return np.inf
        if bands == "equal":
            band = whole / len(of)
            ends.append((ready[of] + bits[of] / (band * np.log2(1 + snr / band))).max())
        else:
            ends.append(allocate_bandwidth(bits[of], ready[of], snr, whole).objective)
    return max(ends)


def problem(seed):
    """Up to 5 clients and 3 cells of any SNR, some of it 0; limits of clients in most."""
    rng = np.random.default_rng(seed)
    clients, cells = rng.integers(1, 6), rng.integers(1, 4)
    snr_hz = 10 ** rng.uniform(5, 9, (clients, cells)) * (rng.random((clients, cells)) < 0.9)
    arrays = rng.uniform(1e5, 1e7, clients), rng.uniform(0, 1, clients), snr_hz
    limits = {}
    if seed % 4:
        limits["capacities"] = rng.integers(1, clients + 1, cells)
    if seed % 3:
        limits["min_clients"] = np.minimum(
            rng.integers(0, 2, cells), limits.get("capacities", clients)
        )
    return (*arrays, rng.uniform(5e5, 5e6, cells)), limits


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(48))
@pytest.mark.parametrize("bands", ["equal", "optimal"])
def test_no_assignment_ends_sooner(bands, seed):
    arrays, limits = problem(seed)
    clients, cells = arrays[2].shape
    most = limits.get("capacities", np.full(cells, clients))
    fewest = limits.get("min_clients", np.zeros(cells))
    best = np.inf
    for choice in itertools.product(range(cells), repeat=clients):
        sizes = np.bincount(choice, minlength=cells)
        if (sizes <= most).all() and (sizes >= fewest).all():
            best = min(best, end(np.array(choice), *arrays, bands))
    solution = assign_cells(*arrays, bands=bands, **limits)
    if best == np.inf:
        assert (solution.status, solution.value) == (Status.INFEASIBLE, None)
        return
    sizes = np.bincount(solution.value, minlength=cells)
    assert (sizes <= most).all()
    assert (sizes >= fewest).all()
    assert end(solution.value, *arrays, bands) == pytest.approx(solution.objective, rel=1e-12)
    assert solution.objective == pytest.approx(best, rel=1e-9)
    assert solution.bound <= best * (1 + 1e-12)
    assert solution.status is Status.OPTIMAL


def test_a_matching_where_the_limits_leave_one_size():
    """Bottleneck matching of 6 clients to 3 cells of two places: all 90 splits."""
    rng = np.random.default_rng(1)
    arrays = np.full(6, 1e6), np.zeros(6), 10 ** rng.uniform(6, 9, (6, 3)), np.full(3, 1e6)
    solution = assign_cells(*arrays, capacities=2)
    assert solution.backend == "matching"
    splits = set(itertools.permutations([0, 0, 1, 1, 2, 2]))
    assert len(splits) == 90
    best = min(end(np.array(split), *arrays, "equal") for split in splits)
    assert solution.objective == solution.bound == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(("bands", "gap"), [("equal", 0.45), ("optimal", 0.01)])
def test_large_problems_have_a_certified_gap(bands, gap):
    """120 clients around 4 stations: better than the strongest cell, and near the bound."""
    rng = np.random.default_rng(2)
    stations, clients = rng.uniform(-500, 500, (4, 2)), rng.uniform(-500, 500, (120, 2))
    metres = np.hypot(*(clients[:, None] - stations).T).T.clip(10)
    snr_hz = 1e15 * metres**-3.5 * 10 ** rng.normal(0, 0.8, metres.shape)
    arrays = np.full(120, 1e6), np.zeros(120), snr_hz, np.full(4, 1e6)
    solution = assign_cells(*arrays, bands=bands)
    assert solution.backend == "linear program and swaps"
    assert 0 < solution.bound < solution.objective
    assert solution.gap < gap
    strongest = end(snr_hz.argmax(1), *arrays, bands)
    assert end(solution.value, *arrays, bands) == pytest.approx(solution.objective, rel=1e-12)
    assert solution.objective < 0.9 * strongest


def test_equal_problems_give_equal_answers_and_tensors_stay_tensors():
    arrays, _ = problem(4)
    first, second = assign_cells(*arrays), assign_cells(*arrays)
    np.testing.assert_array_equal(first.value, second.value)
    tensors = assign_cells(*map(torch.from_numpy, arrays))
    assert isinstance(tensors.value, torch.Tensor)
    assert tensors.value.tolist() == first.value.tolist()
    assert tensors.objective == first.objective


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"snr_hz": [1e7, 1e7]}, r"snr_hz has shape \(2,\): give \[clients, cells\]"),
        ({"bits": 0.0}, "bits is 0.0: give a finite number > 0"),
        ({"bits": [1e5] * 3}, r"bits has shape \(3,\): give one number, or \[clients\], here \(2,"),
        ({"bandwidth_hz": [1e6] * 3}, r"bandwidth_hz has shape \(3,\).*\[cells\], here \(2,\)"),
        ({"capacities": [1, 0.5]}, "capacities contains 0.5: give whole numbers from 0"),
        ({"capacities": [1, 0], "min_clients": 1}, "min_clients is 1 in cell 1, and at most 0"),
        ({"bands": "best"}, 'bands is \'best\': choose "equal" or "optimal"'),
        ({"nodes": -1}, "nodes is -1: give a whole number >= 0, or None"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    good = {"bits": 1e5, "compute_seconds": 0.1, "snr_hz": np.full((2, 2), 1e7)}
    with pytest.raises(ValueError, match=message):
        assign_cells(**(good | {"bandwidth_hz": 1e6} | change))


@pytest.mark.parametrize(
    ("snr_hz", "limits", "message"),
    [
        ([[1e7, 1e7], [0, 0]], {}, "client 1 cannot send: snr_hz is 0 in all cells"),
        ([[1e7, 1e7]] * 3, {"capacities": 1}, "capacities sum to 2, for 3 clients"),
        ([[1e7, 1e7]], {"min_clients": 1}, "min_clients sum to 2, for 1 clients"),
        ([[1e7, 0]] * 2, {"capacities": 1}, "capacities and min_clients do not fit the cells to"),
    ],
)
def test_infeasible_problems_say_why(snr_hz, limits, message):
    solution = assign_cells(1e5, 0.1, snr_hz, 1e6, **limits)
    assert (solution.status, solution.value) == (Status.INFEASIBLE, None)
    assert solution.objective == np.inf
    assert solution.message.startswith(message)
