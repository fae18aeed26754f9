"""The gradient bound for clients that come and go, and where it fails (Chang et al.: Theorem 1).

"Federated Learning with Dynamic Client Arrival and Departure: Convergence and Rapid Adaptation via
Initial Model Construction"; the proof is its Appendix E.

In round g each present client k takes e_k steps of size eta, each on B_k of its D_k samples drawn
afresh without replacement, and the server weighs it by D_k / D, D = sum_k D_k. Bounded is the mean
over rounds of E||grad F^g(w^g)||^2, where F^g is the loss of those who are present.

``gradient_norm_bound`` computes what is printed. Statement and proof differ, or fail, as follows.

- The proof calls sigma~_k^2 the sample variance of the data, but (13), variance of the gradients
  <= 2 Theta^2 sigma~_k^2 / D_k, holds only for the sum of squares sum_d ||d - mean||^2, which is
  what ``data_deviation`` gives. With the sample variance (b) would be too small by a factor that
  grows with D_k.
- (b): (14) drops the 1 / D_k of (13), and (15) has 1 / D_k for D_k / D. What follows is 1 / D, so
  that the printed term, which agrees with the end of the proof, is D / D_k times too large.
- (c): Theta is squared in the proof until its last two displays. The weight 1 / D is right. The
  statement ends the sum over rounds before the sum over their clients, the proof does not.
- (16) has eta times (b1), (24) counts half of that, which halves (c), (d) and the part of the
  gradient that Lambda covers. The slack in (21) makes up for it: for (d) and Lambda always, for (c)
  where D_k > 2 and Theta is squared.
- (16) bounds (1 / e_k - 1)^2 by its value at e_min; it is largest at e_max. Either way a limit
  is positive only below 1 / (1 - sqrt(1/2)), that is up to 3 steps (of the client with fewest, as
  printed): no step size meets the condition with the 5 steps of the paper's experiments. The limit
  comes from splitting grad F - sum_k D_k / D sum_e grad F_k, and goes if one divides by the steps
  first, as the corrected bound does.
- (17) bounds what depends on one client k by a mean over clients, and so loses grad F - grad F_k.
  If all clients of a round take as many steps, the mean can be taken before, and the theorem
  stands. Otherwise it is false: with small steps the rounds settle where
  sum_k D_k e_k grad F_k = 0; the loss falls no further, and every term goes to 0 with eta.
- (23), (24) and (27) have e_max^2 (e_max - 1) where (22) and the statement have e_max (e_max - 1);
  (27) lacks zeta_1, and (30) has a Theta^2 too many. The statement's second limit is (31).
- With e_max = 1 the second limit is infinite.

The corrected bound follows the same steps without these: see ``gradient_norm_bound``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import FloatArray, IntArray
from wirelessfl.numbers import check_count, check_number


def data_deviation(samples: ArrayLike) -> float:
    """sigma~_k = sqrt(sum_d ||d - mean||^2), the one for which (13) holds.

    Args:
        samples: [D_k, ...], a client's data.

    Raises:
        ValueError: there are none, or one is not finite.
    """
    given = np.asarray(samples, dtype=np.float64)
    if given.ndim == 0 or given.size == 0 or not np.isfinite(given).all():
        raise ValueError(
            f"samples has shape {list(given.shape)}: give finite numbers [samples, ...], at least "
            "one sample."
        )
    return float(np.linalg.norm(given - given.mean(0)))


@dataclass(frozen=True)
class LargestStepSize:
    """What the theorem asks of eta; it must lie below both.

    Args:
        descent: (1/2 - (1 / e_min - 1)^2) / beta, (26), for the squared local gradients to drop
            out; negative for e_min > 3. Corrected: 1 / (2 beta e), e being the mean of the steps
            weighted by data.
        drift: sqrt(Lambda) / (2 beta sqrt((zeta_1 + Lambda) e_max (e_max - 1))), (31), for the
            drift of local steps to take at most Lambda of the gradient; infinite for e_max = 1.
    """

    descent: float
    drift: float

    @property
    def value(self) -> float:
        """The smaller one; where it is not positive no step size will do."""
        return min(self.descent, self.drift)

    def admits(self, step_size: float) -> bool:
        """Whether ``step_size`` lies below both."""
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
    """The condition on eta in one round; arguments as for :class:`RoundConstants`.

    Corrected, with e = sum_k D_k e_k / D and V = sum_k D_k / D (1 - e_k / e)^2: the drift limit is
    sqrt(r) / (2 beta sqrt(2 zeta_1 e_max^2 (e_max - 1) / e + r e_max (e_max - 1))) with
    r = Lambda - 2 V (zeta_1 - 1), what uneven steps leave of Lambda; 0 if they leave nothing.

    Raises:
        ValueError: an argument is out of its range, or shapes differ.
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
    """A round, and the constants of Assumptions 1-2 and Definition 1 for those who are present.

    Args:
        samples: D_k >= 1, [clients].
        batch: B_k from 1 to D_k, [clients].
        steps: e_k >= 1, [clients].
        deviation: sigma~_k >= 0, [clients], see ``data_deviation``.
        step_size: eta > 0.
        smoothness: beta > 0, of every client's loss.
        variability: Theta >= 0, the largest Theta_k: ||grad f(w, d) - grad f(w, d')|| is at most
            Theta_k ||d - d'||.
        zeta_1: >= 1; sum_k D_k / D ||grad F_k||^2 <= zeta_1 ||grad F||^2 + zeta_2 at all models.
        zeta_2: >= 0.
        drift_share: Lambda, 0 < Lambda < 1: what part of the gradient drift may take. More admits
            larger steps and divides the bound by 1 - Lambda.
        decrease: E[F(w) - F(w+)] over the round, of the loss F of those who are present.

    Raises:
        ValueError: one is out of its range, or shapes differ.
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
        given = _clients(samples=self.samples, batch=self.batch, steps=self.steps)
        for name, values in given.items():
            object.__setattr__(self, name, values)
        for k, (batch, samples) in enumerate(zip(self.batch, self.samples, strict=True)):
            if batch > samples:
                raise ValueError(
                    f"batch[{k}] is {batch}, of {samples} samples: give at most those."
                )
        deviation = np.asarray(self.deviation, dtype=np.float64)
        if deviation.shape != self.samples.shape:
            raise ValueError(
                f"deviation has shape {list(deviation.shape)}: give one number for each of the "
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
        """What the theorem asks of this round's step size."""
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
        decrease: (a), what the loss of those present fell by; negative where rounds undo it.
        sampling: (b), noise of mini-batches.
        drift: (c), what that noise does to the local steps that follow.
        dissimilarity: (d), drift towards the optimum of each client.
        uneven_steps: what clients with more steps pull; 0 as printed.
        violated: rounds, from 0, whose step size breaks the condition.
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
        """Whether every step size meets the condition; otherwise the total bounds nothing.

        As printed that is not enough in rounds whose clients take different numbers of steps.
        """
        return not self.violated


def gradient_norm_bound(
    rounds: Sequence[RoundConstants], *, corrected: bool = False
) -> GradientNormBound:
    """The bound of Theorem 1, (2). A step size that breaks the condition is not refused: ``holds``.

    As printed, the means over rounds of

    - (a) 2 E[F(w) - F(w+)] / (eta (1 - Lambda)),
    - (b) 4 beta Theta^2 eta / (1 - Lambda) sum_k sigma~_k^2 e_k / B_k (D_k - B_k) / D_k^2,
    - (c) 4 beta^2 eta^2 / (D (1 - Lambda)) sum_k (e_k - 1) (1 - B_k / D_k) Theta sigma~_k^2 / B_k,
    - (d) 8 beta^2 eta^2 e_max (e_max - 1) zeta_2 / (1 - Lambda).

    That holds if all clients of a round take as many steps, up to 3, and Theta is squared in (c);
    see above. Corrected, for any steps, with v_k = (1 - B_k / D_k) Theta^2 sigma~_k^2 /
    (B_k (D_k - 1)) for a batch's variance, e = sum_k D_k e_k / D, V = sum_k D_k / D (1 - e_k / e)^2
    and all over 1 - Lambda:

    - (a) 2 E[F(w) - F(w+)] / (eta e),
    - (b) 2 beta eta / e sum_k D_k / D e_k v_k,
    - (c) 3 beta^2 eta^2 / e sum_k D_k / D e_k (e_k - 1) v_k,
    - (d) 12 beta^2 eta^2 e_max^2 (e_max - 1) / e zeta_2,
    - (e) 2 V zeta_2, which does not vanish with eta.

    It takes -grad F^T a = e/2 (||grad F - a/e||^2 - ||grad F||^2 - ||a/e||^2) for the mean a of the
    clients' summed gradients, and grad F - a/e = sum_k D_k / D (1 - e_k / e) (grad F_k - grad F) +
    sum_k D_k / D (e_k grad F_k - a_k) / e; drift is (22), whose 1 / (1 - 4 beta^2 eta^2 e_max
    (e_max - 1)) is at most 3/2 under the condition.

    Args:
        rounds: G >= 1 of them.
        corrected: take the corrected terms, and the corrected condition.

    Raises:
        ValueError: there is no round.
    """
    if not rounds:
        raise ValueError("rounds is empty: give at least one.")
    terms = np.mean([_corrected(one) if corrected else _printed(one) for one in rounds], axis=0)
    violated = tuple(
        number
        for number, one in enumerate(rounds)
        if not one.largest_step_size(corrected=corrected).admits(one.step_size)
    )
    decrease, sampling, drift, dissimilarity, uneven_steps = terms.tolist()
    return GradientNormBound(decrease, sampling, drift, dissimilarity, uneven_steps, violated)


def _printed(one: RoundConstants) -> FloatArray:
    """(a) to (d) of one round, and 0."""
    scale, max_steps = one.smoothness * one.step_size, int(one.steps.max())
    left_out = 1 - one.batch / one.samples
    noise = left_out * one.deviation**2 / one.batch
    terms = [
        2 * one.decrease / one.step_size,
        4 * scale * one.variability**2 * (one.steps * noise / one.samples).sum(),
        4 * scale**2 * one.variability * ((one.steps - 1) * noise).sum() / one.samples.sum(),
        8 * scale**2 * max_steps * (max_steps - 1) * one.zeta_2,
        0.0,
    ]
    return np.array(terms) / (1 - one.drift_share)


def _corrected(one: RoundConstants) -> FloatArray:
    """(a) to (e) of one round."""
    scale, max_steps = one.smoothness * one.step_size, int(one.steps.max())
    left_out = 1 - one.batch / one.samples
    # A single sample leaves nothing out; 1 keeps its 0 from becoming 0 / 0.
    freedom = np.maximum(one.samples - 1, 1)
    noise = left_out * (one.variability * one.deviation) ** 2 / (one.batch * freedom)
    weights = one.samples / one.samples.sum()
    mean, uneven = _mean_steps(one.samples, one.steps)
    terms = [
        2 * one.decrease / (one.step_size * mean),
        2 * scale / mean * (weights * one.steps * noise).sum(),
        3 * scale**2 / mean * (weights * one.steps * (one.steps - 1) * noise).sum(),
        12 * scale**2 * max_steps**2 * (max_steps - 1) / mean * one.zeta_2,
        2 * uneven * one.zeta_2,
    ]
    return np.array(terms) / (1 - one.drift_share)


def _mean_steps(samples: IntArray, steps: IntArray) -> tuple[float, float]:
    """e, and V."""
    weights = samples / samples.sum()
    mean = float(weights @ steps)
    return mean, float(weights @ (1 - steps / mean) ** 2)


def _clients(**given: Any) -> dict[str, IntArray]:
    """Arrays of positive integers, one for each client."""
    arrays = {name: np.asarray(values) for name, values in given.items()}
    shape = arrays["samples"].shape
    for name, values in arrays.items():
        if values.ndim != 1 or len(values) == 0 or values.shape != shape:
            raise ValueError(
                f"{name} has shape {list(values.shape)}: give one number for each client, and at "
                "least one client."
            )
        for k, value in enumerate(values.tolist()):
            check_count(f"{name}[{k}]", value)
    return {name: values.astype(np.int64) for name, values in arrays.items()}


def _check_dissimilarity(zeta_1: float, drift_share: float) -> None:
    if not (math.isfinite(zeta_1) and zeta_1 >= 1):
        raise ValueError(f"zeta_1 is {zeta_1}: give a finite number of at least 1.")
    # Lambda < zeta_1 follows.
    if not 0 < drift_share < 1:
        raise ValueError(f"drift_share is {drift_share}: give a number between 0 and 1.")
