"""The bounds of RA-Fed and RAM-Fed hold for reference loops of both algorithms on quadratics.

F_n(x) = (x - a_n)^T A (x - a_n) / 2, so L is the largest eigenvalue of A, and
||grad F_n - grad F|| = ||A (a_n - mean a)|| at all models. Every array of models is [runs, d].
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.theory import (
    SubmodelRun,
    minimum_coverage,
    ra_fed_bound,
    ram_fed_bound,
    relative_error,
    submodel_noise,
)

RUNS = 100


@dataclass
class Quadratics:
    """``hessian`` A [d, d], ``optima`` a [N, d], and ``variance`` sigma^2 of a gradient's noise."""

    hessian: np.ndarray
    optima: np.ndarray
    variance: float = 0.0

    @classmethod
    def drawn(cls, random, clients, d, variance):
        factor = random.standard_normal((d, d))
        optima = 3 + 2 * random.standard_normal((clients, d))
        return cls(factor @ factor.T / d + 0.1 * np.eye(d), optima, variance)

    @property
    def smoothness(self):
        return np.linalg.eigvalsh(self.hessian)[-1]

    @property
    def deltas_sq(self):
        """||grad F_n - grad F||^2 [N]."""
        return (((self.optima - self.optima.mean(0)) @ self.hessian) ** 2).sum(1)

    def slope(self, x):
        """grad F [runs, d]."""
        return (x - self.optima.mean(0)) @ self.hessian

    def gap(self, x):
        """F - inf F [runs]."""
        return (self.slope(x) * (x - self.optima.mean(0))).sum(1) / 2

    def train(self, n, x, mask, steps, gamma, random):
        """Train client n from x; return Delta [runs, d] and the largest E||gradient||^2."""
        local, largest = x.copy(), 0.0
        for _ in range(steps):
            gradient = (local - self.optima[n]) @ self.hessian
            largest = max(largest, (gradient**2).sum(1).max() + self.variance)
            if self.variance:
                deviation = math.sqrt(self.variance / x.shape[1])
                gradient = gradient + deviation * random.standard_normal(x.shape)
            local = local - gamma * mask * gradient
        return (x - local) / gamma, largest


@dataclass
class Measured:
    """Quantities measured in the runs, from which the bounds' constants are computed."""

    left: np.ndarray  # [runs], mean over rounds of the squared gradient norm that is bounded
    norms: np.ndarray  # [rounds, runs], ||theta_q||^2
    gap: np.ndarray  # [runs], at theta_1
    noise: float  # w^2
    gradient: float = 0.0  # G
    stale: np.ndarray | float = 0.0  # [runs], mean of the sum of ||theta_{q - s}||^2 over ages s
    staleness: float = 0.0  # tau
    ages: int = 1

    def constants(self, problem, masks, steps, one):
        """Constants of run ``one``, with the gap and norms of that run."""
        return SubmodelRun(
            rounds=len(self.norms),
            local_steps=steps,
            clients=masks.shape[1],
            coverage=minimum_coverage(masks),
            smoothness=problem.smoothness,
            gradient_variance=problem.variance,
            delta_sq=problem.deltas_sq.max(),
            noise=self.noise,
            model_norm_sq=self.norms[:, one].mean(),
            initial_gap=self.gap[one],
        )


def ra_fed(problem, masks, steps, gamma, start, random, grid=0.0):
    """Run RA-Fed with ``masks`` [rounds, clients, d]; sent models are rounded to ``grid``."""
    x, left, norms, errors = start, [], [], np.zeros(2)
    gap = problem.gap(start)
    for now in masks:
        covering = now.sum(0)
        left.append((problem.slope(x) ** 2 * (covering > 0)).sum(1))
        norms.append((x**2).sum(1))
        sent = grid * np.round(x / grid) if grid else x
        errors[1] = max(errors[1], relative_error(sent, x))
        total = np.zeros_like(x)
        for n, mask in enumerate(now):
            if not mask.any():
                continue
            errors[0] = max(errors[0], relative_error(sent * mask, sent))
            total += problem.train(n, sent * mask, mask, steps, gamma, random)[0] * mask
        x = x - gamma * total / np.maximum(covering, 1)
    return Measured(np.mean(left, axis=0), np.array(norms), gap, submodel_noise(*errors))


def ram_fed(problem, masks, steps, gamma, start, random, filling):
    """Run RAM-Fed and measure from round ``filling`` on.

    By then every memory entry must have been written.
    """
    x, clients = start, masks.shape[1]
    memory = np.zeros((clients, *x.shape))
    written = np.full(masks.shape[1:], -1)
    left, norms, stale, squares = [], [], [], []
    error, largest, most = 0.0, 0.0, 1
    for q, now in enumerate(masks):
        norms.append((x**2).sum(1))
        if q == filling:
            gap = problem.gap(x)
        if q >= filling:
            left.append((problem.slope(x) ** 2).sum(1))
            rounds = [np.unique(own) for own in written]  # the distinct ages of each client
            most = max(most, *map(len, rounds))
            squares.append(sum(((q - own) ** 2).sum() for own in rounds) / clients)
            stale.append(sum(norms[then] for own in rounds for then in own) / clients)
        covering = now.sum(0)
        step, fresh = memory.mean(0), np.zeros_like(x)
        for n, mask in enumerate(now):
            full = (x - problem.optima[n]) @ problem.hessian
            largest = max(largest, (full**2).sum(1).max() + problem.variance)
            if not mask.any():
                continue
            error = max(error, relative_error(x * mask, x))
            delta, size = problem.train(n, x * mask, mask, steps, gamma, random)
            largest = max(largest, size)
            fresh += (delta - memory[n]) * mask
            memory[n] = np.where(mask, delta, memory[n])
        written[now] = q
        x = x - gamma * (step + fresh / np.maximum(covering, 1))
    return Measured(
        np.mean(left, axis=0),
        np.array(norms[filling:]),
        gap,
        submodel_noise(error),
        largest,
        np.mean(stale, axis=0),
        np.mean(squares),
        most,
    )


def ram_fed_bound_of(seen, problem, masks, steps, gamma, one):
    return ram_fed_bound(
        seen.constants(problem, masks, steps, one),
        step_size=gamma,
        gradient_bound=seen.gradient,
        staleness_sq=seen.staleness,
        stale_norm_sq=seen.stale[one],
        ages=seen.ages,
    )


def check(bounds, left):
    """Assert that the runs' mean is more than three standard errors below the bound."""
    assert all(bound.holds for bound in bounds)
    room = np.array([bound.total for bound in bounds]) - left
    assert 3 * room.std(ddof=1) / math.sqrt(len(room)) < room.mean()


def rolling_then_random(random, filling, rounds, clients, d):
    """Rolling masks until all clients have covered all coordinates, then random masks."""
    masks = random.random((filling + rounds, clients, d)) < 0.6
    q, n, i = np.ogrid[:filling, :clients, :d]
    masks[:filling] = (i - q - n) % d < 2
    return masks


def whole_clients(random, filling, rounds, clients, d):
    """Full models, so that a client's coordinates have one age.

    After ``filling`` rounds, each client takes part with probability 1/2.
    """
    takes_part = random.random((filling + rounds, clients, 1)) < 0.5
    takes_part[:filling] = True
    return np.broadcast_to(takes_part, (filling + rounds, clients, d)).copy()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("make_masks", "grid"),
    [(whole_clients, 0.0), (rolling_then_random, 0.0), (rolling_then_random, 0.25)],
)
@pytest.mark.parametrize("seed", range(6))
def test_ra_fed_stays_below_its_bound(seed, make_masks, grid):
    """The step size is the largest allowed, and random masks sometimes omit coordinates.

    The measured mean is 0.6 to 10 % of the bound with full models. With random masks it is 0.003 to
    0.15 %, and submodel noise makes up 98 % of the bound.
    """
    random = Stream(seed, ("ra-fed",)).generator()
    clients, steps, d = 3 + seed % 3, 1 + seed % 4, 5
    problem = Quadratics.drawn(random, clients, d, variance=4.0)
    masks = make_masks(random, 0, 60, clients, d)
    assert (masks.sum(1) == 0).any()
    start = np.tile(3 * random.standard_normal(d), (RUNS, 1))
    limit = replace(BLANK, clients=clients, coverage=minimum_coverage(masks), local_steps=steps)
    gamma = replace(limit, smoothness=problem.smoothness).ra_fed_largest_step_size
    seen = ra_fed(problem, masks, steps, gamma, start, random, grid)
    assert (seen.noise == 0) == (make_masks is whole_clients)
    bounds = []
    for one in range(RUNS):
        run = seen.constants(problem, masks, steps, one)
        run = replace(run, delta_sq=problem.deltas_sq.mean())  # the mean is sufficient
        bounds.append(ra_fed_bound(run, step_size=gamma))
    check(bounds, seen.left)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("make_masks", [whole_clients, rolling_then_random])
@pytest.mark.parametrize("seed", range(6))
def test_ram_fed_stays_below_its_bound(seed, make_masks):
    """The step size is a tenth of the largest allowed.

    The measured mean is 0.6 to 1.7 % of the bound with full models, and the terms with G make up
    most of the bound. With masks it is 0.001 to 0.01 %, and submodel noise makes up at least 90 %.
    """
    random = Stream(seed, ("ram-fed",)).generator()
    clients, steps, d, rounds = 3 + seed % 3, 1 + seed % 4, 5, 60
    problem = Quadratics.drawn(random, clients, d, variance=4.0)
    masks = make_masks(random, d, rounds, clients, d)
    start = np.tile(3 * random.standard_normal(d), (RUNS, 1))
    limit = replace(BLANK, local_steps=steps, smoothness=problem.smoothness)
    gamma = limit.ram_fed_largest_step_size / 10
    seen = ram_fed(problem, masks, steps, gamma, start, random, d)
    assert (seen.ages == 1) == (make_masks is whole_clients)
    assert (seen.noise == 0) == (make_masks is whole_clients)
    bounds = [ram_fed_bound_of(seen, problem, masks[d:], steps, gamma, one) for one in range(RUNS)]
    check(bounds, seen.left)


BLANK = SubmodelRun(
    rounds=1,
    local_steps=1,
    clients=2,
    coverage=1,
    smoothness=1.0,
    gradient_variance=0.0,
    delta_sq=0.0,
    noise=0.0,
    model_norm_sq=0.0,
    initial_gap=0.0,
)
HALVES = np.eye(2, dtype=bool)


def far_from_the_optimum():
    """With one step from 0, far from the optimum, only the initial gap bounds the gradient."""
    return "initial_gap", Quadratics(np.eye(2), np.ones((2, 2))), HALVES, 1, np.zeros(2)


def halves_that_belong_together():
    """Both clients have the same loss.

    Training starts where each half of the model is optimal if the other half is zero, which is
    not the joint optimum.
    """
    hessian = np.array([[1.0, 0.5], [0.5, 1.0]])
    optima = np.tile(np.linalg.solve(hessian, np.ones(2)), (2, 1))
    return "submodel_noise", Quadratics(hessian, optima), HALVES, 300, np.ones(2)


def clients_that_disagree():
    """At 0, a client's gradient is zero on its own half of the model, but not on the other half."""
    optima = np.array([[0.0, -2.0], [-2.0, 0.0]])
    return "data_heterogeneity", Quadratics(np.eye(2), optima), HALVES, 300, np.zeros(2)


def noise_at_the_optimum():
    """Training of full models starts at the optimum of every client."""
    problem = Quadratics(np.eye(2), np.zeros((2, 2)), variance=1.0)
    return "gradient_noise", problem, np.ones((2, 2), dtype=bool), 300, np.zeros(2)


CASES = [
    far_from_the_optimum,
    halves_that_belong_together,
    clients_that_disagree,
    noise_at_the_optimum,
]


@pytest.mark.parametrize("case", CASES)
def test_ra_feds_bound_fails_without_the_term_of_the_case(case):
    """Each case has two clients with fixed masks, and names the term that it needs."""
    term, problem, masks, rounds, start = case()
    random = Stream(0, ("terms",)).generator()
    masks = np.tile(masks, (rounds, 1, 1))
    gamma = 0.01 if term == "initial_gap" else 0.02
    seen = ra_fed(problem, masks, 1, gamma, start[None], random)
    result = ra_fed_bound(seen.constants(problem, masks, 1, 0), step_size=gamma)
    assert result.holds
    assert result.total - result.terms[term] < seen.left[0] <= result.total


@pytest.mark.parametrize(
    ("case", "rounds", "gamma"),
    [(far_from_the_optimum, 2, 1e-3), (halves_that_belong_together, 2000, 2e-3)],
)
def test_ram_feds_bound_fails_without_the_term_of_the_case(case, rounds, gamma):
    """The two clients swap halves in each round, so that their memory is filled."""
    term, problem, _, _, start = case()
    random = Stream(0, ("terms",)).generator()
    masks = np.stack([HALVES[::-1], HALVES] * (rounds // 2 + 1))
    seen = ram_fed(problem, masks, 1, gamma, start[None], random, filling=2)
    assert (seen.ages, seen.staleness) == (2, 1 + 4)
    result = ram_fed_bound_of(seen, problem, masks, 1, gamma, 0)
    assert result.holds
    assert result.total - result.terms[term] < seen.left[0] <= result.total


def test_memory_that_is_never_filled_breaks_ram_feds_bound():
    """With fixed masks, a client's memory never contains the coordinates of the other half.

    The models stay at 0, where grad F is (1, 1) and submodel noise is 0. All other terms of the
    bound vanish with the step size and the number of rounds. RA-Fed's bound contains delta instead.
    """
    _, problem, masks, rounds, start = clients_that_disagree()
    random = Stream(0, ("static",)).generator()
    masks, gamma = np.tile(masks, (rounds, 1, 1)), 1e-4
    seen = ram_fed(problem, masks, 1, gamma, start[None], random, filling=1)
    assert seen.left[0] == pytest.approx(2)
    assert seen.gradient == pytest.approx(4)
    run = replace(seen.constants(problem, masks, 1, 0), rounds=10**7)  # more of the same rounds
    # All clients write their coordinates in every round: tau_q = 1.
    memory = {"gradient_bound": 4.0, "staleness_sq": 1.0, "stale_norm_sq": 0.0}
    for printed in (False, True):
        result = ram_fed_bound(run, step_size=gamma, printed=printed, **memory)
        assert result.holds
        assert result.total < 0.01 * seen.left[0]
    assert ra_fed_bound(run, step_size=gamma).total > seen.left[0]
