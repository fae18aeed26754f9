"""The convergence bound of HIST over the air (Fang, Han, Brinton: Theorem 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.theory.hist import Constants, Theorem1, theorem_1


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

    The published last term lacks a factor that (39) has: each edge round's noise enters the descent
    with gamma^2 L / 2, which gives 2 gamma L / H instead of gamma. The published term is therefore
    a bound on the noise only if L <= H / 2.

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
