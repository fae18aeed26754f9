"""The convergence bounds of FedAST (Askin et al., UAI 2024: Theorems 1, 2, Corollary 1.1).

R requests for a task's model are active, and each buffer of b updates is merged: x^{t+1} = x^t -
eta_s eta_c tau mean(B^t). Below, s = tau eta_s eta_c, and gamma is the largest staleness.

``fedast_theorem_1`` and ``fedast_theorem_2`` compute what the derivation of appendices E and F
gives; ``printed=True`` gives the printed constants. The two differ in the following points.

Both:

- The virtual sequence (29), (58) starts at x^0, but R requests of version 0 precede the first
  merge, so that |A^0| is R + b - 1, not b. Here it starts after the R - 1 requests that no buffer
  replaces; their step is a term (``first_requests``), and enters the margin with weight
  gamma + 1, since version 0 occurs more than b gamma times in (31).
- Lemma 4 and Lemma 6 separate the noise of local steps from the gradients, though a gradient
  depends on the noise of earlier steps. With h = E[Delta], as Table 4 defines it, the variance of
  an update is sigma_l^2 / tau only for one step or convex losses. In general it is up to
  ``noise_growth`` times as large, as -L ||x||^2 / 2 shows.
- Lemma 2's proof does the same from (54) on: without the zero cross term, ||a + b||^2 <=
  2 ||a||^2 + 2 ||b||^2 gives D = 2 L^2 eta_c^2 tau (tau - 1), and L^2 eta_c^2 tau / (1 - D) in
  front of sigma_l^2, both twice as large. On the same loss (54) exceeds the printed bound.
- 1/11 is a lower bound on the left-hand side of (53), (59) under the step-size conditions. Here
  the bound divides by the left-hand side itself (``margin``), and holds for all step sizes at which
  it is positive; this includes those of the theorems if R requests can return within gamma merges.

Theorem 2:

- 0 < |A^t| and 1 / rho_b <= |A^t| / b^{r(t)} fail when requests are reduced: an update is then
  replaced by no request, and |A^t| may be 0. ``sent`` takes the actual numbers per version.
- The statement lacks the factor rho_b of its first term, and b and R are undefined in its
  step-size conditions. Here they are b_min for eta_s, b_max and R_max for eta_c.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, dataclass, fields

from wirelessfl.base.guard import check_count, check_number

# A step size computed from the limit itself may exceed it by rounding.
_ROUNDING = 1 + 4 * sys.float_info.epsilon


@dataclass(frozen=True)
class BufferedRun:
    """A task's run with the constants of Assumptions 1 to 4.

    Args:
        rounds: T >= 1, updates of the server's model.
        buffer: b >= 1, updates per server round; for Theorem 2, b_min.
        requests: R >= 1, active requests; for Theorem 2, R_max.
        local_steps: tau >= 1.
        smoothness: L > 0 of every client's loss (Assumption 1).
        gradient_variance: sigma_l^2 >= 0, variance of a client's stochastic gradient
            (Assumption 2).
        heterogeneity: sigma_g^2 >= 0, the largest ||grad f_i - grad f||^2 (Assumption 3).
        initial_gap: delta = f(x^0) - min f, >= 0.
        largest_staleness: gamma >= 0, maximum number of server updates between a request and its
            return (Assumption 4).
    """

    rounds: int
    buffer: int
    requests: int
    local_steps: int
    smoothness: float
    gradient_variance: float
    heterogeneity: float
    initial_gap: float
    largest_staleness: int

    def __post_init__(self) -> None:
        for name in ("rounds", "buffer", "requests", "local_steps"):
            check_count(name, getattr(self, name))
        check_count("largest_staleness", self.largest_staleness, min_value=0)
        check_number("smoothness", self.smoothness, positive=True)
        for name in ("gradient_variance", "heterogeneity", "initial_gap"):
            check_number(name, getattr(self, name))


@dataclass(frozen=True)
class Corollary1:
    """The terms of (5) for one task, without the constants of O(.): they show the scaling only.

    Args:
        initial_gap: delta L / sqrt(b tau T).
        client_noise: (1 / sqrt(T b tau) + 1 / (tau T)) (sigma_l^2 + tau sigma_g^2).
        asynchrony: R / (T b) (sigma_l^2 + tau R sigma_g^2).
        min_rounds: tau max(36 b, 16 R gamma), the smallest T for which the corollary holds.
        rounds: T.
    """

    initial_gap: float
    client_noise: float
    asynchrony: float
    min_rounds: int
    rounds: int

    @property
    def terms(self) -> dict[str, float]:
        """The three terms, by name."""
        kept = ("initial_gap", "client_noise", "asynchrony")
        return {name: value for name, value in asdict(self).items() if name in kept}

    @property
    def holds(self) -> bool:
        """Whether the number of rounds is sufficient for the corollary."""
        return self.rounds >= self.min_rounds


def fedast_corollary_1(run: BufferedRun) -> Corollary1:
    """Corollary 1.1, (5), without the constants of the paper's O(.).

    It bounds the mean over rounds of E||grad f||^2 for one task under the static option, with
    client step size 1 / (tau L sqrt(T)) and server step size sqrt(tau b). The staleness affects
    only the condition on T.
    """
    tau, b, t, r = run.local_steps, run.buffer, run.rounds, run.requests
    slow = 1 / math.sqrt(t * b * tau)
    noise = run.gradient_variance + tau * run.heterogeneity
    stale = run.gradient_variance + tau * r * run.heterogeneity
    return Corollary1(
        initial_gap=run.initial_gap * run.smoothness * slow,
        client_noise=(slow + 1 / (tau * t)) * noise,
        asynchrony=r / (t * b) * stale,
        min_rounds=tau * max(36 * b, 16 * r * run.largest_staleness),
        rounds=t,
    )


@dataclass(frozen=True)
class FedASTStepSizes:
    """The largest step sizes of Theorem 1; for Theorem 2 see ``fedast_theorem_2``.

    Args:
        server: sqrt(tau b), limit of eta_s.
        buffer: 1 / (6 L tau sqrt(tau b)), limit of eta_c.
        staleness: 1 / (4 L tau sqrt(tau R gamma)), limit of eta_c; infinite without staleness.
    """

    server: float
    buffer: float
    staleness: float

    @property
    def client(self) -> float:
        """The smaller limit of eta_c."""
        return min(self.buffer, self.staleness)

    def admits(self, server_lr: float, client_lr: float) -> bool:
        """Whether both step sizes are within the limits, up to four machine epsilons."""
        return server_lr <= self.server * _ROUNDING and client_lr <= self.client * _ROUNDING


@dataclass(frozen=True)
class FedASTBound:
    """The terms of a bound on the mean over rounds of E||grad f(x^t)||^2.

    Args:
        initial_gap: delta / (T s margin).
        gradient_noise: noise of the clients' gradients, as in synchronous FedAvg.
        heterogeneity: dissimilarity of the clients, as in synchronous FedAvg.
        stale_noise: noise of the clients' gradients that requests in progress hold back.
        stale_heterogeneity: dissimilarity of clients with requests in progress.
        first_requests: noise and dissimilarity of the R - 1 requests beyond those of a buffer that
            start from x^0; 0 in the printed bound.
        margin: left-hand side of (53), for Theorem 2 of (59) / rho_b; not positive if the step
            sizes are too large.
        step_sizes: limits of the theorem's statement.
        holds: whether the total is a bound: whether the margin is positive, or for the printed
            bound, whether the step sizes are within the limits.
    """

    initial_gap: float
    gradient_noise: float
    heterogeneity: float
    stale_noise: float
    stale_heterogeneity: float
    first_requests: float
    margin: float
    step_sizes: FedASTStepSizes
    holds: bool

    @property
    def terms(self) -> dict[str, float]:
        """The six terms, by name."""
        names = [field.name for field in fields(self)][:6]
        return {name: getattr(self, name) for name in names}

    @property
    def total(self) -> float:
        """The bound: the sum of the terms; infinite if the margin is not positive."""
        return math.fsum(self.terms.values())


def fedast_theorem_1(
    run: BufferedRun, *, server_lr: float, client_lr: float, printed: bool = False
) -> FedASTBound:
    """The bound of Theorem 1 (static option) with the constants of appendix E.

    Step sizes that are too large do not raise: check ``holds``.

    Args:
        run: the run and its constants.
        server_lr: eta_s > 0.
        client_lr: eta_c > 0.
        printed: compute the printed bound: see the header of this module for the differences.

    Raises:
        ValueError: a step size is not positive, or the staleness is below (R - 1) / b, which no run
            can reach: R + b - 1 updates start from x^0, and b are merged per round.

    Example:
        >>> run = BufferedRun(rounds=1000, buffer=3, requests=6, local_steps=2, smoothness=1.0,
        ...     gradient_variance=0.1, heterogeneity=0.1, initial_gap=1.0, largest_staleness=4)
        >>> bound = fedast_theorem_1(run, server_lr=2.0, client_lr=0.01)
        >>> bound.holds, round(bound.total, 2)
        (True, 0.09)
    """
    least = -(-(run.requests - 1) // run.buffer)
    if run.largest_staleness < least:
        raise ValueError(
            f"largest_staleness is {run.largest_staleness}, but requests={run.requests} in buffers "
            f"of {run.buffer} are at least {least} merges old when the last one returns: give "
            f"{least} or more."
        )
    if printed:
        return _printed(run, server_lr, client_lr, run.buffer, dynamic=False)
    return _derived(run, server_lr, client_lr, run.buffer, (run.buffer, run.buffer))


def fedast_theorem_2(
    run: BufferedRun,
    *,
    server_lr: float,
    client_lr: float,
    largest_buffer: int,
    sent: tuple[int, int] | None = None,
    printed: bool = False,
) -> FedASTBound:
    """The bound of Theorem 2 (dynamic option) with the constants of appendix F.

    The buffer changes between b_min and b_max, rho_b = b_max / b_min; all requests of a version
    must return to buffers of one size (Assumption 5). The limits of the step sizes are
    rho_b^-1.5 sqrt(tau b_min), rho_b^-1.5 / (24 L tau sqrt(tau b_max)) and
    rho_b^-1.5 / (16 L tau sqrt(tau R_max gamma)).

    Args:
        run: the run and its constants, with b_min and R_max.
        server_lr, client_lr, printed: as for ``fedast_theorem_1``.
        largest_buffer: b_max >= b_min.
        sent: smallest and largest |A^t| after the start, number of requests sent per version; the
            paper's b_min and 2 b_max by default. A version that no client gets has no bound.
    """
    check_count("largest_buffer", largest_buffer, run.buffer)
    fewest, most = sent if sent is not None else (run.buffer, 2 * largest_buffer)
    check_count("sent[0]", fewest, 0)
    check_count("sent[1]", most, max(fewest, 1))
    if printed:
        return _printed(run, server_lr, client_lr, largest_buffer, dynamic=True)
    return _derived(run, server_lr, client_lr, largest_buffer, (fewest, most), dynamic=True)


def noise_growth(local_steps: int, step: float) -> float:
    """Largest variance of an update in units of sigma_l^2 / tau, with ``step`` = L eta_c > 0.

    It is (1/tau) sum_{j < tau} (1 + L eta_c)^(2 j): each local step moves two models apart by at
    most a factor of 1 + L eta_c. A loss -L ||x||^2 / 2 attains it.
    """
    return math.fsum((1 + step) ** (2 * j) for j in range(local_steps)) / local_steps


def _step_sizes(run: BufferedRun, largest_buffer: int, dynamic: bool) -> FedASTStepSizes:
    """The limits of Theorem 1, or those of Theorem 2."""
    tau, gamma, skew = run.local_steps, run.largest_staleness, (largest_buffer / run.buffer) ** -1.5
    of_buffer, of_staleness = (24, 16) if dynamic else (6, 4)
    scale = skew / (run.smoothness * tau)
    stale = of_staleness * math.sqrt(tau * run.requests * gamma)
    return FedASTStepSizes(
        server=skew * math.sqrt(tau * run.buffer),
        buffer=scale / (of_buffer * math.sqrt(tau * largest_buffer)),
        staleness=scale / stale if gamma else math.inf,
    )


def _printed(
    run: BufferedRun, server_lr: float, client_lr: float, largest_buffer: int, *, dynamic: bool
) -> FedASTBound:
    """The last displays of appendices E and F, with their constant 11."""
    check_number("server_lr", server_lr, positive=True)
    check_number("client_lr", client_lr, positive=True)
    tau, b, r, skew = run.local_steps, run.buffer, run.requests, largest_buffer / run.buffer
    step = tau * server_lr * client_lr
    drift = (run.smoothness * client_lr) ** 2 * tau
    d = drift * (tau - 1)
    left = 1 - d if d < 1 else math.nan
    ls = run.smoothness * step
    stale = ls**2 * r / b**2
    if dynamic:  # coefficients of L s, of its products, of drift and of Lemma 7
        near, far, one, lemma = 2 * skew**3, 6 * skew**3, skew**2, skew**2
        versions = 6 * skew**3
    else:
        near, far, one, lemma = 0.5, 1.5, 0.5, 0.5
        versions = 1.5
    half = drift / (2 * left)
    margin = (
        0.5
        - far * ls / left
        - one * d / left
        - versions * stale * b * run.largest_staleness * (1 + d) / left
    )
    limits = _step_sizes(run, largest_buffer, dynamic)
    noise, spread = 11 * run.gradient_variance, 11 * run.heterogeneity
    return FedASTBound(
        initial_gap=11 * skew * run.initial_gap / (run.rounds * step),
        gradient_noise=(near * ls / (tau * b) + (far * ls + one) * half) * noise,
        heterogeneity=(far * ls / b + (far * ls + one) * d / left) * spread,
        stale_noise=lemma * stale * (1 / tau + 3 * r * half) * noise,
        stale_heterogeneity=lemma * 3 * stale * r * (1 + d) / left * spread,
        first_requests=0.0,
        margin=margin / skew,
        step_sizes=limits,
        holds=limits.admits(server_lr, client_lr),
    )


def _derived(
    run: BufferedRun,
    server_lr: float,
    client_lr: float,
    largest_buffer: int,
    sent: tuple[int, int],
    *,
    dynamic: bool = False,
) -> FedASTBound:
    """The bound that the derivation gives; Theorem 1 is the case of constant b and |A^t| = b."""
    check_number("server_lr", server_lr, positive=True)
    check_number("client_lr", client_lr, positive=True)
    tau, b, r, gamma = run.local_steps, run.buffer, run.requests, run.largest_staleness
    step, pace = tau * server_lr * client_lr, run.smoothness * client_lr
    ls = run.smoothness * step
    d = 2 * pace**2 * tau * (tau - 1)  # Lemma 2
    limits = _step_sizes(run, largest_buffer, dynamic)
    if d >= 1:
        lost = dict.fromkeys([field.name for field in fields(FedASTBound)][:6], math.inf)
        return FedASTBound(**lost, margin=-math.inf, step_sizes=limits, holds=False)
    drift, spread, amplified = pace**2 * tau / (1 - d), d / (1 - d), (1 + d) / (1 - d)
    growth = noise_growth(tau, pace) / tau
    low, high = sent[0] / largest_buffer, sent[1] / b  # |A^t| / b^{r(t)}
    stale = ls**2 * r / b**2  # Lemmas 6 and 7

    def descent(share: float) -> float:
        """Weight of ||grad f(x^t)||^2 in round t, before that of stale models."""
        return share / 2 * (1 - spread) - 1.5 * ls * share**2 / (1 - d)

    aged = high / 2 * 3 * stale * amplified  # weight of each occurrence of a version in C^t
    margin = min(descent(low), descent(high)) - aged * sent[1] * gamma
    first = (r - 1) / b  # the R - 1 requests of version 0 that precede the first buffer
    start = (1 - spread) / (2 * largest_buffer) - 1.5 * ls * first / b / (1 - d)
    margin = min(margin, margin + (r - 1) * (start - aged * (gamma + 1)))
    factor = 1 / margin if margin > 0 else math.inf
    noise, apart = run.gradient_variance, run.heterogeneity
    weight = high / 2 + 1.5 * ls * high**2
    startup = (first / 2 + 1.5 * ls * first**2) * (drift * noise + spread * apart)
    startup += ls * first / (2 * b) * (growth * noise + 3 * apart)
    terms = {
        "initial_gap": run.initial_gap / (run.rounds * step),
        "gradient_noise": (weight * drift + ls * high / (2 * b) * growth) * noise,
        "heterogeneity": (weight * spread + 1.5 * ls * high / b) * apart,
        "stale_noise": high / 2 * stale * (growth + 3 * r * drift) * noise,
        "stale_heterogeneity": high / 2 * 3 * stale * r * amplified * apart,
        "first_requests": startup / run.rounds,
    }
    return FedASTBound(
        **{name: factor * term if term else 0.0 for name, term in terms.items()},
        margin=margin,
        step_sizes=limits,
        holds=margin > 0,
    )
