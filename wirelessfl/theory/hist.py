"""The convergence bounds of HIST, term by term (Fang, Han, Brinton: Theorems 1, 2, Corollary 1).

N cells of n_j clients train for T global rounds of E edge rounds of H local steps of size gamma.
The masks are disjoint and cover the d parameters, (3); the theory does not apply to layers that all
cells train. Below, N~ = sum_j 1/n_j. Theorem 2 is the bound over the air.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.base.guard import check_count, check_number

# A step size computed from the limit itself may exceed it by rounding.
_ROUNDING = 1 + 4 * sys.float_info.epsilon


@dataclass(frozen=True)
class Constants:
    """The constants of Assumptions 2 and 4-6, valid for all clients at all models.

    Args:
        smoothness: L of every client's loss.
        gradient_variance: sigma^2, variance of a client's mini-batch gradient, (9).
        delta_1_sq: delta_1^2, bound on the mean over cells of ||grad f_j - grad f||^2, (10).
        delta_2_sq: delta_2^2, bound on the mean over a cell's clients of
            ||grad F_i - grad f_j||^2, (11).
        points: number of models at which estimates were computed; 0 for known constants.
    """

    smoothness: float
    gradient_variance: float
    delta_1_sq: float
    delta_2_sq: float
    points: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            check_number(name, value)


@dataclass(frozen=True)
class StepSizeLimit:
    """The four limits of condition (13), named after the quantity that each bounds in the proof.

    Args:
        descent: 1 / (45 sqrt(N) E H L), which keeps half of the gradient norm despite drift.
        noise: N~ / (N H L), which bounds the noise of local steps.
        client_drift: 1 / (N H^2 L), which bounds the drift of clients within a cell.
        cell_drift: 1 / (N (N+1) E^2 H^2 L), which bounds the drift of cells within a global round.
    """

    descent: float
    noise: float
    client_drift: float
    cell_drift: float

    @property
    def binding(self) -> str:
        """Name of the smallest limit."""
        return min(fields(self), key=lambda field: float(getattr(self, field.name))).name

    @property
    def value(self) -> float:
        """The largest step size that meets (13)."""
        return min(self.descent, self.noise, self.client_drift, self.cell_drift)

    def admits(self, step_size: float) -> bool:
        """Whether ``step_size`` meets (13), with a tolerance of four machine epsilons."""
        return step_size <= self.value * _ROUNDING


@dataclass(frozen=True)
class Theorem1:
    """The six terms of (14), which bound the mean of E||grad f(x^{t,e})||^2 over t and e.

    Args:
        initial_gap: 4 (f0 - f*) / (gamma T E H).
        gradient_noise: 100 gamma N~ L sigma^2.
        cell_dissimilarity: 1356 gamma L delta_1^2.
        client_dissimilarity: 60 gamma L delta_2^2.
        partition: 6 (N/d) mean_t d_max^t delta_1^2; does not vanish with gamma.
        model_norm: 48 (N-1) L^2 mean_t E||x^t||^2; does not vanish with gamma.
        step_size: gamma.
        limit: the limits of (13) on gamma.
    """

    initial_gap: float
    gradient_noise: float
    cell_dissimilarity: float
    client_dissimilarity: float
    partition: float
    model_norm: float
    step_size: float
    limit: StepSizeLimit

    @property
    def terms(self) -> dict[str, float]:
        """The terms by name, including those of a subclass."""
        names = [f.name for f in fields(self) if f.name not in ("step_size", "limit")]
        return {name: getattr(self, name) for name in names}

    @property
    def total(self) -> float:
        """The bound: the sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def holds(self) -> bool:
        """Whether the step size meets (13); otherwise the total is not a bound."""
        return self.limit.admits(self.step_size)

    @property
    def condition(self) -> str:
        """One line stating whether the step size meets (13), with the smallest limit."""
        verb = "meets" if self.holds else "violates"
        return (
            f"step_size {self.step_size:.6g} {verb} (13): at most {self.limit.value:.6g} "
            f"({self.limit.binding})"
        )


def theorem_1(
    constants: Constants,
    *,
    rounds: int,
    edge_rounds: int,
    local_steps: int,
    cell_sizes: Sequence[int],
    step_size: float,
    parameters: int,
    largest_mask: ArrayLike,
    model_norm_sq: ArrayLike,
    initial_gap: float,
) -> Theorem1:
    """The bound of Theorem 1, (14). A step size that violates (13) does not raise: check ``holds``.

    Args:
        constants: L, sigma^2, delta_1^2, delta_2^2; L > 0.
        rounds: T >= 1, global rounds.
        edge_rounds: E >= 1, edge rounds per global round.
        local_steps: H >= 1, mini-batch steps per edge round.
        cell_sizes: n_j >= 1, number of clients in each of the N >= 2 cells.
        step_size: gamma > 0.
        parameters: d >= 1, number of parameters of the full model.
        largest_mask: d_max^t in [d/N, d], parameters of the largest submodel; [T], or one number.
        model_norm_sq: E||x^t||^2 >= 0 of the global model at the start of round t; [T], or one
            number, e.g. the mean over rounds.
        initial_gap: f(x^0) - f* >= 0.
    """
    limit = step_size_limit(
        edge_rounds=edge_rounds,
        local_steps=local_steps,
        cell_sizes=cell_sizes,
        smoothness=constants.smoothness,
    )
    check_count("rounds", rounds)
    check_count("parameters", parameters)
    check_number("step_size", step_size, positive=True)
    check_number("initial_gap", initial_gap)
    cells, inverse_sizes = _cells(cell_sizes)
    largest = _mean_over_rounds(
        "largest_mask", largest_mask, rounds, parameters / cells, parameters
    )
    norm_sq = _mean_over_rounds("model_norm_sq", model_norm_sq, rounds, 0.0, math.inf)
    scale = step_size * constants.smoothness
    return Theorem1(
        initial_gap=4 * initial_gap / (step_size * rounds * edge_rounds * local_steps),
        gradient_noise=100 * scale * inverse_sizes * constants.gradient_variance,
        cell_dissimilarity=1356 * scale * constants.delta_1_sq,
        client_dissimilarity=60 * scale * constants.delta_2_sq,
        partition=6 * cells / parameters * largest * constants.delta_1_sq,
        model_norm=48 * (cells - 1) * constants.smoothness**2 * norm_sq,
        step_size=step_size,
        limit=limit,
    )


def step_size_limit(
    *, edge_rounds: int, local_steps: int, cell_sizes: Sequence[int], smoothness: float
) -> StepSizeLimit:
    """The limits of (13); arguments as for :func:`theorem_1`, with L = ``smoothness`` > 0."""
    check_count("edge_rounds", edge_rounds)
    check_count("local_steps", local_steps)
    check_number("smoothness", smoothness, positive=True)
    n, inverse_sizes = _cells(cell_sizes)
    e, h = edge_rounds, local_steps
    return StepSizeLimit(
        descent=1 / (45 * math.sqrt(n) * e * h * smoothness),
        noise=inverse_sizes / (n * h * smoothness),
        client_drift=1 / (n * h**2 * smoothness),
        cell_drift=1 / (n * (n + 1) * e**2 * h**2 * smoothness),
    )


def corollary_1_step_size(
    *, rounds: int, edge_rounds: int, local_steps: int, cell_sizes: Sequence[int]
) -> float:
    """The step size (T E H N~)^(-1/2) of Corollary 1; arguments as for :func:`theorem_1`."""
    check_count("rounds", rounds)
    check_count("edge_rounds", edge_rounds)
    check_count("local_steps", local_steps)
    _, inverse_sizes = _cells(cell_sizes)
    return 1 / math.sqrt(rounds * edge_rounds * local_steps * inverse_sizes)


def smallest_rounds(
    *, edge_rounds: int, local_steps: int, cell_sizes: Sequence[int], smoothness: float
) -> int:
    """The smallest T for which the step size of Corollary 1 meets (13).

    Arguments are those of :func:`step_size_limit`.
    """
    limit = step_size_limit(
        edge_rounds=edge_rounds,
        local_steps=local_steps,
        cell_sizes=cell_sizes,
        smoothness=smoothness,
    )

    def admitted(rounds: int) -> bool:
        return limit.admits(
            corollary_1_step_size(
                rounds=rounds,
                edge_rounds=edge_rounds,
                local_steps=local_steps,
                cell_sizes=cell_sizes,
            )
        )

    enough = 1
    while not admitted(enough):
        enough *= 2
    too_few = enough // 2
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if admitted(middle):
            enough = middle
        else:
            too_few = middle
    return enough


def mask_size_cap(*, parameters: int, cells: int, eps_th: float, delta_1_sq: float) -> float:
    """Maximum size of a submodel under (19c), d eps_th / (6 N delta_1^2) parameters.

    If it is below d/N, that is for eps_th < 6 delta_1^2, no partition satisfies it.

    Args:
        parameters: d >= 1.
        cells: N >= 2.
        eps_th: threshold on the partition term of Theorem 1, > 0.
        delta_1_sq: delta_1^2 >= 0; if it is 0, the result is infinite.
    """
    check_count("parameters", parameters)
    check_count("cells", cells, min_value=2)
    check_number("eps_th", eps_th, positive=True)
    check_number("delta_1_sq", delta_1_sq)
    return parameters * eps_th / (6 * cells * delta_1_sq) if delta_1_sq > 0 else math.inf


@dataclass(frozen=True)
class Theorem2(Theorem1):
    """The terms of (29): those of Theorem 1, and the error of over-the-air computation.

    Args:
        air_error: gamma times the mean over edge rounds of sum_j MSE_j; in the corrected bound
            2 gamma L / H times that mean.
    """

    air_error: float


def theorem_2(
    constants: Constants,
    *,
    rounds: int,
    edge_rounds: int,
    local_steps: int,
    cell_sizes: Sequence[int],
    step_size: float,
    parameters: int,
    largest_mask: ArrayLike,
    model_norm_sq: ArrayLike,
    initial_gap: float,
    mse: ArrayLike,
    corrected: bool = False,
) -> Theorem2:
    """The bound of Theorem 2, (29); arguments that are not listed are those of ``theorem_1``.

    The published term of the noise is wrong: by (28) and smoothness, each edge round's noise enters
    the descent with gamma^2 L / 2, where (39) has 1 / 2. Through (43) to (45) this gives
    2 gamma L / H instead of gamma, so the published term bounds the noise only if L <= H / 2.

    Args:
        mse: sum_j MSE_j per edge round, where MSE_j = |p_j| times the error of an element (25), in
            units of the accumulated gradient; >= 0. One number, [T] or [T, E].
        corrected: use 2 gamma L / H instead of the published gamma.
    """
    noiseless = theorem_1(
        constants,
        rounds=rounds,
        edge_rounds=edge_rounds,
        local_steps=local_steps,
        cell_sizes=cell_sizes,
        step_size=step_size,
        parameters=parameters,
        largest_mask=largest_mask,
        model_norm_sq=model_norm_sq,
        initial_gap=initial_gap,
    )
    errors = np.asarray(mse, dtype=np.float64)
    if errors.shape not in ((), (rounds,), (rounds, edge_rounds)):
        raise ValueError(
            f"mse has shape {list(errors.shape)}: give one number, [{rounds}], or "
            f"[{rounds}, {edge_rounds}]."
        )
    wrong = ~(np.isfinite(errors) & (errors >= 0))
    if wrong.any():
        raise ValueError(f"mse contains {errors[wrong].flat[0]}: give finite numbers >= 0.")
    factor = 2 * constants.smoothness / local_steps if corrected else 1.0
    air_error = step_size * factor * float(errors.mean())
    return Theorem2(
        **noiseless.terms, step_size=noiseless.step_size, limit=noiseless.limit, air_error=air_error
    )


def _cells(cell_sizes: Sequence[int]) -> tuple[int, float]:
    """N and N~, from validated cell sizes."""
    if len(cell_sizes) < 2:
        raise ValueError(
            f"cell_sizes is {list(cell_sizes)}: Theorem 1 needs at least 2 cells. For one cell use "
            "a bound for FedAvg."
        )
    for j, size in enumerate(cell_sizes):
        check_count(f"cell_sizes[{j}]", size)
    return len(cell_sizes), math.fsum(1 / size for size in cell_sizes)


def _mean_over_rounds(
    name: str, values: ArrayLike, rounds: int, min_value: float, max_value: float
) -> float:
    """The mean of ``values``, which are one number or one number per round."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape not in ((), (rounds,)):
        raise ValueError(
            f"{name} has shape {list(array.shape)}: give one number, or one for each of the "
            f"{rounds} rounds."
        )
    wrong = ~(np.isfinite(array) & (array >= min_value) & (array <= max_value))
    if wrong.any():
        raise ValueError(
            f"{name} contains {array[wrong].flat[0]}: give finite numbers in "
            f"[{min_value:.6g}, {max_value:.6g}]."
        )
    return float(array.mean())
