"""Two antennas, or two clients: the default beamformer is optimal, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solvers import Status, optimize_beamformer
from solvers.beamforming import BranchAndBound
from solvers.beamforming.anneal import polish
from solvers.beamforming.directions import best_of, random_starts, worst
from solvers.beamforming.two_dimensions import MOST_CLIENTS, exact_points


def rayleigh(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal((*shape, 2)).view(complex)[..., 0]


def polished(h: torch.Tensor, extra: torch.Tensor) -> torch.Tensor:
    """The best objective [problems] of a local method from 30 random starts and ``extra``."""
    starts = torch.cat([random_starts(h, 30, 1), extra.unsqueeze(1)], 1)
    return worst(h, best_of(h, polish(h, starts)).unsqueeze(1)).squeeze(1)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("clients", [2, 3, 7, 12])
def test_no_local_method_finds_a_better_point(clients: int) -> None:
    """Also with equal, nearly equal and unequal channels, and with axes in one plane."""
    h = torch.from_numpy(rayleigh(clients, 20, clients, 2))
    twice = torch.cat([h[:, :1] * 1j, h], 1)
    near = torch.cat([h[:, :1] * (1 + 1e-9j), h], 1)
    unequal = h * 10 ** torch.linspace(-1.5, 1.5, clients, dtype=torch.float64)[:, None]
    for channels in (h, twice, near, unequal, h.real.to(h.dtype)):
        a = exact_points(channels)
        np.testing.assert_allclose(torch.linalg.vector_norm(a, dim=-1), 1, rtol=1e-14)
        reached = worst(channels, a.unsqueeze(1)).squeeze(1)
        assert (reached >= polished(channels, a) * (1 - 1e-12)).all()


@given(st.integers(2, 9), st.integers(0, 10**6))
def test_no_beamformer_exceeds_the_bound(clients: int, seed: int) -> None:
    h = rayleigh(seed, clients, 2)
    solution = optimize_beamformer(h)
    a = rayleigh(seed + 1, 2000, 2)
    a /= np.linalg.norm(a, axis=-1, keepdims=True)
    assert (np.abs(a.conj() @ h.T) ** 2).min(-1).max() <= solution.bound * (1 + 1e-12)
    assert solution.status is Status.OPTIMAL
    assert solution.gap < 1e-14


def test_branch_and_bound_agrees() -> None:
    h = rayleigh(3, 3, 7, 2)
    exact = optimize_beamformer(h, certificate=BranchAndBound())
    np.testing.assert_allclose(optimize_beamformer(h).objective, exact.bound, rtol=1.01e-4)


def test_two_clients_with_many_antennas_are_solved_exactly() -> None:
    """The optimum of two clients is the semidefinite bound (Huang and Palomar, 2010)."""
    solution = optimize_beamformer(rayleigh(4, 10, 2, 8))
    assert (solution.status == Status.OPTIMAL).all()
    bound = optimize_beamformer(rayleigh(4, 10, 2, 8), backend="mirror_prox", certificate="sdr")
    np.testing.assert_allclose(solution.objective, bound.bound, rtol=1e-4)


@pytest.mark.parametrize("apart", [0.0, 1e-15, 1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("ratio", [1.0, 10.0])
def test_two_orthogonal_clients_share_evenly(apart: float, ratio: float) -> None:
    """The optimum of norms 1 and r is r^2 / (1 + r^2), also if rounding hides the best direction.

    Channels that are ``apart`` from orthogonal differ from it by a relative error of that order.
    """
    h = np.linalg.qr(rayleigh(8, 200, 2, 2))[0]
    h[:, 1] += apart * h[:, 0]
    h[::2, 0] *= ratio
    h[1::2, 1] *= ratio
    solution = optimize_beamformer(h)
    optimum = ratio**2 / (1 + ratio**2)
    np.testing.assert_allclose(solution.objective, optimum, rtol=1e-9 + 3 * ratio * apart)
    assert (solution.status == Status.OPTIMAL).all()


def test_orthogonal_clients_among_others() -> None:
    """A pair with opposite axes leaves a whole circle, on which the other clients decide."""
    pair = np.linalg.qr(rayleigh(9, 50, 2, 2))[0]
    h = torch.from_numpy(np.concatenate([pair, 3 * pair, 2 * rayleigh(10, 50, 2, 2)], 1))
    a = exact_points(h)
    reached = worst(h, a.unsqueeze(1)).squeeze(1)
    assert (reached >= polished(h, a) * (1 - 1e-12)).all()
    parallel = optimize_beamformer(np.array([[1, 0], [0, 1], [2, 0]], dtype=complex))
    assert parallel.objective == pytest.approx(0.5, rel=1e-12)


def test_batches_may_mix_exact_and_annealed_problems() -> None:
    """Clients that differ by more than 1e8, and too many clients, are annealed."""
    h = rayleigh(5, 3, 6, 2)
    h[1, 0] *= 1e6
    solution = optimize_beamformer(h)
    assert solution.status.tolist() == [Status.OPTIMAL, Status.FEASIBLE, Status.OPTIMAL]
    for number in (0, 2):
        alone = optimize_beamformer(h[number])
        np.testing.assert_allclose(alone.value, solution.value[number], rtol=1e-12)
    many = optimize_beamformer(rayleigh(6, MOST_CLIENTS + 1, 2))
    assert many.status is Status.FEASIBLE
