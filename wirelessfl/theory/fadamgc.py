"""The theorems of FAdamGC and FA-NT (Chen et al.: Theorems 5.2, 5.4, C.2, C.3, Table 1).

n clients train for T rounds of K local steps; eta = eta_g eta_l is the product of the step sizes of
server and clients. c^k = 1 - beta_1^k, and c is its mean over the K steps. ``fadamgc_rate`` and
``fadamgc_step_sizes`` compute what the paper prints, ``fadamgc_bound`` a bound that holds. The
printed rates do not follow from the proofs:

Theorem 5.4 (appendix A):

- The limit (1 - beta_1) beta_1 / (12 (G + eps) T L) on eta makes the first term of (48) at least
  48 (G + eps)^2 L F / ((1 - beta_1)^2 beta_1^2 K), which does not vanish with T; (54) has L F / T.
  With steps of order 1 / T the model moves only a bounded distance in T rounds: (7) is false.
- (17) replaces m by its mean although vhat depends on the same noise. (20) drops the corrections
  because their sum is zero, but each is divided by its client's own vhat. (34) needs vhat to
  increase from round to round; v does not, and the factor 1/eps^2 must be 1/eps^4.
- c^k <= beta_1 in (a) of appendix D is false. c^k >= 1 - beta_1 holds, so that beta_1 is a spurious
  factor: with beta_1 = 0, which the text admits, the printed step size is 0.
- Lemma A.1 assumes 1 - beta_1 < eps^2 / (16 K L^2), which the theorem does not state, and which
  fails for the paper's own beta_1 = 0.9 and eps = 1e-8. (74) has G^6 / eps^2 where (72) gives
  G^4 / eps^4.
- The corrected gradient g + y - y_i is bounded by 3 G, not G, so G + eps must be 3 G + eps.
- From (37) to (39), 4 becomes 2. From (45) to (49), 6 must be 48, and a term G^2 appears. From (46)
  to (50), a factor 4 is lost. (51) loses the 1/n of (47), without which there is no term in
  1 / sqrt(n K T). The noise in (37) lacks 1/eps^2 and, for S < n clients per round, the variance of
  the selection.
- The limit on eta_l has T in the theorem, sqrt(T) in the proof. (53) lacks sqrt(F) in the third
  limit on eta.

Theorem 5.2 (appendix B), for beta_2 = eps = 0:

- beta_1^K = (K n - 2 T) / (2 K n) is negative for T > K n / 2, so that the theorem does not cover
  many rounds. It makes 1 - 2 beta_1^K = 2 T / (K n), which turns sigma / n into K sigma / (2 T).
- (87) needs c >= 1 - beta_1^K, but c is the mean of increasing c^k: the opposite holds. The factor
  must be 2 c - 1, which is negative with the theorem's beta_1 for K >= 2 and T much below K n.
- (104) has 1 - 2 beta_1 in place of 1 - 2 beta_1^K: negative for beta_1 > 1/2, which the theorem's
  beta_1 exceeds for K >= 3 and T <= K n / 4. It has sigma where (5) has sigma^2.
- (93) has sigma / n for the noise of one client; the mean is outside of the norm, so it is sigma.
  This does not vanish: with skewed noise and exact normalisation the limit is biased.
- ||m / sqrt(vhat)|| <= 1 holds in each coordinate: for d parameters the bound is sqrt(d). (90) has
  the present |g + y - y_i| for sqrt(vhat), which is its maximum over the steps.
- (94) lacks L, 2 in (101) must be 16, and eta <= F / T leaves 1 / K of (102)'s first term.

Theorems C.2 and C.3 (appendices D and E), for FA-NT:

- FA-NT averages m / (sqrt(vhat) + eps), with a vhat of each client's own gradient. Its fixed points
  have sum_i P_i grad f_i = 0, with P_i from vhat_i; the mean of the gradients is not zero there.
  Neither rate can hold for clients with different gradients.
- C.2's third limit on eta differs from (166), and its limit on eta_l has 40 where the proof has 12.
  It is of order T^-1.5 because (159) lacks the 1 / T of the mean, and (164) does without the
  contraction of Lemma D.2, which makes the sum of Gamma of order T: T^-0.5 would be sufficient.
- (116) lacks the sigma^2 of Table 1's row in its first term.
- C.3 sets eta = sqrt(n K / T), its proof the step size of 5.2. (210) has a factor K before
  sigma / n + B that (204) does not give; with beta_1 of the theorem it would be K^2 (sigma + n B)
  / (2 T) instead of (116)'s K (sigma + n B) / T.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from wirelessfl.base.guard import check_count, check_number

# A step size computed from the limit itself may exceed it by rounding.
_ROUNDING = 1 + 4 * sys.float_info.epsilon


@dataclass(frozen=True)
class AdaptiveRun:
    """A run of an adaptive method, with the constants of Assumptions 5.1, 5.3 and C.1.

    Args:
        rounds: T >= 1.
        local_steps: K >= 1.
        clients: n >= 1, all of which train and track in every round.
        smoothness: L > 0 of every client's loss.
        gradient_variance: sigma^2 >= 0, the largest E||g - grad f_i||^2 of a client's gradient g.
        gradient_bound: G > 0, the largest norm of a client's mini-batch gradient.
        initial_gap: F = E f(x^1) - inf f >= 0.
        eps: epsilon > 0, added to the root of vhat.
        beta1: beta_1, decay of the first moment, 0 <= beta_1 < 1.
        heterogeneity: B >= 0, the largest ||grad f_i - grad f|| (Assumption C.1).
    """

    rounds: int
    local_steps: int
    clients: int
    smoothness: float
    gradient_variance: float
    gradient_bound: float
    initial_gap: float
    eps: float = 1e-8
    beta1: float = 0.9
    heterogeneity: float = 0.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name in ("rounds", "local_steps", "clients"):
                check_count(name, value)
            else:
                check_number(name, value, positive=name in ("smoothness", "gradient_bound", "eps"))
        if self.beta1 >= 1:
            raise ValueError(f"beta1 is {self.beta1}: give a number from 0 to below 1.")

    @property
    def mean_weight(self) -> float:
        """The mean c of 1 - beta_1^k over the local steps k = 1 ... K."""
        return 1 - math.fsum(self.beta1**k for k in range(1, self.local_steps + 1)) / (
            self.local_steps
        )


@dataclass(frozen=True)
class AdaptiveStepSizes:
    """The printed limits on the step sizes of Theorem 5.4 or C.2.

    Args:
        descent: first limit on eta_g eta_l, (1 - beta_1) beta_1 / (8 (G + eps) K L).
        rounds: second limit on eta_g eta_l, (1 - beta_1) beta_1 / (12 (G + eps) T L).
        noise: third limit on eta_g eta_l: 5.4: (G + eps) sqrt(F n) /
            ((1 - beta_1) beta_1 sigma sqrt(T K L)), infinite for sigma = 0;
            C.2: (1 - beta_1) beta_1 sqrt(n) / (30 (G + eps) sqrt(T) L).
        local: limit on eta_l: 5.4: (1 - beta_1) beta_1 eps / (40 (G + eps) T L);
            C.2: the same with T^(3/2), and at most (1 - beta_1) beta_1 eps / (30 (G + eps) K L).
    """

    descent: float
    rounds: float
    noise: float
    local: float

    @property
    def product(self) -> float:
        """The value of eta_g eta_l that the theorem prescribes, the smallest of its limits."""
        return min(self.descent, self.rounds, self.noise)


def fadamgc_step_sizes(
    run: AdaptiveRun, method: Literal["fadamgc", "fa-nt"] = "fadamgc"
) -> AdaptiveStepSizes:
    """The printed step sizes of Theorem 5.4 (``"fadamgc"``) or Theorem C.2 (``"fa-nt"``).

    Args:
        run: the run and its constants; beta_1 > 0, with which the printed limits are positive.
        method: whose theorem.
    """
    _check_method(method, ("fadamgc", "fa-nt"))
    decay = (1 - run.beta1) * run.beta1
    scale = (run.gradient_bound + run.eps) * run.smoothness
    t, k, n = run.rounds, run.local_steps, run.clients
    if method == "fadamgc":
        deviation = decay * math.sqrt(run.gradient_variance * t * k * run.smoothness)
        noise = (run.gradient_bound + run.eps) * math.sqrt(run.initial_gap * n)
        third = noise / deviation if deviation > 0 else math.inf
        local = decay * run.eps / (40 * scale * t)
    else:
        third = decay * math.sqrt(n / t) / (30 * scale)
        local = decay * run.eps / scale * min(1 / (40 * t**1.5), 1 / (30 * k))
    return AdaptiveStepSizes(decay / (8 * scale * k), decay / (12 * scale * t), third, local)


def fadamgc_momentum(*, rounds: int, local_steps: int, clients: int) -> float:
    """The printed beta_1 = ((K n - 2 T) / (2 K n))^(1/K) of Theorems 5.2 and C.3.

    Args:
        rounds: T >= 1, at most K n / 2; above, no real beta_1 >= 0 exists and an error is raised.
        local_steps: K >= 1.
        clients: n >= 1.
    """
    check_count("rounds", rounds)
    check_count("local_steps", local_steps)
    check_count("clients", clients)
    steps = local_steps * clients
    if 2 * rounds > steps:
        raise ValueError(
            f"rounds is {rounds}, more than local_steps * clients / 2 = {steps / 2:g}: beta_1 of "
            "Theorems 5.2 and C.3 is the root of a negative number. Give fewer rounds."
        )
    return float(((steps - 2 * rounds) / (2 * steps)) ** (1 / local_steps))


Method = Literal[
    "fedadam", "fedams", "fa-nt", "fadamgc", "fa-nt without memory", "fadamgc without memory"
]


def fadamgc_rate(run: AdaptiveRun, method: Method) -> dict[str, float]:
    """The rate of a method in Table 1, without the constants of O(.).

    The rows of FAdamGC are (5) and (7), those of FA-NT (115) and (116), here with the sigma^2 of
    the table. The rates "without memory" (beta_2 = eps = 0) are of the mean of E||grad f||, the
    others of the mean of E||grad f||^2. Table 1 has six rows: LocalAdam, FedAvg-M and SCAFFOLD-M
    have none.

    Args:
        run: the run and its constants.
        method: the row; "without memory" is Theorem 5.2 or C.3.

    Returns:
        The terms in the order of the table, by the quantity that they depend on.
    """
    _check_method(method, get_args(Method))
    t, k, n = run.rounds, run.local_steps, run.clients
    smooth, bound, eps = run.smoothness, run.gradient_bound, run.eps
    variance, gap, slow = run.gradient_variance, run.initial_gap, math.sqrt(n * k * t)
    if method == "fedadam":
        return {
            "initial_gap": gap / slow,
            "noise": smooth * variance / (bound**2 * slow),
            "moments": variance / (bound * k * t),
            "late_noise": smooth * variance * math.sqrt(n / k) / (bound**2 * t**1.5),
        }
    if method == "fedams":
        return {
            "initial_gap": gap / slow,
            "gradients": smooth * math.sqrt(n * k / eps) * bound**2 / t,
            "noise": smooth**2 * k * variance / t,
            "moments": bound * variance / (eps * math.sqrt(n * k) * t),
        }
    terms = {
        "noise": math.sqrt(smooth * gap * variance) / slow,
        "initial_gap": smooth * gap / t,
    }
    if method.endswith("without memory"):
        apart = n * run.heterogeneity if method.startswith("fa-nt") else 0.0
        return {
            **terms,
            "drift": smooth * k / t,
            "deviation": k * (math.sqrt(variance) + apart) / t,
        }
    power = k**2 if method == "fa-nt" else k
    spread = variance + (1 + eps**2) * bound**2
    return {
        **terms,
        "moments": k * bound**6 / (eps**2 * t),
        "deviation": power * spread / (eps**2 * t),
    }


@dataclass(frozen=True)
class FAdamGCBound:
    """Terms that bound the mean over rounds of E||grad f(x^t)||^2 for FAdamGC.

    Below, W = 3 G + eps, U = min(3 G / eps, sqrt(d / (1 - beta_2))) bounds a local step divided by
    eta_l, D = L K U (3 eta_l + 2 eta) the drift, and
    s = sigma (1 + 1 / sqrt(K) + 1 / sqrt(n K)) the noise of a corrected gradient.

    Args:
        initial_gap: 4 W F / (c eta K T).
        drift: 3 W D^2 / (c eps).
        noise: 3 W (2 D s + s^2) / (c eps); s^2 does not vanish with the step sizes.
        first_round: 12 W G^2 / (c eps T): with y = y_i = 0, the error of round 1 is at most 2 G.
        product: eta = eta_g eta_l.
        largest_product: eps / (4 K L), the largest eta for which this is a bound.
    """

    initial_gap: float
    drift: float
    noise: float
    first_round: float
    product: float
    largest_product: float

    @property
    def terms(self) -> dict[str, float]:
        """The terms by name."""
        others = ("product", "largest_product")
        return {name: value for name, value in asdict(self).items() if name not in others}

    @property
    def total(self) -> float:
        """The bound: the sum of the terms."""
        return math.fsum(self.terms.values())

    @property
    def holds(self) -> bool:
        """Whether eta is within its limit; otherwise the total is not a bound."""
        return self.product <= self.largest_product * _ROUNDING


def fadamgc_bound(
    run: AdaptiveRun, *, lr: float, server_lr: float, beta2: float, parameters: int
) -> FAdamGCBound:
    """A bound that replaces Theorem 5.4, for FAdamGC with all clients in every round.

    A product of step sizes above its limit does not raise: check ``holds``. For eps > 0, any
    beta_2, and vhat reset or carried. The derivation: the corrected gradient is grad f(x^t) + e,
    where e is drift and noise, and P_k = 1 / (sqrt(vhat_k) + eps) is between 1 / W and 1 / eps.
    With u_k = P_k sum_l c^(k,l) (grad f + e_l),

        <grad f, u_k> >= c^k / 2 ||grad f||_P^2 - sum_l c^(k,l) ||e_l||_P^2 / 2,

    which neither needs the mean of m nor equal vhat. With eta K L / eps <= 1/4 half of it bounds
    the squared step, so that a round decreases f by at least
    eta K c / (4 W) ||grad f||^2 - 3 eta K / (4 eps) max E||e||^2.

    Unlike the printed rate, it has a floor of noise: m and vhat are of the same gradients.

    Args:
        run: the run and its constants. B is not used.
        lr: eta_l > 0.
        server_lr: eta_g > 0.
        beta2: beta_2, 0 <= beta_2 < 1.
        parameters: d >= 1.
    """
    check_number("lr", lr, positive=True)
    check_number("server_lr", server_lr, positive=True)
    check_number("beta2", beta2)
    if beta2 >= 1:
        raise ValueError(f"beta2 is {beta2}: give a number from 0 to below 1.")
    check_count("parameters", parameters)
    t, k, product = run.rounds, run.local_steps, lr * server_lr
    width = 3 * run.gradient_bound + run.eps
    reach = min(3 * run.gradient_bound / run.eps, math.sqrt(parameters / (1 - beta2)))
    drift = run.smoothness * k * reach * (3 * lr + 2 * product)
    spread = 1 + 1 / math.sqrt(k) + 1 / math.sqrt(run.clients * k)
    noise = math.sqrt(run.gradient_variance) * spread
    scale = 3 * width / (run.mean_weight * run.eps)
    return FAdamGCBound(
        initial_gap=4 * width * run.initial_gap / (run.mean_weight * product * k * t),
        drift=scale * drift**2,
        noise=scale * (2 * drift * noise + noise**2),
        first_round=scale * (2 * run.gradient_bound) ** 2 / t,
        product=product,
        largest_product=run.eps / (4 * k * run.smoothness),
    )


def _check_method(method: str, choices: tuple[str, ...]) -> None:
    if method not in choices:
        raise ValueError(f"method is {method!r}: choose one of {', '.join(choices)}.")
