"""Theorem 1: hand calculations, scaling of its terms, and HIST simulated on quadratics."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.theory import (
    Constants,
    Theorem1,
    corollary_1_step_size,
    mask_size_cap,
    smallest_rounds,
    step_size_limit,
    theorem_1,
)

CONSTANTS = Constants(smoothness=3, gradient_variance=11, delta_1_sq=13, delta_2_sq=17)
RUN = {
    "rounds": 7,
    "edge_rounds": 5,
    "local_steps": 2,
    "cell_sizes": (2, 3, 6),
    "step_size": 0.25,
    "parameters": 1000,
    "largest_mask": 410,
    "model_norm_sq": 19,
    "initial_gap": 23,
}


def bound(constants=CONSTANTS, **changes):
    return theorem_1(constants, **(RUN | changes))


def test_every_term_by_hand():
    """Terms equal exact fractions, with N = 3 and N~ = 1/2 + 1/3 + 1/6 = 1."""
    by_hand = {
        "initial_gap": Fraction(4 * 23 * 4, 7 * 5 * 2),
        "gradient_noise": Fraction(100 * 1 * 3 * 11, 4),
        "cell_dissimilarity": Fraction(1356 * 3 * 13, 4),
        "client_dissimilarity": Fraction(60 * 3 * 17, 4),
        "partition": Fraction(6 * 3 * 410 * 13, 1000),
        "model_norm": Fraction(48 * 2 * 9 * 19),
    }
    result = bound()
    assert result.terms == pytest.approx({name: float(term) for name, term in by_hand.items()})
    assert result.total == pytest.approx(float(sum(by_hand.values())))
    assert all(getattr(result, name) == term for name, term in result.terms.items())


POWERS = {
    # order: initial_gap, gradient_noise, cell_, client_dissimilarity, partition, model_norm
    "step_size": (-1, 1, 1, 1, 0, 0),
    "rounds": (-1, 0, 0, 0, 0, 0),
    "edge_rounds": (-1, 0, 0, 0, 0, 0),
    "local_steps": (-1, 0, 0, 0, 0, 0),
    "initial_gap": (1, 0, 0, 0, 0, 0),
    "largest_mask": (0, 0, 0, 0, 1, 0),
    "model_norm_sq": (0, 0, 0, 0, 0, 1),
    "smoothness": (0, 1, 1, 1, 0, 2),
    "gradient_variance": (0, 1, 0, 0, 0, 0),
    "delta_1_sq": (0, 0, 1, 0, 1, 0),
    "delta_2_sq": (0, 0, 0, 1, 0, 0),
}


@pytest.mark.parametrize("name", POWERS)
def test_doubling_an_argument_scales_each_term_by_its_power(name):
    if name in RUN:
        doubled = bound(**{name: 2 * RUN[name]})
    else:
        doubled = bound(replace(CONSTANTS, **{name: 2 * getattr(CONSTANTS, name)}))
    ratios = [doubled.terms[term] / value for term, value in bound().terms.items()]
    assert ratios == pytest.approx([2.0**power for power in POWERS[name]])


def test_only_the_mean_of_values_per_round_matters():
    varying = bound(largest_mask=[350, 400, 500, 350, 400, 500, 370], model_norm_sq=np.arange(7.0))
    assert varying == bound(largest_mask=410, model_norm_sq=3)


def test_a_subclass_may_add_a_term():
    @dataclass(frozen=True)
    class WithNoise(Theorem1):
        air: float

    base = bound()
    more = WithNoise(*vars(base).values(), air=5.0)
    assert more.terms == base.terms | {"air": 5.0}
    assert more.total == pytest.approx(base.total + 5)


def test_the_four_limits_by_hand():
    """The example has N = 4, N~ = 1/2 + 1/2 + 1/4 + 1/4 = 3/2, E = 5, H = 3 and L = 7."""
    limit = step_size_limit(edge_rounds=5, local_steps=3, cell_sizes=(2, 2, 4, 4), smoothness=7)
    assert limit.descent == pytest.approx(1 / (45 * 2 * 5 * 3 * 7))
    assert limit.noise == pytest.approx(1.5 / (4 * 3 * 7))
    assert limit.client_drift == pytest.approx(1 / (4 * 9 * 7))
    assert limit.cell_drift == pytest.approx(1 / (4 * 5 * 25 * 9 * 7))
    assert limit.value == limit.cell_drift


@pytest.mark.parametrize(
    ("edge_rounds", "local_steps", "cell_sizes", "binding"),
    [(1, 1, (1, 1), "descent"), (1, 2, (999, 999), "noise"), (5, 20, (15, 15), "cell_drift")],
)
def test_a_step_size_above_the_limit_is_reported_but_accepted(
    edge_rounds, local_steps, cell_sizes, binding
):
    run = {"edge_rounds": edge_rounds, "local_steps": local_steps, "cell_sizes": cell_sizes}
    limit = step_size_limit(**run, smoothness=CONSTANTS.smoothness)
    assert limit.binding == binding
    at = bound(**run, step_size=limit.value, largest_mask=600)
    above = bound(**run, step_size=1.001 * limit.value, largest_mask=600)
    assert at.holds
    assert "meets (13)" in at.condition
    assert not above.holds
    assert "violates (13)" in above.condition
    assert above.condition.endswith(f"({binding})")


sizes = st.lists(st.integers(1, 40), min_size=2, max_size=12)


@given(st.integers(1, 8), st.integers(1, 60), sizes, st.floats(0.001, 100))
def test_smallest_rounds_is_minimal(e, h, cell_sizes, smoothness):
    run = {"edge_rounds": e, "local_steps": h, "cell_sizes": cell_sizes}
    limit = step_size_limit(**run, smoothness=smoothness).value
    needed = smallest_rounds(**run, smoothness=smoothness)
    slack = 1 + 1e-14
    assert corollary_1_step_size(rounds=needed, **run) <= limit * slack
    if needed > 1:
        assert corollary_1_step_size(rounds=needed - 1, **run) > limit / slack


def test_smallest_rounds_where_equality_holds():
    """(2 T)^(-1/2) = 1 / (45 sqrt 2) at T = 2025; rounding must not give 2026."""
    run = {"edge_rounds": 1, "local_steps": 1, "cell_sizes": (1, 1)}
    assert smallest_rounds(**run, smoothness=1) == 2025
    step_size = corollary_1_step_size(rounds=2025, **run)
    assert step_size == pytest.approx(1 / math.sqrt(4050))
    constants = Constants(1, 1, 1, 1)
    assert bound(constants, **run, rounds=2025, step_size=step_size, largest_mask=500).holds


def test_a_mask_at_the_cap_has_partition_term_eps_th():
    cap = mask_size_cap(parameters=1000, cells=3, eps_th=111, delta_1_sq=13)
    assert bound(largest_mask=cap).partition == pytest.approx(111)
    # The published setting, eps_th = 9 delta_1^2, gives a cap of 1.5 d / N.
    assert mask_size_cap(parameters=800, cells=4, eps_th=18, delta_1_sq=2) == pytest.approx(300)
    assert mask_size_cap(parameters=800, cells=4, eps_th=18, delta_1_sq=0) == math.inf


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell_sizes": (5,)}, r"cell_sizes is \[5\]: Theorem 1 needs at least 2 cells"),
        ({"cell_sizes": (5, 0)}, r"cell_sizes\[1\] is 0"),
        ({"rounds": 0}, "rounds is 0"),
        ({"edge_rounds": 1.5}, "edge_rounds is 1.5"),
        ({"local_steps": -2}, "local_steps is -2"),
        ({"parameters": 0}, "parameters is 0"),
        ({"step_size": 0.0}, "step_size is 0.0"),
        ({"initial_gap": -1.0}, "initial_gap is -1.0"),
        ({"largest_mask": 300}, "largest_mask contains 300.0: .*333.333, 1000"),
        ({"largest_mask": 1001}, "largest_mask contains 1001.0"),
        ({"largest_mask": [400] * 6}, r"largest_mask has shape \[6\]: .* 7 rounds"),
        ({"model_norm_sq": math.nan}, "model_norm_sq contains nan"),
        ({"constants": Constants(0, 1, 1, 1)}, "smoothness is 0"),
    ],
)
def test_invalid_arguments_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        bound(**changes)


def test_invalid_constants_and_caps_are_rejected():
    with pytest.raises(ValueError, match="delta_1_sq is -1"):
        Constants(1, 1, -1, 1)
    with pytest.raises(ValueError, match="smoothness is inf"):
        Constants(math.inf, 1, 1, 1)
    with pytest.raises(ValueError, match="cells is 1"):
        mask_size_cap(parameters=10, cells=1, eps_th=1, delta_1_sq=1)
    with pytest.raises(ValueError, match="eps_th is 0"):
        mask_size_cap(parameters=10, cells=2, eps_th=0, delta_1_sq=1)


# HIST on client losses F_i(x) = x^T A x / 2 - b_i^T x, whose constants are the same at all x.


@dataclass(frozen=True)
class Quadratics:
    """Client losses x^T A x / 2 - b_i^T x.

    ``hessian`` is A [d, d], ``slopes`` contains b_i as one array [n_j, d] per cell, and
    ``variance`` is sigma^2 of the gradients.
    """

    hessian: np.ndarray
    slopes: list
    variance: float = 0.0

    @property
    def cell_slopes(self):
        return np.array([b.mean(0) for b in self.slopes])

    def constants(self):
        means = self.cell_slopes
        return Constants(
            smoothness=np.linalg.eigvalsh(self.hessian)[-1],
            gradient_variance=self.variance,
            delta_1_sq=((means - means.mean(0)) ** 2).sum(1).mean(),
            delta_2_sq=max(((b - b.mean(0)) ** 2).sum(1).mean() for b in self.slopes),
        )

    def gap(self, x):
        """f(x) - f*."""
        gradient = self.hessian @ x - self.cell_slopes.mean(0)
        return gradient @ np.linalg.solve(self.hessian, gradient) / 2


def simulate(problem, masks, edge_rounds, local_steps, step_size, start, random):
    """Run Algorithm 1 with ``masks`` [rounds, cells, d].

    Every client's gradient is A x - b_i plus noise of total variance sigma^2. Returns the mean of
    ||grad f||^2 over all edge rounds, and ||x^t||^2 of every round.
    """
    d, slope = len(start), problem.cell_slopes.mean(0)
    deviation = math.sqrt(problem.variance / d)
    x, norms, gradients = start, [], []
    for masks_now in masks:
        norms.append(x @ x)
        edges = masks_now * x  # (4)
        for _ in range(edge_rounds):
            gradients.append(problem.hessian @ edges.sum(0) - slope)  # at (12)
            for j, slopes in enumerate(problem.slopes):
                local = np.tile(edges[j], (len(slopes), 1))
                for _ in range(local_steps):
                    noise = deviation * random.standard_normal(local.shape) if deviation else 0.0
                    gradient = local @ problem.hessian - slopes + noise
                    local -= step_size * masks_now[j] * gradient  # (5)
                edges[j] = local.mean(0)  # (6)
        x = edges.sum(0)  # (7)
    return np.mean(np.square(gradients).sum(1)), np.array(norms)


@pytest.mark.parametrize("seed", range(8))
def test_hist_on_random_quadratics_stays_below_the_bound(seed):
    """Masks have unequal sizes and are redrawn each round; the step size is the limit of (13)."""
    random = Stream(seed, ("quadratics",)).generator()
    cells, e, h, d, rounds = 2 + seed % 2, *random.integers(1, 4, 2).tolist(), 6, 60
    factor = random.standard_normal((d, d))
    slopes = [random.standard_normal((n, d)) for n in random.integers(1, 5, cells)]
    problem = Quadratics(factor @ factor.T / d + 0.1 * np.eye(d), slopes, variance=2.0)
    owner = random.permuted(
        np.tile(np.r_[np.arange(cells), [0] * (d - cells)], (rounds, 1)), axis=1
    )
    masks = (owner[:, None, :] == np.arange(cells)[:, None]).astype(float)
    run = {"edge_rounds": e, "local_steps": h, "cell_sizes": [len(b) for b in slopes]}
    gamma = step_size_limit(**run, smoothness=problem.constants().smoothness).value
    start = random.standard_normal(d)
    measured, norms = simulate(problem, masks, e, h, gamma, start, random)
    result = theorem_1(
        problem.constants(),
        rounds=rounds,
        **run,
        step_size=gamma,
        parameters=d,
        largest_mask=masks.sum(2).max(1),
        model_norm_sq=norms,
        initial_gap=problem.gap(start),
    )
    assert result.holds
    assert measured <= result.total


def far_from_the_optimum():
    """With one step from 0, far from the optimum, only the initial gap bounds the gradient."""
    problem = Quadratics(np.eye(2), [np.ones((1, 2)), np.ones((1, 2))])
    return "initial_gap", problem, 1, 1, 0.01, np.zeros(2)


def cells_that_disagree():
    """At 0, a cell's gradient is zero on its own half of the model, but not on the other half."""
    problem = Quadratics(np.eye(2), [np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])])
    return "partition", problem, 4000, 10, 2e-4, np.zeros(2)


def halves_that_belong_together():
    """Both cells have the same loss.

    Training starts where each half of the model is optimal if the other half is zero
    (A_jj x_j = b_j), which is not the joint optimum.
    """
    hessian = np.array([[1.0, 0.5], [0.5, 1.0]])
    problem = Quadratics(hessian, [np.ones((1, 2)), np.ones((1, 2))])
    return "model_norm", problem, 300, 1, 0.01, np.ones(2)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "case", [far_from_the_optimum, cells_that_disagree, halves_that_belong_together]
)
def test_the_bound_fails_without_the_term_of_the_case(case):
    """Each case has two cells of one client with fixed masks, and names the term that it needs."""
    term, problem, rounds, h, gamma, start = case()
    masks = np.tile(np.eye(2), (rounds, 1, 1))
    measured, norms = simulate(problem, masks, 1, h, gamma, start, None)
    result = theorem_1(
        problem.constants(),
        rounds=rounds,
        edge_rounds=1,
        local_steps=h,
        cell_sizes=(1, 1),
        step_size=gamma,
        parameters=2,
        largest_mask=1,
        model_norm_sq=norms,
        initial_gap=problem.gap(start),
    )
    assert result.holds
    assert result.total - result.terms[term] < measured <= result.total
