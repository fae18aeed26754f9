"""Least-norm points and the semidefinite bound match cvxpy and satisfy their guarantees."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

from solvers.beamforming import BeamformingProblems, Sdr
from solvers.beamforming.least_norm import least_norm
from solvers.beamforming.relaxation import relaxation_bound, relaxation_weights


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("constraints", "n"), [(5, 8), (30, 8), (40, 19)])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_least_norm_matches_a_quadratic_program(constraints: int, n: int, spread: float) -> None:
    rng = np.random.default_rng(constraints)
    rows = rng.standard_normal((6, constraints, n))
    rows *= np.sign(rows @ rng.standard_normal(n))[..., None]  # satisfies all constraints
    rows *= 10 ** rng.uniform(-spread, spread, (6, constraints, 1))
    offset = rng.uniform(0, 1, (6, constraints))
    found = least_norm(torch.from_numpy(rows), torch.from_numpy(offset), steps=14)
    for number in range(6):
        x = cp.Variable(n)
        program = cp.Problem(cp.Minimize(cp.sum_squares(x)), [rows[number] @ x >= offset[number]])
        best = program.solve(solver=cp.CLARABEL)
        point = found.point[number].numpy()
        assert found.bound[number].item() <= best * (1 + 1e-6)
        assert found.bound[number].item() == pytest.approx(best, rel=1e-5)
        assert point @ point == pytest.approx(best, rel=1e-5)
        length = np.linalg.norm(rows[number], axis=-1)
        assert ((rows[number] @ point - offset[number]) / length).min() > -1e-5 * np.sqrt(best)


def test_an_infeasible_problem_has_a_large_bound() -> None:
    rows = torch.tensor([[[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    offset = torch.tensor([[1.0, 0.5, 0.1]], dtype=torch.float64)
    assert least_norm(rows, offset, soft=1e-3).bound.item() > 1e5


def test_rows_of_zeros_constrain_nothing() -> None:
    rows = torch.tensor([[[2.0, 0.0], [0.0, 0.0]]], dtype=torch.float64)
    found = least_norm(rows, torch.tensor([[1.0, -1.0]], dtype=torch.float64), soft=1e-3)
    assert found.bound.item() == pytest.approx(0.25, rel=1e-5)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(("clients", "antennas"), [(4, 6), (15, 10), (30, 4)])
def test_the_barrier_method_reaches_the_semidefinite_bound(clients: int, antennas: int) -> None:
    generator = torch.Generator().manual_seed(clients)
    h = torch.randn(4, clients, antennas, dtype=torch.complex128, generator=generator)
    problems = BeamformingProblems(h, (4,), h, None, torch.ones(4), torch.full((4,), -1))
    reference = Sdr(samples=1).solve(problems).bound
    assert reference is not None
    np.testing.assert_allclose(relaxation_bound(h), reference, rtol=1e-4)


def test_relaxation_weights_are_feasible_and_reach_the_bound() -> None:
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(5, 12, 4, dtype=torch.complex128, generator=generator)
    q = relaxation_weights(h)
    covariance = (h * q.unsqueeze(-1)).mT @ h.conj()
    assert (q > 0).all()
    assert torch.linalg.eigvalsh(covariance).max() <= 1
    np.testing.assert_allclose(1 / q.sum(-1), relaxation_bound(h), rtol=1e-5)
