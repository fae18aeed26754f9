"""The gradient bounds of RA-Fed and RAM-Fed, term by term (KDD '23, proof supplement A.1 and A.2).

N clients train submodels (masked theta) for Q rounds of T local steps of size gamma. S_q is the set
of coordinates covered by at least one client in round q, Gamma* is the minimum number of clients at
a covered coordinate, and r = N / Gamma*. Both bounds assume masks that are independent of future
batches.

``ra_fed_bound`` and ``ram_fed_bound`` compute the constants that the derivation gives;
``printed=True`` gives the printed constants. The two differ, or the derivation has gaps, in the
following points.

Both:

- The last display has F(theta_1) instead of F(theta_1) - F(theta_{Q+1}); here it is the initial
  gap.
- Submodel noise does not vanish with gamma or Q, and is missing from both rates.
- The inequality for U_8 is solved with 4 w^2. Dividing by the factor
  1 - 8 gamma^2 L^2 T^2 >= 1/2 doubles every term, so this must be 8 w^2.

RA-Fed:

- U_6 continues with 8 w^2, but U_2 with 4 w^2: the final 96 L^3 gamma T r w^2 must be 192.
- Of the four limits on gamma, sqrt(Gamma* / N) / (16 T L) is always the smallest.
- The rate assumes delta^2 = O(1/(T Q)), which no data set satisfies for all Q; otherwise
  8 r delta^2 remains. O(sqrt(Gamma* / (T Q))) would be sufficient. The rate's C hides
  sqrt(Gamma* T) at Q^-1.5 and Q^-2.5; these terms are small if gamma is within its limit.
- U_7 has 1 / Gamma_q^i before the sum over i; the next line is correct.

RAM-Fed:

- T_2 replaces gradients by models without the factor L^2 of smoothness. It is missing from 48 tau,
  384 and 72 r tau (before G), 48 gamma^2 T (before sigma^2), the 3 in 128 (3 + 9 r L^2) (before
  delta^2) and the 6 in 8 w^2 (6 + 9 r L^2).
- T_5 has 4 w^2 throughout: 8 w^2 (6 + 9 r L^2) and 72 r L^2 w^2 must be twice as large.
- T_5 lacks the factor 1/T. T_2, with T_4 and T_5 inserted, lacks the term 2 sigma^2, which
  reappears in T_1. T_3 lacks the mean over clients. T_6 and T_7 bound the step of round q - l - 1
  with S and Gamma of round q, and T_7 and a line on K - S_q sum over S_q. None of this changes the
  result.
- gamma < 1/(L T) follows from gamma <= 1/(4 L T). The proof bounds T_1 + T_2 by 3 T_2 + 2 T_3;
  2 T_2 + 2 T_3 would be sufficient.
- The proof assumes one age tau_q for the memory of all clients at all coordinates. Ages may differ
  between clients, but the memory of a client whose last update omitted coordinates has several
  ages at once. Each age adds a term: see ``ages``.
- Memory must contain an update of every client at every coordinate. If a client never covers a
  coordinate, the bound can be violated, so it does not apply to static submodels. Rounds are
  counted from the first round with full memory.
- sigma^2 (6 + 12 r) does not vanish with gamma: "sufficiently small" must mean
  sigma^2 = O(sqrt(Gamma* / (T Q))). gamma^2 T^2 G is O(Gamma* T / Q): the rate's C grows with T,
  and Q must grow faster than T^3. The rate's 1/Q^2 assumes a delta that decreases with Q; the bound
  does not need this.

Two constants follow from masks and compression: coverage and noise.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from wirelessfl.base.guard import check_count, check_number

# A step size computed from the limit itself may exceed it by rounding.
_ROUNDING = 1 + 4 * sys.float_info.epsilon


@dataclass(frozen=True)
class SubmodelRun:
    """A run with the constants that both proofs assume; the loss F is the plain mean over clients.

    For RA-Fed, sigma^2, delta^2 and w^2 may be means over clients. If they hold for each client, as
    RAM-Fed requires, N may be the maximum number of participants per round for RA-Fed.

    Args:
        rounds: Q >= 1.
        local_steps: T >= 1.
        clients: N >= 1.
        coverage: Gamma*, from 1 to N: see ``minimum_coverage``.
        smoothness: L > 0 of every client's loss.
        gradient_variance: sigma^2 >= 0, variance of a client's mini-batch gradient.
        delta_sq: delta^2 >= 0, upper bound on ||grad F_n - grad F||^2 at all models.
        noise: w^2 >= 0: see ``submodel_noise``.
        model_norm_sq: mean over rounds of E||theta_q||^2, >= 0.
        initial_gap: F(theta_1) - inf F >= 0.
    """

    rounds: int
    local_steps: int
    clients: int
    coverage: int
    smoothness: float
    gradient_variance: float
    delta_sq: float
    noise: float
    model_norm_sq: float
    initial_gap: float

    def __post_init__(self) -> None:
        counts = ("rounds", "local_steps", "clients", "coverage")
        for name, value in asdict(self).items():
            if name in counts:
                check_count(name, value)
            else:
                check_number(name, value, positive=name == "smoothness")
        if self.coverage > self.clients:
            raise ValueError(
                f"coverage is {self.coverage} with clients={self.clients}: give a number from 1 to "
                f"{self.clients}."
            )

    @property
    def ratio(self) -> float:
        """The ratio r = N / Gamma*."""
        return self.clients / self.coverage

    @property
    def ra_fed_largest_step_size(self) -> float:
        """The largest gamma for which RA-Fed's bound holds, the smallest of four limits.

        They are 1/(4 L T), sqrt(1/r) / (16 T L), (1/(768 r))^(1/3) / (L T) and 1/(12 T L); the
        second is always the smallest.
        """
        whole = self.smoothness * self.local_steps
        covered = 1 / self.ratio
        shares = (1 / 4, math.sqrt(covered) / 16, math.cbrt(covered / 768), 1 / 12)
        return min(shares) / whole

    @property
    def ram_fed_largest_step_size(self) -> float:
        """The largest gamma for which RAM-Fed's bound holds, 1/(4 L T)."""
        return 1 / (4 * self.smoothness * self.local_steps)

    def rate_step_size(self, scale: float = 1.0) -> float:
        """The step size gamma = c sqrt(Gamma* / (T Q)) of both rates, with c = ``scale`` > 0.

        It is within RA-Fed's limit if Q >= 256 c^2 L^2 T N, and within RAM-Fed's limit if
        Q >= 16 c^2 L^2 T Gamma*.
        """
        check_number("scale", scale, positive=True)
        return scale * math.sqrt(self.coverage / (self.local_steps * self.rounds))


@dataclass(frozen=True)
class _Bound:
    """Base class of both bounds: a sum of terms, its limit and a condition on the step size."""

    initial_gap: float
    submodel_noise: float
    data_heterogeneity: float
    gradient_noise: float
    floor: float
    step_size: float
    largest_step_size: float

    @property
    def terms(self) -> dict[str, float]:
        """The terms by name."""
        others = ("floor", "step_size", "largest_step_size")
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in others}

    @property
    def total(self) -> float:
        """The bound: the sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def holds(self) -> bool:
        """Whether the step size is within its limit; otherwise the total is not a bound."""
        return self.step_size <= self.largest_step_size * _ROUNDING


@dataclass(frozen=True)
class RAFedBound(_Bound):
    """Terms that bound the mean over rounds of sum_{i in S_q} E|grad^i F(theta_q)|^2.

    The sum excludes coordinates that no client covers in the round.

    Args:
        initial_gap: 8 (F(theta_1) - inf F) / (T gamma Q).
        submodel_noise: (64 + 192 L gamma T) r L^2 w^2 mean E||theta_q||^2.
        data_heterogeneity: 8 r (1 + 3 x + 32 x^2 + 96 x^3) delta^2, where x = L gamma T.
        gradient_noise: 8 r gamma L (3/2 + 4 x + 12 x^2) sigma^2.
        floor: limit of the total as gamma goes to 0 and T gamma Q to infinity:
            64 r L^2 w^2 mean E||theta_q||^2 + 8 r delta^2.
        step_size: gamma.
        largest_step_size: the proof's limit on gamma.
    """


@dataclass(frozen=True)
class RAMFedBound(_Bound):
    """Terms that bound the mean over rounds of E||grad F(theta_q)||^2, over all coordinates.

    x = L gamma T, and D is the maximum number of ages in a client's memory.

    Args:
        initial_gap: 2 (F(theta_1) - inf F) / (T gamma Q).
        submodel_noise: ((96 + 144 r) mean E||theta_{q - tau_q}||^2 + 144 r D mean E||theta_q||^2)
            L^2 w^2.
        data_heterogeneity: D (384 + 1152 r) x^2 delta^2.
        gradient_noise: (6 D + 6 r (1 + D) + D (48 + 144 r) x^2 / T) sigma^2.
        floor: limit of the total as gamma goes to 0 and T gamma Q to infinity: submodel noise plus
            (6 D + 6 r (1 + D)) sigma^2.
        step_size: gamma.
        largest_step_size: the proof's limit on gamma.
        local_drift: D (384 + 1152 r) x^2 G.
        staleness: (12 + 18 r) (4 D + 3 r (1 + D)) x^2 G tau; 12 (2 + 3 r)^2 x^2 G tau for D = 1.
    """

    local_drift: float
    staleness: float


def ra_fed_bound(run: SubmodelRun, *, step_size: float, printed: bool = False) -> RAFedBound:
    """RA-Fed's bound, the end of A.1. A step size above its limit does not raise: check ``holds``.

    With gamma = c sqrt(Gamma* / (T Q)), see ``rate_step_size``, the bound is
    O(1 / sqrt(Gamma* T Q)) if w = 0 and delta^2 = O(1/(T Q)); otherwise it converges to ``floor``.

    Args:
        run: the run and its constants.
        step_size: gamma > 0.
        printed: use the printed 96 instead of 192 in the submodel noise.
    """
    check_number("step_size", step_size, positive=True)
    r, smooth = run.ratio, run.smoothness
    x = smooth * step_size * run.local_steps
    noise = r * smooth**2 * run.noise * run.model_norm_sq
    return RAFedBound(
        initial_gap=8 * run.initial_gap / (run.local_steps * step_size * run.rounds),
        submodel_noise=(64 + (96 if printed else 192) * x) * noise,
        data_heterogeneity=8 * r * (1 + 3 * x + 32 * x**2 + 96 * x**3) * run.delta_sq,
        gradient_noise=8
        * r
        * step_size
        * smooth
        * (1.5 + 4 * x + 12 * x**2)
        * run.gradient_variance,
        floor=64 * noise + 8 * r * run.delta_sq,
        step_size=step_size,
        largest_step_size=run.ra_fed_largest_step_size,
    )


def ram_fed_bound(
    run: SubmodelRun,
    *,
    step_size: float,
    gradient_bound: float,
    staleness_sq: float,
    stale_norm_sq: float,
    ages: int = 1,
    printed: bool = False,
) -> RAMFedBound:
    """RAM-Fed's bound, the end of A.2. A step size above its limit does not raise: check ``holds``.

    For D > 1 ages the derivation follows the same steps. At client n the coordinates of age s form
    a block, and each statement of the proof about the whole vector is applied to each block. Per
    client, E||u_n||^2 is then at most D T^2 G, and the server's squared step is at most
    gamma^2 T^2 G (4 D + 3 r (1 + D)).

    Args:
        run: the run and its constants; round 1 is the first with full memory.
        step_size: gamma > 0.
        gradient_bound: G >= 0, upper bound on E||grad F_n||^2 of mini-batch gradients at all
            models.
        staleness_sq: tau, mean over rounds of tau_q^2 >= 0, where memory was last written in round
            q - tau_q. With several ages, the mean over rounds and clients of the sum of squares of
            the distinct ages in the client's memory.
        stale_norm_sq: mean over rounds of E||theta_{q - tau_q}||^2. With several ages, the mean
            over rounds and clients of the sum over the same ages.
        ages: D >= 1, the maximum number of distinct ages in a client's memory in any round.
        printed: use the printed constants, for one age.
    """
    check_number("step_size", step_size, positive=True)
    check_number("gradient_bound", gradient_bound)
    check_number("staleness_sq", staleness_sq)
    check_number("stale_norm_sq", stale_norm_sq)
    check_count("ages", ages)
    if printed and ages > 1:
        raise ValueError(
            f"ages={ages} conflicts with printed=True, whose bound is for one age: choose "
            "printed=False."
        )
    r, square = run.ratio, run.smoothness**2
    t_2 = 1.0 if printed else square  # the factor L^2 of T_2
    t_5 = 4 if printed else 8  # factor of w^2 in T_5
    step_sq = (step_size * run.local_steps) ** 2
    stale = 12 * t_2 + 18 * r * square  # factor of T_4 in 3 T_2 + 2 T_3
    local = ages * (12 * t_2 + 36 * r * square)  # factor of T_5, and of U_8 in the current round
    sigma = 6 * ages + 6 * r * (1 + ages)  # factor of sigma^2 that does not vanish with gamma
    noise = t_5 * run.noise * (stale * stale_norm_sq + 18 * r * square * ages * run.model_norm_sq)
    return RAMFedBound(
        initial_gap=2 * run.initial_gap / (run.local_steps * step_size * run.rounds),
        submodel_noise=noise,
        data_heterogeneity=32 * local * step_sq * run.delta_sq,
        gradient_noise=(sigma + 4 * local * step_sq / run.local_steps) * run.gradient_variance,
        floor=noise + sigma * run.gradient_variance,
        step_size=step_size,
        largest_step_size=run.ram_fed_largest_step_size,
        local_drift=32 * local * step_sq * gradient_bound,
        staleness=stale * (4 * ages + 3 * r * (1 + ages)) * step_sq * gradient_bound * staleness_sq,
    )


def minimum_coverage(masks: ArrayLike) -> int:
    """Gamma*, the minimum number of clients at a covered coordinate, over all rounds.

    Args:
        masks: [rounds, clients, P] booleans; all False for a client that does not participate in a
            round.
    """
    values = np.asarray(masks)
    if values.ndim != 3 or values.dtype != np.bool_:
        raise ValueError(
            f"masks has dtype {values.dtype} and shape {list(values.shape)}: give booleans "
            "[rounds, clients, P]."
        )
    covering = values.sum(1)
    if not covering.any():
        raise ValueError("masks contains no True: give masks that cover at least one coordinate.")
    return int(covering[covering > 0].min())


def relative_error(changed: ArrayLike, model: ArrayLike) -> float:
    """The maximum of ||changed - model|| / ||model||.

    It is w_1 for a masked model relative to the (compressed) model, and w_2 for a compressed model
    relative to the model. A zero model that stays zero counts as unchanged.

    Args:
        changed: changed models [..., P].
        model: original models [..., P], broadcast with ``changed``.
    """
    new, old = np.broadcast_arrays(
        np.asarray(changed, dtype=np.float64), np.asarray(model, dtype=np.float64)
    )
    for name, values in (("changed", new), ("model", old)):
        if values.ndim == 0 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                f"{name} has shape {list(values.shape)}: give finite numbers [..., P] for at least "
                "one model."
            )
    apart, norms = np.linalg.norm(new - old, axis=-1), np.linalg.norm(old, axis=-1)
    if ((norms == 0) & (apart > 0)).any():
        raise ValueError(
            "model is 0 but changed is not: give nonzero models, whose relative error is finite."
        )
    return float((apart / np.where(norms > 0, norms, 1.0)).max())


def submodel_noise(mask_error: float, compression_error: float = 0.0) -> float:
    """The submodel noise w^2 = 2 w_1^2 w_2^2 + 2 w_1^2 + w_2^2.

    If a client starts from masked and compressed theta, ||start - theta||^2 is at most
    2 w^2 ||theta||^2.

    Args:
        mask_error: w_1 >= 0, relative error of masking the (compressed) model.
        compression_error: w_2 >= 0, relative error of compressing the model; 0 without compression.
    """
    check_number("mask_error", mask_error)
    check_number("compression_error", compression_error)
    masked, compressed = mask_error**2, compression_error**2
    return 2 * masked * compressed + 2 * masked + compressed
