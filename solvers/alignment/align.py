"""Over-the-air sums: transmit coefficients and a receive beamformer with the least error."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from channels.arrays import BoolArray
from channels.validation import is_tensor, shown
from solvers.outcome import left_out, located, unable
from solvers.settings import check_seed, check_starts, check_time_limit
from solvers.solution import Solution, Status

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.alignment.alignment_problem import Arguments

PROVEN_GAP = 1e-4
"""Maximum relative gap in the error of an optimal solution, as for ``optimize_beamformer``."""


class Alignment(NamedTuple):
    """What the clients and the receiver do, and the two parts of the error.

    >>> import solvers
    >>> plan = solvers.align_transmitters([1 + 0j, 0.1j], [0.5, 0.5], 1.0, 0.01).value
    >>> abs(plan.transmit).round(3).tolist()  # the weak client sends at its limit
    [0.2, 1.0]

    Args:
        receive: a [..., antennas] complex128; the receiver takes a^H y.
        transmit: b [..., clients] complex128, |b_i| <= max_amplitude_i; client i sends b_i x_i.
        bias: [...], the part of the error due to weights a^H h_i b_i other than q_i.
        noise: [...], the part due to noise, noise_variance ||a||^2.
    """

    receive: Any
    transmit: Any
    bias: Any
    noise: Any


@overload
def align_transmitters(
    h: Tensor,
    weights: ArrayLike | Tensor,
    max_amplitude: ArrayLike | Tensor,
    noise_variance: ArrayLike | Tensor,
    *,
    correlation: float = ...,
    unbiased_sum: bool = ...,
    certificate: Literal["sdr", "exact"] | None = ...,
    starts: int | None = ...,
    seed: int = ...,
    time_limit_seconds: float = ...,
) -> Solution[Alignment]: ...
@overload
def align_transmitters(
    h: NDArray[np.complexfloating] | ArrayLike,
    weights: ArrayLike | Tensor,
    max_amplitude: ArrayLike | Tensor,
    noise_variance: ArrayLike | Tensor,
    *,
    correlation: float = ...,
    unbiased_sum: bool = ...,
    certificate: Literal["sdr", "exact"] | None = ...,
    starts: int | None = ...,
    seed: int = ...,
    time_limit_seconds: float = ...,
) -> Solution[Alignment]: ...
def align_transmitters(
    h: NDArray[np.complexfloating] | ArrayLike | Tensor,
    weights: ArrayLike | Tensor,
    max_amplitude: ArrayLike | Tensor,
    noise_variance: ArrayLike | Tensor,
    *,
    correlation: float = 0.0,
    unbiased_sum: bool = False,
    certificate: Literal["sdr", "exact"] | None = "sdr",
    starts: int | None = None,
    seed: int = 0,
    time_limit_seconds: float = 60.0,
) -> Solution[Alignment]:
    """Find the least mean squared error of a weighted sum over the air, within power limits.

    The receiver gets y = sum_i h_i b_i x_i + z and estimates sum_i q_i x_i as a^H y. With
    w_i = a^H h_i b_i, this solves

        min over a and |b_i| <= A_i of
            (1 - c) sum_i |w_i - q_i|^2 + c |sum_i (w_i - q_i)|^2 + sigma^2 ||a||^2,

    which is the mean squared error for x_i of unit variance whose correlation is c between any two
    clients. Channel inversion has w = q; a client in a deep fade then forces a large a, and so
    noise. Here such clients send at full power and arrive with less than their weight.

    With one antenna (or one client) the solution is exact: in closed form for c = 0 (Cao et al.,
    IEEE TWC 2020, doi 10.1109/TWC.2020.3012287; Liu et al., arXiv:1909.00329), else by finitely
    many Newton steps. With more, the problem is not convex: local minima from many starts are
    compared, and the dual of the semidefinite relaxation bounds the best error from below (see
    ``alignment.descent`` and ``alignment.relaxation``). The beamformer of ``optimize_beamformer``
    is one of the starts, so the error is never above that of channel inversion with it.

    >>> import solvers
    >>> solution = solvers.align_transmitters([1 + 0j, 0.1j], [0.5, 0.5], 1.0, 0.01)
    >>> round(float(solution.objective), 3), solution.status.name
    (0.125, 'OPTIMAL')

    Args:
        h: channels [..., clients, antennas] complex, or [clients] for one problem with one antenna.
            A client has one transmit antenna: of arrays [users, rx, tx], give h[..., 0] or that of
            a precoder.
        weights: q [..., clients] >= 0. A client of weight 0 is absent and sends nothing.
        max_amplitude: A [..., clients] >= 0, square root of a client's power limit per symbol. If
            x_i has a standard deviation s_i other than 1, give q_i s_i and A_i for unit variance,
            and divide b_i by s_i.
        noise_variance: sigma^2 [...] > 0 per antenna and complex symbol. If x is real and the
            receiver takes the real part, give half of it.
        correlation: c, from 0 to below 1; 0 means uncorrelated x_i.
        unbiased_sum: whether sum_i w_i = sum_i q_i is required: no error in what all x_i have in
            common. Clients with good channels then make up for the others.
        certificate: method that proves the bound for several antennas. ``sdr``: the relaxation,
            tight for up to three clients; ``exact``: branch and bound on the phases of a^H h_i,
            for small problems without correlation and ``unbiased_sum``; None: no bound (NaN) and
            status FEASIBLE, from a shorter search, which takes a quarter to a half of the time.
        starts: number of random starts of the local method; None for 32, or for 16 without a
            certificate.
        seed: seed of the starts. A solution does not depend on the other problems of its batch,
            except for rounding.
        time_limit_seconds: time limit of ``exact`` per problem; > 0, infinity for no limit.

    A client of positive weight whose channel or ``max_amplitude`` is 0 cannot send: its w_i is 0,
    and the message names it. Give it weight 0 for the least error of the sum without it.

    Leading axes of h, weights, max_amplitude and noise_variance are broadcast. NumPy, or torch on
    any device; weights, amplitudes and noise are also array-like.

    Returns:
        An ``Alignment``, with the array type and device of ``h``; ``receive`` is [1] if h is
        [clients]. The objective is bias + noise; it, the bound and the gap are
        [...] float64, or floats for a single problem. The status is OPTIMAL if the objective is
        within 1e-4 of the bound, else FEASIBLE. A problem with ``unbiased_sum`` in which no
        client can be heard is infeasible: its value is None (-1 in a batch), and the objective
        infinite.

    Raises:
        ValueError: an argument is not finite or out of range, or the shapes do not fit; or
            ``exact`` is asked for with several antennas and ``correlation`` or ``unbiased_sum``.
    """
    start = time.perf_counter()
    if certificate not in ("sdr", "exact", None):
        raise ValueError(f"certificate is {shown(certificate)}: choose one of sdr, exact, None.")
    check_starts("starts", starts)
    check_seed(seed)
    check_time_limit(time_limit_seconds)
    import torch

    from solvers.alignment.alignment_problem import read_arguments
    from solvers.alignment.direction_search import SearchSettings, solve
    from solvers.torch_threads import torch_threads

    arguments = read_arguments(h, weights, max_amplitude, noise_variance, correlation, unbiased_sum)
    exact = certificate == "exact"
    if exact and arguments.h.shape[-1] > 1 and (arguments.correlation or arguments.unbiased):
        raise ValueError(
            "certificate 'exact' conflicts with correlation and unbiased_sum for several antennas: "
            "choose certificate 'sdr'."
        )
    reached = (arguments.problems.g != 0).any(-1).any(-1)
    feasible = reached if arguments.unbiased else torch.ones_like(reached)
    with torch_threads(1):  # more do not help small products
        limit = time_limit_seconds if exact else None
        settings = SearchSettings(starts, seed, limit, PROVEN_GAP, bounded=certificate is not None)
        points = solve(arguments.problems.rows(feasible), settings)
        return _solution(h, arguments, feasible, points.point, points.bound, points.message, start)


def _solution(
    h: Any,
    arguments: Arguments,
    feasible: Tensor,
    point: Tensor,
    bound: Tensor,
    message: str,
    start: float,
) -> Solution[Alignment]:
    import torch

    points = torch.zeros_like(arguments.problems.g[:, 0])
    points[feasible] = point
    bounds = torch.full_like(arguments.noise, torch.inf)
    bounds[feasible] = bound * arguments.unit[feasible]
    value = _alignment(arguments, points)
    objective = torch.where(feasible, value.bias + value.noise, torch.inf)
    bounds = torch.minimum(bounds, objective)
    apart = bounds < objective
    gap = torch.where(apart, (objective - bounds) / torch.where(apart, objective, 1.0), 0.0)
    gap = torch.where(bounds.isnan(), bounds, gap)
    status = np.empty(len(gap), dtype=object)
    status[:] = [Status.of_gap(ratio, PROVEN_GAP) for ratio in gap.tolist()]
    possible: BoolArray = feasible.cpu().numpy()
    status[~possible] = Status.INFEASIBLE
    message = "; ".join(filter(None, [message, _missing(arguments, possible)]))

    def kind(array: Tensor) -> Any:
        return array if is_tensor(h) else array.cpu().numpy()

    seconds = time.perf_counter() - start
    backend = "newton"
    if not arguments.shape:
        single = Alignment(
            kind(value.receive[0]), kind(value.transmit[0]), float(value.bias), float(value.noise)
        )
        answer = single if possible[0] else None
        cost, limit, rest = (float(x) for x in (objective, bounds, gap))
        return Solution(answer, cost, limit, rest, status[0], backend, seconds, message)
    batch = (
        torch.where(feasible.reshape(-1, *[1] * (part.ndim - 1)), part, -1.0).reshape(
            *arguments.shape, *part.shape[1:]
        )
        for part in value
    )
    cost, limit, rest = (kind(x.reshape(arguments.shape)) for x in (objective, bounds, gap))
    status = status.reshape(arguments.shape)
    return Solution(
        Alignment(*map(kind, batch)), cost, limit, rest, status, backend, seconds, message
    )


def _missing(arguments: Arguments, possible: BoolArray) -> str:
    """Which clients cannot send, of the first infeasible problem or of the first without them."""
    reasons = arguments.lacking

    def named(row: int) -> str:
        return unable({why: which[row] for why, which in reasons.items()})

    if possible.all():
        return left_out(np.any(list(reasons.values()), axis=(0, -1)), arguments.shape, named)
    text = f"{named(int(possible.argmin()))}, so sum w cannot reach sum q"
    return located(text, ~possible, arguments.shape)


def _alignment(arguments: Arguments, points: Tensor) -> Alignment:
    """The best transmit coefficients and the errors for points [problems, dimensions]."""
    import torch

    from solvers.alignment.gains import fill

    problems = arguments.problems
    y = (points.conj().unsqueeze(-2) @ problems.g.mT).squeeze(-2).abs()
    tau = fill(problems.q, y, problems.kappa, problems.present).tau
    norm = torch.linalg.vector_norm(arguments.q, dim=-1, keepdim=True)
    targets = torch.where(problems.present, arguments.q + tau.unsqueeze(-1) * norm, 0.0)
    a = arguments.receive(points)
    z = (a.conj().unsqueeze(-2) @ arguments.h.mT).squeeze(-2)
    gain = z.abs()
    heard = gain > 0
    amplitude = torch.minimum(arguments.amplitude, targets / torch.where(heard, gain, 1.0))
    amplitude = torch.where(heard, amplitude, 0.0)
    transmit = torch.where(heard, torch.sgn(z).conj(), 1.0) * amplitude
    error = torch.where(problems.present, gain * amplitude - arguments.q, 0.0)
    c = arguments.correlation
    bias = (1 - c) * error.square().sum(-1) + c * error.sum(-1).square()
    return Alignment(a, transmit, bias, arguments.noise * a.abs().square().sum(-1))
