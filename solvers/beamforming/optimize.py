"""Beamforming problems, solved by a backend and checked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arrays import BoolArray
from solvers.backend import Catalogue
from solvers.beamforming.beamformer_backend import (
    PROVEN_GAP,
    BeamformerBackend,
    Certificate,
    FoundBeamformers,
)
from solvers.outcome import located, unable
from solvers.settings import settings_elsewhere
from solvers.solution import Solution, Status

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.beamforming.beamforming_problem import BeamformingProblems

BACKENDS: Catalogue[BeamformerBackend] = Catalogue(
    "backend",
    {
        "default": "solvers.beamforming.default:Default",
        "anneal": "solvers.beamforming.anneal:Anneal",
        "mirror_prox": "solvers.beamforming.mirror_prox:MirrorProx",
        "sca": "solvers.beamforming.sca:Sca",
        "sdr": "solvers.beamforming.sdr:Sdr",
        "branch_and_bound": "solvers.beamforming.branch_and_bound:BranchAndBound",
    },
    "An instance of a BeamformerBackend class is also accepted, e.g. Anneal(starts=16).",
)
CERTIFICATES: Catalogue[Certificate] = Catalogue(
    "certificate",
    {
        "sdr": "solvers.beamforming.relaxation:RelaxationBound",
        "exact": "solvers.beamforming.branch_and_bound:BranchAndBound",
    },
    "None or an instance of a Certificate class is also accepted, e.g. "
    "BranchAndBound(time_limit_seconds=10).",
)
BEAMFORMER_BACKENDS = tuple(BACKENDS.classes)
"""Names of the backends."""


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
    backend: str | BeamformerBackend = "default",
    certificate: Literal["sdr", "exact"] | Certificate | None = None,
    scales: ArrayLike | Tensor | None = None,
) -> Solution[Any]:
    """Find the receive beamformer that maximises the weakest client's gain (HIST, problem (33)).

    Solves  max_a min_i |a^H h_i|^2 / s_i^2  over ||a|| = 1. This is NP-hard: the default finds
    beamformers close to the optimum, and a certificate bounds the distance to it.

    On a CPU it uses one thread, because the matrix products are too small to benefit from more. Use
    several processes to solve many batches in parallel.

    >>> import numpy as np
    >>> import solvers
    >>> h = np.random.default_rng(1).standard_normal((3, 2, 2)).view(complex)[..., 0]
    >>> solution = solvers.optimize_beamformer(h, certificate="sdr")
    >>> bool(solution.objective <= solution.bound)
    True

    Args:
        h: channels [..., clients, antennas] complex64 or complex128; leading axes are a batch, and
            a client has one transmit antenna: of arrays [users, rx, tx], give h[..., 0] or that of
            a precoder. NumPy, or torch on any device.
        backend: ``default``: exact enumeration for two antennas or two clients (up to 32 clients,
            see ``Default``), and otherwise ``anneal``: annealed soft minima from many starts, with
            polishing;
            ``mirror_prox``: the paper's successive convex approximation; ``sca``: the same
            approximation solved by cvxpy; ``sdr``: semidefinite relaxation and sampling, by cvxpy;
            ``branch_and_bound``: exact for small problems (4 antennas and 30 clients, or 10 and 10,
            in seconds). A name selects default settings. For other settings give an instance of
            ``Default``, ``Anneal``, ``MirrorProx``, ``Sca``, ``Sdr``, ``BranchAndBound`` or another
            subclass of ``BeamformerBackend``, all of ``solvers.beamforming``. All problems use the
            same random starts, so a solution does not depend on the other problems of its batch,
            except for rounding.
        certificate: method that proves the bound. None: min_i ||h_i||^2 / s_i^2, at no cost, or the
            backend's own bound;
            ``sdr``: the dual of the semidefinite relaxation, which is loose if clients outnumber
            antennas; ``exact``: branch and bound that starts at the solution and may improve it,
            for up to a minute per problem. ``BranchAndBound(time_limit_seconds=...)`` sets another
            limit; instances of other subclasses of ``Certificate`` are also accepted.
        scales: s [..., clients] >= 0, e.g. a client's data weight times the root mean square of its
            update; a client with scale 0 is ignored. None means 1.

    Leading axes of ``h`` and ``scales`` are broadcast: a batch of problems.

    Returns:
        Beamformers [..., antennas] of unit norm, with the array type, dtype and device of ``h``;
        objective, bound and gap are [...] float64, or floats for a single problem. The status is
        OPTIMAL if the bound is within 1e-4 of the objective, and ZERO if a client's channel is
        zero, which makes the optimum 0; the value is then the beamformer for the other clients, and
        the message names the client. Otherwise it is FEASIBLE.

    Raises:
        ValueError: ``h`` is not complex, not finite, outside 1e-140 to 1e140 (also relative to the
            largest entry of its problem), or has no clients or antennas; or an argument is unknown
            or out of range.
        SolverUnavailableError: the backend is not installed or fails to solve the problem.
        RuntimeError: the backend returns beamformers of a wrong shape.
    """
    start = time.perf_counter()
    method = backend if isinstance(backend, BeamformerBackend) else BACKENDS.default(backend)
    proof = certificate
    if proof is not None and not isinstance(proof, Certificate):
        proof = CERTIFICATES.default(proof)
    from solvers.beamforming.beamforming_problem import read_problems  # torch: slow to import
    from solvers.torch_threads import torch_threads

    problems = read_problems(h, scales)
    with torch_threads(1):  # more do not help small products
        best = _solve(problems, method, proof)
        return _solution(problems, best, method.name, start)


class _Best(NamedTuple):
    """Beamformers [problems, dimensions], bounds [problems] and a message."""

    value: Tensor
    bound: Tensor
    message: str = ""


def _solve(
    problems: BeamformingProblems, method: BeamformerBackend, proof: Certificate | None
) -> _Best:
    import torch

    from solvers.beamforming.directions import of_unit_norm

    h = problems.h
    if not len(h):
        return _Best(h[:, 0], h.real[:, 0, 0])
    if h.shape[-1] == 1:
        return _Best(torch.ones_like(h[:, 0]), h[..., 0].abs().square().amin(-1))
    beamformers = method.solve(problems)
    if not isinstance(beamformers, FoundBeamformers) or not isinstance(
        beamformers.value, torch.Tensor
    ):
        raise RuntimeError(
            f"backend {method.name!r} returned {type(beamformers).__name__}: it must return a "
            "FoundBeamformers with beamformers as a tensor."
        )
    if beamformers.value.shape != h[:, 0].shape:
        shape = tuple(beamformers.value.shape)
        raise RuntimeError(
            f"backend {method.name!r} returned beamformers of shape {shape} for channels of "
            f"shape {tuple(h.shape)}: it must return [problems, dimensions]."
        )
    if proof is not None and proof.name != method.name:
        beamformers = beamformers.then(proof.certify(problems, beamformers))
    bound = torch.linalg.vector_norm(h, dim=-1).square().amin(-1)
    bound = bound if beamformers.bound is None else torch.minimum(bound, beamformers.bound)
    return _Best(of_unit_norm(beamformers.value), bound, beamformers.message)


def _solution(
    problems: BeamformingProblems, best: _Best, backend: str, start: float
) -> Solution[Any]:
    import torch

    value = problems.antennas(best.value)
    length = torch.linalg.vector_norm(best.value, dim=-1, keepdim=True)
    scores = ((best.value / length).conj().unsqueeze(1) @ problems.h.mT).abs().square()
    reached = scores.squeeze(1).amin(-1)
    bound = torch.maximum(best.bound, reached)
    objective, bound = (problems.objective(x) for x in (reached, bound))
    gap = torch.where(bound == objective, 0.0, (bound - objective) / objective)
    mute: BoolArray = problems.mute.cpu().numpy()
    zero = mute.any(-1)
    message = "; ".join(filter(None, [best.message, _silent(mute, problems.shape)]))
    status = np.empty(len(objective), dtype=object)
    status[:] = [Status.of_gap(ratio, PROVEN_GAP) for ratio in gap.tolist()]
    status[zero] = Status.ZERO
    seconds = time.perf_counter() - start
    answer = problems.like(value)
    if not problems.shape:
        score, limit, rest = (float(x[0]) for x in (objective, bound, gap))
        return Solution(answer, score, limit, rest, status[0], backend, seconds, message)
    score, limit, rest = (problems.like(x.reshape(problems.shape)) for x in (objective, bound, gap))
    status = status.reshape(problems.shape)
    return Solution(answer, score, limit, rest, status, backend, seconds, message)


def _silent(mute: BoolArray, shape: tuple[int, ...]) -> str:
    """Name the clients that cannot send of the first problem with such clients; "" if none has."""
    if not mute.any():
        return ""
    zero: BoolArray = np.asarray(mute.any(-1))
    text = unable({"send: h is 0": mute[int(zero.argmax())]})
    return located(text, zero, shape, "have objective 0")
