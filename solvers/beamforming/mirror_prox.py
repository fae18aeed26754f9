"""Other methods of receive beamforming, to compare with: the paper's, and two by cvxpy."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from solvers.beamforming.anneal import best_of, unit_norm, worst
from solvers.beamforming.relaxation import eigenvalue_bound
from solvers.packages import import_solver, quiet_cvxpy
from solvers.solution import SolverUnavailableError

_OUTER, _INNER = 30, 20
_CHUNK = 16  # problems at once: what they need stays in the cache
_SCA_TURNS, _SCA_GAIN = 30, 1e-4


def mirror_prox(h: Tensor, starts: int | None, seed: int) -> Tensor:
    """Successive convex approximation with Mirror-Prox subproblems (HIST, Section V-D, (33)).

    About a beamformer b, |a^H h_i|^2 >= 2 Re(b^H h_i h_i^H a) - |h_i^H b|^2. The least of these is
    maximised over ||a|| <= 1 as a saddle point with the simplex: extragradient steps, Euclidean in
    a and entropic in the clients' weights, which each approximation takes over from the last. 30
    approximations of 20 steps from 20 starts. (Averages of the steps, as the theory has them, and
    fresh weights gave 0.85 of what this gives.)

    Args:
        h: channels [problems, clients, antennas] complex128.
        starts: None for 20.
        seed: of the starts.
    """
    parts = [_mirror_prox(part, starts, seed) for part in torch.split(h, _CHUNK)]
    return torch.cat(parts)


def _mirror_prox(h: Tensor, starts: int | None, seed: int) -> Tensor:
    clients = h.shape[1]
    a = random_starts(h, 20 if starts is None else starts, seed)
    best, score = a, worst(h, a)
    reach = math.sqrt(0.5 / max(math.log(clients), 0.5))
    p = torch.full_like(a[..., :1].real.expand(-1, -1, clients), 1 / clients)
    for _ in range(_OUTER):
        y = a @ h.mH  # h_i^H b
        offset = y.abs().square()
        slope = 2 * y.unsqueeze(-1) * h.unsqueeze(1)  # Re(slope_i^H a) - offset_i
        largest = torch.linalg.vector_norm(slope, dim=-1).amax(-1, keepdim=True)
        rate_a, rate_p = reach / largest, 1 / (reach * largest)
        for _ in range(_INNER):
            middle_a, middle_p = _extragradient(a, p, a, p, slope, offset, rate_a, rate_p)
            a, p = _extragradient(a, p, middle_a, middle_p, slope, offset, rate_a, rate_p)
        a = unit_norm(a)
        now = worst(h, a)
        best = torch.where((now > score).unsqueeze(-1), a, best)
        score = torch.maximum(now, score)
    return best_of(h, best)


def _extragradient(
    a: Tensor,
    p: Tensor,
    at_a: Tensor,
    at_p: Tensor,
    slope: Tensor,
    offset: Tensor,
    rate_a: Tensor,
    rate_p: Tensor,
) -> tuple[Tensor, Tensor]:
    """A step from (a, p) along the field at (at_a, at_p): up in a, down in p."""
    up = (at_p.unsqueeze(-1) * slope).sum(-2)
    values = (slope.conj() @ at_a.unsqueeze(-1)).squeeze(-1).real - offset
    a = a + rate_a * up
    length: Tensor = torch.linalg.vector_norm(a, dim=-1, keepdim=True)
    inside = a / length.clamp_min(1)
    return inside, torch.softmax(p.clamp_min(1e-300).log() - rate_p * values, -1)


def random_starts(h: Tensor, starts: int, seed: int) -> Tensor:
    """Beamformers [problems, starts, antennas], uniform on the sphere, the same for each problem.

    Args:
        h: channels [problems, clients, antennas].
        starts: how many.
        seed: of the draw.
    """
    generator = torch.Generator().manual_seed(seed)
    first = torch.randn(starts, h.shape[-1], dtype=torch.complex128, generator=generator)
    first = unit_norm(first).to(h.device)
    return first.expand(len(h), -1, -1).clone()


def sca(h: Tensor, starts: int | None, seed: int) -> Tensor:
    """The same approximations, solved by cvxpy to optimality, from 3 starts.

    Args:
        h: channels [problems, clients, antennas] complex128.
        starts: None for 3.
        seed: of the starts.
    """
    cp = import_solver("cvxpy", "anneal")
    first = random_starts(h, 3 if starts is None else starts, seed)
    clients, antennas = h.shape[-2:]
    variable, least = cp.Variable(2 * antennas), cp.Variable()
    slope, offset = cp.Parameter((clients, 2 * antennas)), cp.Parameter(clients)
    program = cp.Problem(
        cp.Maximize(least), [slope @ variable - offset >= least, cp.norm(variable) <= 1]
    )
    points = first.cpu().clone()
    for problem, own in enumerate(h.cpu()):
        for number, start in enumerate(first[problem].cpu()):
            a, score = start, 0.0
            for _ in range(_SCA_TURNS):
                y = own.conj() @ a
                tangent = 2 * y[:, None] * own
                slope.value = torch.cat([tangent.real, tangent.imag], -1).numpy()
                offset.value = y.abs().square().numpy()
                try:
                    with quiet_cvxpy():
                        program.solve(solver=cp.CLARABEL)
                except cp.SolverError:
                    break  # keep what this start has reached
                if variable.value is None:
                    break
                a = torch.complex(*torch.from_numpy(variable.value).tensor_split(2))
                a = unit_norm(a)
                now = float(worst(own[None], a[None, None])[0, 0])
                if now <= score * (1 + _SCA_GAIN):
                    break
                score = now
            points[problem, number] = a
    return best_of(h, points.to(h.device))


def sdr(h: Tensor, samples: int | None, seed: int) -> tuple[Tensor, Tensor]:
    """Semidefinite relaxation by cvxpy, and the best of 1000 Gaussian samples (Sidiropoulos 2006).

    Args:
        h: channels [problems, clients, antennas] complex128.
        samples: None for 1000.
        seed: of the samples.

    Returns:
        Beamformers [problems, antennas], and the bounds [problems] that cvxpy's multipliers prove.

    Raises:
        SolverUnavailableError: cvxpy is not installed, or gives up on a problem.
    """
    cp = import_solver("cvxpy", "anneal")
    antennas = h.shape[-1]
    samples = 1000 if samples is None else samples
    noise = (
        np.random.default_rng(seed).standard_normal((samples, antennas, 2)).view(complex)[..., 0]
    )
    values: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for own in h.cpu().numpy():
        covariance, least = cp.Variable((antennas, antennas), hermitian=True), cp.Variable()
        gains = [cp.real(cp.trace(np.outer(g, g.conj()) @ covariance)) for g in own]
        served = cp.hstack(gains) >= least
        limits = [covariance >> 0, cp.real(cp.trace(covariance)) <= 1]
        try:
            with quiet_cvxpy():
                cp.Problem(cp.Maximize(least), [served, *limits]).solve(solver=cp.CLARABEL)
        except cp.SolverError as error:
            raise SolverUnavailableError(
                f"cvxpy gives up on problem {len(values)} ({error}): use backend 'anneal'"
            ) from error
        power, axes = np.linalg.eigh(covariance.value)
        drawn = noise * np.sqrt(power.clip(0)) @ axes.T
        drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
        score = np.abs(drawn.conj() @ own.T).min(-1)
        values.append(drawn[score.argmax()])
        weights.append(np.maximum(served.dual_value, 1e-12))
    value, p = (torch.from_numpy(np.stack(x)).to(h.device) for x in (values, weights))
    return value, eigenvalue_bound(h, p)
