"""Receive beamforming: the direction in which an edge server hears all clients at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arguments import checked
from channels.checks import shown
from solvers.solution import Solution, Status

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.beamforming.problem import Problems

BEAMFORMER_BACKENDS = ("anneal", "mirror_prox", "sca", "sdr", "branch_and_bound")
"""Names of the methods."""


@overload
def optimize_beamformer(
    h: Tensor,
    *,
    backend: str = ...,
    starts: int | None = ...,
    seed: int = ...,
    certificate: Literal["sdr", "exact"] | None = ...,
    scales: ArrayLike | Tensor | None = ...,
    time_limit_seconds: float = ...,
) -> Solution[Tensor]: ...
@overload
def optimize_beamformer(
    h: NDArray[np.complexfloating],
    *,
    backend: str = ...,
    starts: int | None = ...,
    seed: int = ...,
    certificate: Literal["sdr", "exact"] | None = ...,
    scales: ArrayLike | Tensor | None = ...,
    time_limit_seconds: float = ...,
) -> Solution[NDArray[np.complexfloating]]: ...
@checked(ValueError)
def optimize_beamformer(
    h: NDArray[np.complexfloating] | Tensor,
    *,
    backend: str = "anneal",
    starts: int | None = None,
    seed: int = 0,
    certificate: Literal["sdr", "exact"] | None = None,
    scales: ArrayLike | Tensor | None = None,
    time_limit_seconds: float = 60.0,
) -> Solution[Any]:
    """Receive beamformer that serves the weakest client best (HIST, problem (33)).

    Solves  max_a min_i |a^H h_i|^2 / s_i^2  over ||a|| = 1. This is NP-hard: ``anneal`` finds
    beamformers close to the optimum, and a certificate says how close.

    On a CPU it computes on one thread: the products are small, so that threads would wait for each
    other. Use processes to solve many batches at once.

    Args:
        h: channels [..., clients, antennas] complex64 or complex128; leading axes are a batch.
            NumPy, or torch on any device.
        backend: ``anneal``, annealed soft minima from many starts, polished; ``mirror_prox``, the
            paper's successive convex approximation; ``sca``, the same solved by cvxpy; ``sdr``,
            semidefinite relaxation and sampling, by cvxpy; ``branch_and_bound``, exact for small
            problems (4 antennas and 30 clients, or 10 and 10, in seconds).
        starts: random starts, at least 1; samples of ``sdr``. None for the method's own number.
            Fewer are faster: 16 are a fast setting of ``anneal`` for up to 16 clients.
        seed: of the starts, which all problems share: a solution does not depend on its batch,
            but for rounding.
        certificate: what to prove the bound by. None: min_i ||h_i||^2 / s_i^2, which costs
            nothing; ``sdr``: the dual of the semidefinite relaxation, which is loose where clients
            outnumber antennas; ``exact``: branch and bound from the solution, which it may improve.
        scales: s [..., clients] >= 0, e.g. a client's data weight times the root mean square of
            what it sends; a client with 0 does not count. None: 1.
        time_limit_seconds: for each problem that branch and bound solves.

    Returns:
        Beamformers [..., antennas] of unit norm, of the kind, dtype and device of ``h``;
        objective, bound and gap [...] float64, floats for a single problem. OPTIMAL where the
        bound is within 1e-4 of the objective; ZERO where a client's channel is zero, so that
        nothing above 0 is possible: the value then serves the others. FEASIBLE otherwise.

    Raises:
        ValueError: ``h`` is not complex, not finite, beyond 1e-140 to 1e140, or has no clients or
            antennas; an argument is unknown or out of range.
        SolverUnavailableError: the backend is not installed, or gives up.
    """
    start = time.perf_counter()
    _check(backend, starts, seed, certificate, time_limit_seconds)
    from solvers.beamforming.problem import one_thread, read_problems  # torch: slow to import

    problems = read_problems(h, scales)
    with one_thread():
        found = _solve(problems.h, backend, starts, seed, certificate, time_limit_seconds)
        return _solution(problems, found, backend, start)


class _Found(NamedTuple):
    """Beamformers [problems, dimensions], bounds [problems], and what else there is to say."""

    value: Tensor
    bound: Tensor
    message: str = ""


def _solve(
    h: Tensor,
    backend: str,
    starts: int | None,
    seed: int,
    certificate: str | None,
    limit_seconds: float,
) -> _Found:
    import torch

    from solvers.beamforming import mirror_prox as references
    from solvers.beamforming.anneal import anneal, polish
    from solvers.beamforming.branch_and_bound import PROVEN_GAP, branch_and_bound
    from solvers.beamforming.relaxation import relaxation_bound

    if not len(h):
        return _Found(h[:, 0], h.real[:, 0, 0])
    if h.shape[-1] == 1:
        return _Found(torch.ones_like(h[:, 0]), h[..., 0].abs().square().amin(-1))
    bound = torch.linalg.vector_norm(h, dim=-1).square().amin(-1)
    if backend == "mirror_prox":
        value = references.mirror_prox(h, starts, seed)
    elif backend == "sca":
        value = references.sca(h, starts, seed)
    elif backend == "sdr":
        value, own = references.sdr(h, starts, seed)
        bound = torch.minimum(bound, own)
    else:
        value = anneal(h, starts, seed)
    if certificate == "sdr":
        bound = torch.minimum(bound, relaxation_bound(h))
    if certificate != "exact" and backend != "branch_and_bound":
        return _Found(value, bound)
    unclosed = 0
    value, bound = value.clone(), bound.clone()
    for number, (own_h, own_value) in enumerate(zip(h.cpu(), value.cpu(), strict=True)):
        exact = branch_and_bound(own_h, own_value, limit_seconds)
        value[number] = polish(own_h[None], exact.value[None, None])[0, 0]
        bound[number] = torch.clamp_max(bound[number], exact.bound)
        unclosed += exact.bound > exact.objective * (1 + PROVEN_GAP)
    message = f"{unclosed} of {len(h)} not closed in {limit_seconds:g} s" if unclosed else ""
    return _Found(value, bound, message)


def _solution(problems: Problems, found: _Found, backend: str, start: float) -> Solution[Any]:
    import torch

    from solvers.beamforming.branch_and_bound import PROVEN_GAP

    value = problems.antennas(found.value)
    length = torch.linalg.vector_norm(found.value, dim=-1, keepdim=True)
    scores = ((found.value / length).conj().unsqueeze(1) @ problems.h.mT).abs().square()
    reached = scores.squeeze(1).amin(-1)
    bound = torch.maximum(found.bound, reached)
    objective, bound = (problems.objective(x) for x in (reached, bound))
    gap = torch.where(bound == objective, 0.0, (bound - objective) / objective)
    zero = problems.blocked >= 0
    message = found.message
    if zero.any():
        at = int(zero.to(torch.int8).argmax())
        item = ", ".join(str(int(i)) for i in np.unravel_index(at, problems.shape or (1,)))
        where = f"item [{item}]: " if problems.shape else ""
        text = f"{where}client {int(problems.blocked[at])}'s channel is zero"
        message = f"{message}; {text}" if message else text
    status = np.empty(len(objective), dtype=object)
    status[:] = [Status.of_gap(own, PROVEN_GAP) for own in gap.tolist()]
    status[zero.cpu().numpy()] = Status.ZERO
    seconds = time.perf_counter() - start
    answer = problems.like(value)
    if not problems.shape:
        known, limit, rest = (float(x[0]) for x in (objective, bound, gap))
        return Solution(answer, known, limit, rest, status[0], backend, seconds, message)
    known, limit, rest = (problems.like(x.reshape(problems.shape)) for x in (objective, bound, gap))
    status = status.reshape(problems.shape)
    return Solution(answer, known, limit, rest, status, backend, seconds, message)


def _check(
    backend: str, starts: int | None, seed: int, certificate: str | None, limit: float
) -> None:
    if backend not in BEAMFORMER_BACKENDS:
        raise ValueError(f"backend is {backend!r}: choose one of {', '.join(BEAMFORMER_BACKENDS)}.")
    if starts is not None and not (_whole(starts) and 1 <= starts <= 1_000_000):
        raise ValueError(
            f"starts is {shown(starts)}: give a whole number from 1 to 1,000,000, or None."
        )
    if not (_whole(seed) and 0 <= seed < 1 << 63):
        raise ValueError(f"seed is {shown(seed)}: give a whole number from 0 to 2^63 - 1.")
    if certificate not in (None, "sdr", "exact"):
        raise ValueError(f"certificate is {shown(certificate)}: choose 'sdr' or 'exact', or None.")
    if not limit > 0:
        raise ValueError(f"time_limit_seconds is {limit!r}: give a number above 0.")


def _whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
