"""Receive beamforming: the direction in which an edge server hears all clients at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from solvers.backend import Catalogue
from solvers.beamforming.backend import PROVEN_GAP, BeamformerBackend, Certificate, Found
from solvers.settings import settings_elsewhere
from solvers.solution import Solution, Status

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.beamforming.problem import Problems

BACKENDS: Catalogue[BeamformerBackend] = Catalogue(
    "backend",
    {
        "anneal": "solvers.beamforming.anneal:Anneal",
        "mirror_prox": "solvers.beamforming.mirror_prox:MirrorProx",
        "sca": "solvers.beamforming.sca:Sca",
        "sdr": "solvers.beamforming.sdr:Sdr",
        "branch_and_bound": "solvers.beamforming.branch_and_bound:BranchAndBound",
    },
    "An object of a BeamformerBackend class is accepted, too, e.g. Anneal(starts=16).",
)
CERTIFICATES: Catalogue[Certificate] = Catalogue(
    "certificate",
    {
        "sdr": "solvers.beamforming.relaxation:RelaxationBound",
        "exact": "solvers.beamforming.branch_and_bound:BranchAndBound",
    },
    "None and an object of a Certificate class are accepted, too, e.g. "
    "BranchAndBound(time_limit_seconds=10).",
)
BEAMFORMER_BACKENDS = tuple(BACKENDS.classes)
"""Names of the methods."""


@overload
def optimize_beamformer(
    h: Tensor,
    *,
    backend: str | BeamformerBackend = ...,
    certificate: Literal["sdr", "exact"] | Certificate | None = ...,
    scales: ArrayLike | Tensor | None = ...,
) -> Solution[Tensor]: ...
@overload
def optimize_beamformer(
    h: NDArray[np.complexfloating],
    *,
    backend: str | BeamformerBackend = ...,
    certificate: Literal["sdr", "exact"] | Certificate | None = ...,
    scales: ArrayLike | Tensor | None = ...,
) -> Solution[NDArray[np.complexfloating]]: ...
@settings_elsewhere(
    starts="backend=Anneal(starts=...), or another class of solvers.beamforming",
    seed="backend=Anneal(seed=...), or another class of solvers.beamforming",
    time_limit_seconds="BranchAndBound(time_limit_seconds=...) of solvers.beamforming, as backend "
    "or as certificate",
)
def optimize_beamformer(
    h: NDArray[np.complexfloating] | Tensor,
    *,
    backend: str | BeamformerBackend = "anneal",
    certificate: Literal["sdr", "exact"] | Certificate | None = None,
    scales: ArrayLike | Tensor | None = None,
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
            problems (4 antennas and 30 clients, or 10 and 10, in seconds). A name stands for the
            default settings; an object has its own: ``Anneal``, ``MirrorProx``, ``Sca``, ``Sdr``
            and ``BranchAndBound`` of ``solvers.beamforming``, or of a class derived from its
            ``BeamformerBackend``. All problems share their random starts, so that a solution does
            not depend on its batch, but for rounding.
        certificate: what to prove the bound by. None: min_i ||h_i||^2 / s_i^2, which costs
            nothing; ``sdr``: the dual of the semidefinite relaxation, which is loose where clients
            outnumber antennas; ``exact``: branch and bound from the solution, which it may improve,
            with a minute for each problem. ``BranchAndBound(time_limit_seconds=...)`` gives it
            another limit; an object of a class derived from ``Certificate`` is accepted, too.
        scales: s [..., clients] >= 0, e.g. a client's data weight times the root mean square of
            what it sends; a client with 0 does not count. None: 1.

    Returns:
        Beamformers [..., antennas] of unit norm, of the kind, dtype and device of ``h``;
        objective, bound and gap [...] float64, floats for a single problem. OPTIMAL where the
        bound is within 1e-4 of the objective; ZERO where a client's channel is zero, so that
        nothing above 0 is possible: the value then serves the others. FEASIBLE otherwise.

    Raises:
        ValueError: ``h`` is not complex, not finite, beyond 1e-140 to 1e140, or has no clients or
            antennas; an argument is unknown or out of range.
        SolverUnavailableError: the backend is not installed, or gives up.
        RuntimeError: a backend returns beamformers of a wrong shape.
    """
    start = time.perf_counter()
    method = backend if isinstance(backend, BeamformerBackend) else BACKENDS.default(backend)
    proof = certificate
    if proof is not None and not isinstance(proof, Certificate):
        proof = CERTIFICATES.default(proof)
    from solvers.beamforming.problem import one_thread, read_problems  # torch: slow to import

    problems = read_problems(h, scales)
    with one_thread():
        found = _solve(problems, method, proof)
        return _solution(problems, found, method.name, start)


class _Best(NamedTuple):
    """Beamformers [problems, dimensions], bounds [problems], and what else there is to say."""

    value: Tensor
    bound: Tensor
    message: str = ""


def _solve(problems: Problems, method: BeamformerBackend, proof: Certificate | None) -> _Best:
    import torch

    from solvers.beamforming.directions import of_unit_norm

    h = problems.h
    if not len(h):
        return _Best(h[:, 0], h.real[:, 0, 0])
    if h.shape[-1] == 1:
        return _Best(torch.ones_like(h[:, 0]), h[..., 0].abs().square().amin(-1))
    found = method.solve(problems)
    if not isinstance(found, Found) or not isinstance(found.value, torch.Tensor):
        raise RuntimeError(
            f"backend {method.name!r} returned {type(found).__name__}: a Found with beamformers as "
            "a tensor is needed."
        )
    if found.value.shape != h[:, 0].shape:
        raise RuntimeError(
            f"backend {method.name!r} returned beamformers of shape {tuple(found.value.shape)} for "
            f"channels of shape {tuple(h.shape)}."
        )
    if proof is not None and proof.name != method.name:
        found = found.then(proof.certify(problems, found))
    bound = torch.linalg.vector_norm(h, dim=-1).square().amin(-1)
    bound = bound if found.bound is None else torch.minimum(bound, found.bound)
    return _Best(of_unit_norm(found.value), bound, found.message)


def _solution(problems: Problems, found: _Best, backend: str, start: float) -> Solution[Any]:
    import torch

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
    status[:] = [Status.of_gap(each, PROVEN_GAP) for each in gap.tolist()]
    status[zero.cpu().numpy()] = Status.ZERO
    seconds = time.perf_counter() - start
    answer = problems.like(value)
    if not problems.shape:
        known, limit, rest = (float(x[0]) for x in (objective, bound, gap))
        return Solution(answer, known, limit, rest, status[0], backend, seconds, message)
    known, limit, rest = (problems.like(x.reshape(problems.shape)) for x in (objective, bound, gap))
    status = status.reshape(problems.shape)
    return Solution(answer, known, limit, rest, status, backend, seconds, message)
