"""The gradient bound for dynamic clients, as printed and corrected (Chang et al.: Theorem 1).

"Federated Learning with Dynamic Client Arrival and Departure: Convergence and Rapid Adaptation via
Initial Model Construction"; the proof is its Appendix E.

In round g each present client k takes e_k steps of size eta. Each step uses B_k of the client's D_k
samples, drawn anew without replacement. The server weights the client by D_k / D, D = sum_k D_k.
The theorem bounds the mean over rounds of E||grad F^g(w^g)||^2, where F^g is the loss of the
clients present in round g.

``gradient_norm_bound`` computes the printed bound by default. Statement and proof differ, or are
wrong, in the following points.

- The proof calls sigma~_k^2 the sample variance of the data, but (13), variance of the gradients
  <= 2 Theta^2 sigma~_k^2 / D_k, holds only for the sum of squares sum_d ||d - mean||^2, which
  ``data_deviation`` computes. With the sample variance, (b) would be too small by a factor that
  grows with D_k.
- (b): (14) drops the 1 / D_k of (13), and (15) has 1 / D_k instead of D_k / D. The correct factor
  is 1 / D. The printed term agrees with the end of the proof, and is D / D_k times too large.
- (c): Theta is squared in the proof except in its last two displays. The weight 1 / D is correct.
  In the statement the sum over rounds does not enclose the sum over their clients; in the proof it
  does.
- (16) has eta times (b1), but (24) uses half of that, which halves (c), (d) and the part of the
  gradient that Lambda covers. The slack in (21) compensates for it: always for (d) and Lambda, and
  for (c) if D_k > 2 and Theta is squared.
- (16) bounds (1 / e_k - 1)^2 by its value at e_min, but it is largest at e_max. In both cases the
  limit is positive only below 1 / (1 - sqrt(1/2)), that is for at most 3 steps (as printed, of the
  client with the fewest steps): with the 5 steps of the paper's experiments no step size meets the
  condition. The limit comes from splitting grad F - sum_k D_k / D sum_e grad F_k. It disappears if
  one divides by the steps first, as the corrected bound does.
- (17) bounds a quantity of one client k by a mean over clients, and so loses grad F - grad F_k. If
  all clients of a round take the same number of steps, the mean can be taken earlier, and the
  theorem holds. Otherwise it is false: with small step sizes the rounds converge to a point with
  sum_k D_k e_k grad F_k = 0. There the loss stops decreasing, and every term vanishes with eta.
- (23), (24) and (27) have e_max^2 (e_max - 1) where (22) and the statement have e_max (e_max - 1);
  (27) lacks zeta_1, and (30) has an extra Theta^2. The statement's second limit is (31).
- With e_max = 1 the second limit is infinite.

The corrected bound follows the same steps without these errors: see ``gradient_norm_bound``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from wirelessfl.base.guard import check_count, check_number


def data_deviation(samples: ArrayLike) -> float:
    """The deviation sigma~_k = sqrt(sum_d ||d - mean||^2), for which (13) holds.

    Args:
        samples: [D_k, ...], a client's data.
    """
    values = np.asarray(samples, dtype=np.float64)
    if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError(
            f"samples has shape {list(values.shape)}: give finite numbers [samples, ...] with at "
            "least one sample."
        )
    return float(np.linalg.norm(values - values.mean(0)))


@dataclass(frozen=True)
class LargestStepSize:
    """The theorem's two limits on the step size eta, which must be below both.

    Args:
        descent: (1/2 - (1 / e_min - 1)^2) / beta, (26), which eliminates the squared local
            gradients; negative for e_min > 3. Corrected: 1 / (2 beta e), where e is the mean number
            of steps weighted by data.
        drift: sqrt(Lambda) / (2 beta sqrt((zeta_1 + Lambda) e_max (e_max - 1))), (31), which limits
            the drift of local steps to a fraction Lambda of the gradient; infinite for e_max = 1.
    """

    descent: float
    drift: float

    @property
    def value(self) -> float:
        """The smaller limit; if it is not positive, no step size meets the condition."""
        return min(self.descent, self.drift)

    def admits(self, step_size: float) -> bool:
        """Whether ``step_size`` is below both limits."""
        return step_size < self.value


def largest_step_size(
    *,
    samples: ArrayLike,
    steps: ArrayLike,
    smoothness: float,
    zeta_1: float,
    drift_share: float,
    corrected: bool = False,
) -> LargestStepSize:
    """The limits on eta in one round; arguments as for :class:`RoundConstants`.

    In the corrected bound, with e = sum_k D_k e_k / D and V = sum_k D_k / D (1 - e_k / e)^2, the
    drift limit is sqrt(r) / (2 beta sqrt(2 zeta_1 e_max^2 (e_max - 1) / e + r e_max (e_max - 1))).
    Here r = max(Lambda - 2 V (zeta_1 - 1), 0) is what remains of Lambda after uneven steps.
    """
    counts, taken = _clients(samples=samples, steps=steps).values()
    check_number("smoothness", smoothness, positive=True)
    _check_dissimilarity(zeta_1, drift_share)
    max_steps = int(taken.max())
    spread = max_steps * (max_steps - 1)
    if not corrected:
        descent = (0.5 - (1 / int(taken.min()) - 1) ** 2) / smoothness
        room, left = (zeta_1 + drift_share) * spread, drift_share
    else:
        mean, uneven = _mean_steps(counts, taken)
        descent = 0.5 / (smoothness * mean)
        left = max(drift_share - 2 * uneven * (zeta_1 - 1), 0.0)
        room = 2 * zeta_1 * spread * max_steps / mean + left * spread
    drift = math.sqrt(left / room) / (2 * smoothness) if spread else math.inf
    return LargestStepSize(descent, drift)


@dataclass(frozen=True, eq=False)
class RoundConstants:
    """A round, with the constants of Assumptions 1-2 and Definition 1 for the present clients.

    Args:
        samples: D_k >= 1, [clients], samples per client.
        batch: B_k from 1 to D_k, [clients], samples per batch.
        steps: e_k >= 1, [clients], local steps.
        deviation: sigma~_k >= 0, [clients], see ``data_deviation``.
        step_size: eta > 0.
        smoothness: beta > 0 of every client's loss.
        variability: Theta >= 0, the largest Theta_k: ||grad f(w, d) - grad f(w, d')|| is at most
            Theta_k ||d - d'||.
        zeta_1: zeta_1 >= 1 in sum_k D_k / D ||grad F_k||^2 <= zeta_1 ||grad F||^2 + zeta_2 at all
            models.
        zeta_2: zeta_2 >= 0 in the same inequality.
        drift_share: Lambda, 0 < Lambda < 1, the fraction of the gradient that drift may reach. A
            larger Lambda allows larger steps and divides the bound by 1 - Lambda.
        decrease: E[F(w) - F(w+)] over the round, where F is the loss of the present clients.
    """

    samples: IntArray
    batch: IntArray
    steps: IntArray
    deviation: FloatArray
    step_size: float
    smoothness: float
    variability: float
    zeta_1: float
    zeta_2: float
    drift_share: float
    decrease: float

    def __post_init__(self) -> None:
        arrays = _clients(samples=self.samples, batch=self.batch, steps=self.steps)
        for name, values in arrays.items():
            object.__setattr__(self, name, values)
        for k, (batch, samples) in enumerate(zip(self.batch, self.samples, strict=True)):
            if batch > samples:
                raise ValueError(
                    f"batch[{k}] is {batch} with samples[{k}] = {samples}: give a batch size of at "
                    "most the number of samples."
                )
        deviation = np.asarray(self.deviation, dtype=np.float64)
        if deviation.shape != self.samples.shape:
            raise ValueError(
                f"deviation has shape {list(deviation.shape)}: give one number for each of "
                f"{len(self.samples)} clients."
            )
        for k, value in enumerate(deviation.tolist()):
            check_number(f"deviation[{k}]", value)
        object.__setattr__(self, "deviation", deviation)
        check_number("step_size", self.step_size, positive=True)
        check_number("smoothness", self.smoothness, positive=True)
        check_number("variability", self.variability)
        check_number("zeta_2", self.zeta_2)
        _check_dissimilarity(self.zeta_1, self.drift_share)
        if not math.isfinite(self.decrease):
            raise ValueError(f"decrease is {self.decrease}: give a finite number.")

    def largest_step_size(self, *, corrected: bool = False) -> LargestStepSize:
        """The theorem's limits on this round's step size."""
        return largest_step_size(
            samples=self.samples,
            steps=self.steps,
            smoothness=self.smoothness,
            zeta_1=self.zeta_1,
            drift_share=self.drift_share,
            corrected=corrected,
        )


@dataclass(frozen=True)
class GradientNormBound:
    """The terms of (2), each a mean over rounds; their sum bounds the mean of E||grad F^g(w^g)||^2.

    Args:
        decrease: (a), decrease of the present clients' loss; negative if the loss increases.
        sampling: (b), mini-batch noise.
        drift: (c), effect of mini-batch noise on later local steps.
        dissimilarity: (d), drift towards each client's optimum.
        uneven_steps: (e), bias towards clients with more steps; 0 in the printed bound.
        violated: indices from 0 of the rounds whose step size violates the condition.
    """

    decrease: float
    sampling: float
    drift: float
    dissimilarity: float
    uneven_steps: float
    violated: tuple[int, ...]

    @property
    def terms(self) -> dict[str, float]:
        """The terms by name."""
        return {name: value for name, value in vars(self).items() if name != "violated"}

    @property
    def total(self) -> float:
        """The bound: the sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def holds(self) -> bool:
        """Whether every step size meets the condition; otherwise the total is not a bound.

        For the printed bound the condition is not sufficient in rounds whose clients take different
        numbers of steps.
        """
        return not self.violated


def gradient_norm_bound(
    rounds: Sequence[RoundConstants], *, corrected: bool = False
) -> GradientNormBound:
    """The bound of Theorem 1, (2).

    A step size that violates the condition does not raise: check ``holds``. The printed terms are
    the means over rounds of

    - (a) 2 E[F(w) - F(w+)] / (eta (1 - Lambda)),
    - (b) 4 beta Theta^2 eta / (1 - Lambda) sum_k sigma~_k^2 e_k / B_k (D_k - B_k) / D_k^2,
    - (c) 4 beta^2 eta^2 / (D (1 - Lambda)) sum_k (e_k - 1) (1 - B_k / D_k) Theta sigma~_k^2 / B_k,
    - (d) 8 beta^2 eta^2 e_max (e_max - 1) zeta_2 / (1 - Lambda).

    They are a bound if all clients of a round take the same number of steps, at most 3, and Theta
    is squared in (c); see the module's docstring. The corrected terms are a bound for any numbers
    of steps. With the batch variance v_k = (1 - B_k / D_k) Theta^2 sigma~_k^2 / (B_k (D_k - 1)),
    e = sum_k D_k e_k / D and V = sum_k D_k / D (1 - e_k / e)^2, they are, all divided by
    1 - Lambda:

    - (a) 2 E[F(w) - F(w+)] / (eta e),
    - (b) 2 beta eta / e sum_k D_k / D e_k v_k,
    - (c) 3 beta^2 eta^2 / e sum_k D_k / D e_k (e_k - 1) v_k,
    - (d) 12 beta^2 eta^2 e_max^2 (e_max - 1) / e zeta_2,
    - (e) 2 V zeta_2, which does not vanish with eta.

    The derivation uses -grad F^T a = e/2 (||grad F - a/e||^2 - ||grad F||^2 - ||a/e||^2), where a
    is the mean of the clients' summed gradients, and grad F - a/e = sum_k D_k / D (1 - e_k / e)
    (grad F_k - grad F) + sum_k D_k / D (e_k grad F_k - a_k) / e. (22) bounds the drift; its factor
    1 / (1 - 4 beta^2 eta^2 e_max (e_max - 1)) is at most 3/2 under the condition.

    Args:
        rounds: the G >= 1 rounds.
        corrected: use the corrected terms and the corrected condition.
    """
    if not rounds:
        raise ValueError("rounds is empty: give at least one round.")
    terms = np.mean(
        [_corrected(constants) if corrected else _printed(constants) for constants in rounds],
        axis=0,
    )
    violated = tuple(
        number
        for number, constants in enumerate(rounds)
        if not constants.largest_step_size(corrected=corrected).admits(constants.step_size)
    )
    decrease, sampling, drift, dissimilarity, uneven_steps = terms.tolist()
    return GradientNormBound(decrease, sampling, drift, dissimilarity, uneven_steps, violated)


def _printed(constants: RoundConstants) -> FloatArray:
    """The printed terms (a) to (d) of one round, and 0 for (e)."""
    scale, max_steps = constants.smoothness * constants.step_size, int(constants.steps.max())
    left_out = 1 - constants.batch / constants.samples
    noise = left_out * constants.deviation**2 / constants.batch
    terms = [
        2 * constants.decrease / constants.step_size,
        4 * scale * constants.variability**2 * (constants.steps * noise / constants.samples).sum(),
        4
        * scale**2
        * constants.variability
        * ((constants.steps - 1) * noise).sum()
        / constants.samples.sum(),
        8 * scale**2 * max_steps * (max_steps - 1) * constants.zeta_2,
        0.0,
    ]
    return np.array(terms) / (1 - constants.drift_share)


def _corrected(constants: RoundConstants) -> FloatArray:
    """The corrected terms (a) to (e) of one round."""
    scale, max_steps = constants.smoothness * constants.step_size, int(constants.steps.max())
    left_out = 1 - constants.batch / constants.samples
    # With a single sample left_out is 0; the 1 avoids 0 / 0.
    freedom = np.maximum(constants.samples - 1, 1)
    noise = (
        left_out * (constants.variability * constants.deviation) ** 2 / (constants.batch * freedom)
    )
    weights = constants.samples / constants.samples.sum()
    mean, uneven = _mean_steps(constants.samples, constants.steps)
    terms = [
        2 * constants.decrease / (constants.step_size * mean),
        2 * scale / mean * (weights * constants.steps * noise).sum(),
        3 * scale**2 / mean * (weights * constants.steps * (constants.steps - 1) * noise).sum(),
        12 * scale**2 * max_steps**2 * (max_steps - 1) / mean * constants.zeta_2,
        2 * uneven * constants.zeta_2,
    ]
    return np.array(terms) / (1 - constants.drift_share)


def _mean_steps(samples: IntArray, steps: IntArray) -> tuple[float, float]:
    """The weighted mean number of steps e, and V."""
    weights = samples / samples.sum()
    mean = float(weights @ steps)
    return mean, float(weights @ (1 - steps / mean) ** 2)


def _clients(**numbers: Any) -> dict[str, IntArray]:
    """Validated arrays of positive integers, one per client."""
    arrays = {name: np.asarray(values) for name, values in numbers.items()}
    shape = arrays["samples"].shape
    for name, values in arrays.items():
        if values.ndim != 1 or len(values) == 0 or values.shape != shape:
            raise ValueError(
                f"{name} has shape {list(values.shape)}: give one number per client, for at least "
                "one client."
            )
        for k, value in enumerate(values.tolist()):
            check_count(f"{name}[{k}]", value)
    return {name: values.astype(np.int64) for name, values in arrays.items()}


def _check_dissimilarity(zeta_1: float, drift_share: float) -> None:
    if not (math.isfinite(zeta_1) and zeta_1 >= 1):
        raise ValueError(f"zeta_1 is {zeta_1}: give a finite number >= 1.")
    # This implies Lambda < zeta_1.
    if not 0 < drift_share < 1:
        raise ValueError(f"drift_share is {drift_share}: give a number above 0 and below 1.")
