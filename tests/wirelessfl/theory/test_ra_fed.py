"""The bounds of RA-Fed and RAM-Fed: hand calculations, limits, rates, and known misprints."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.theory import (
    SubmodelRun,
    minimum_coverage,
    ra_fed_bound,
    ram_fed_bound,
    relative_error,
    submodel_noise,
)

# r = 3. The step size 1/1200 gives L gamma T = 1/100, below the limit 1 / (16 sqrt(3)).
RUN = SubmodelRun(
    rounds=50,
    local_steps=6,
    clients=12,
    coverage=4,
    smoothness=2.0,
    gradient_variance=7.0,
    delta_sq=11.0,
    noise=0.75,
    model_norm_sq=13.0,
    initial_gap=5.0,
)
STEP = 1 / 1200
MEMORY = {"gradient_bound": 17.0, "staleness_sq": 19.0, "stale_norm_sq": 23.0}


def check_terms(bound, by_hand):
    assert bound.terms == pytest.approx({name: float(term) for name, term in by_hand.items()})
    assert bound.total == pytest.approx(float(sum(by_hand.values())))
    assert bound.holds


def test_every_term_of_ra_fed_by_hand():
    x = Fraction(1, 100)
    by_hand = {
        "initial_gap": Fraction(8 * 5 * 1200, 6 * 50),
        "submodel_noise": (64 * 3 * 4 + 192 * 8 * 3 * Fraction(6, 1200)) * Fraction(3, 4) * 13,
        "data_heterogeneity": 24 * (32 * x**2 + 1 + 96 * x**3 + 3 * x) * 11,
        "gradient_noise": Fraction(2, 1200) * 24 * (4 * x + Fraction(3, 2) + 12 * x**2) * 7,
    }
    bound = ra_fed_bound(RUN, step_size=STEP)
    check_terms(bound, by_hand)
    assert bound.floor == pytest.approx(float(64 * 3 * 4 * Fraction(39, 4) + 24 * 11))
    by_hand["submodel_noise"] = (768 + 96 * 8 * 3 * Fraction(6, 1200)) * Fraction(3, 4) * 13
    check_terms(ra_fed_bound(RUN, step_size=STEP, printed=True), by_hand)


def test_every_printed_term_of_ram_fed_by_hand():
    """Printed terms equal exact fractions; gamma^2 T^2 = 1/40000 and N / Gamma* L^2 = 12."""
    tau, moved = 19, Fraction(1, 40_000)
    by_hand = {
        "initial_gap": Fraction(2 * 5 * 1200, 6 * 50),
        "submodel_noise": Fraction(3, 4) * (8 * (6 + 9 * 12) * 23 + 72 * 12 * 13),
        "data_heterogeneity": 128 * (3 + 9 * 12) * moved * 11,
        "gradient_noise": (48 * moved / 6 + 12 * 3 + 6 + 144 * 12 * moved / 6) * 7,
        "local_drift": (384 + 1152 * 12) * moved * 17,
        "staleness": (48 + 72 * 3 + 72 * 12 + 108 * 9 * 4) * tau * moved * 17,
    }
    check_terms(ram_fed_bound(RUN, step_size=STEP, printed=True, **MEMORY), by_hand)


def test_every_term_of_ram_fed_by_hand():
    """Corrected terms equal exact fractions, with the factor L^2 in T_2 and 8 w^2 in T_5."""
    tau, x_sq = 19, Fraction(1, 10_000)
    by_hand = {
        "initial_gap": Fraction(2 * 5 * 1200, 6 * 50),
        "submodel_noise": Fraction(3, 4) * 4 * (16 * (6 + 9 * 3) * 23 + 144 * 3 * 13),
        "data_heterogeneity": 128 * (3 + 9 * 3) * x_sq * 11,
        "gradient_noise": (6 + 12 * 3 + (48 + 144 * 3) * x_sq / 6) * 7,
        "local_drift": (384 + 1152 * 3) * x_sq * 17,
        "staleness": (48 + 72 * 3 + 72 * 3 + 108 * 9) * tau * x_sq * 17,
    }
    bound = ram_fed_bound(RUN, step_size=STEP, **MEMORY)
    check_terms(bound, by_hand)
    assert bound.floor == pytest.approx(float(42 * 7 + by_hand["submodel_noise"]))


def test_ram_fed_with_several_ages_by_hand():
    """Apart from the initial gap, the bound is 3 T_2 + 2 T_3 of the proof.

    T_2 and T_3 are derived separately for each block of coordinates with the same age.
    """
    r, l_sq, d, sigma, delta, g, norm = 3, 4, 2, 7, 11, 17, 13
    moved, w = Fraction(1, 40_000), Fraction(3, 4)
    step = moved * g * (3 * (d + r + r * d) + d)  # T_6 + T_7, a step of the server
    t_4 = 19 * step  # summed over ages, as below
    own = 4 * moved / 6 * sigma + 32 * moved * (delta + g)
    t_5 = d * own + 8 * w * 23
    t_2 = 2 * (l_sq * 2 * (t_4 + t_5) + d * sigma)
    u_8 = own + 8 * w * norm
    t_3 = 3 * r * (sigma + d * sigma) + 9 * r * l_sq * (d * u_8 + t_4 + t_5)
    bound = ram_fed_bound(RUN, step_size=STEP, ages=d, **MEMORY)
    assert bound.total - bound.initial_gap == pytest.approx(float(3 * t_2 + 2 * t_3))


def test_printed_bounds_differ_only_by_the_known_errors():
    """Without submodel noise, RA-Fed's bound equals the printed one; RAM-Fed's only if L = 1."""
    clean = replace(RUN, noise=0.0)
    assert ra_fed_bound(clean, step_size=STEP) == ra_fed_bound(clean, step_size=STEP, printed=True)
    for smoothness, sign in ((0.5, -1), (1.0, 0), (2.0, 1)):
        run = replace(clean, smoothness=smoothness)
        right, printed = (
            ram_fed_bound(run, step_size=STEP, printed=given, **MEMORY).total
            for given in (False, True)
        )
        assert np.sign(round(right - printed, 9)) == sign
    at_one = replace(RUN, smoothness=1.0)
    right = ram_fed_bound(at_one, step_size=STEP, **MEMORY)
    printed = ram_fed_bound(at_one, step_size=STEP, printed=True, **MEMORY)
    assert right.submodel_noise == pytest.approx(2 * printed.submodel_noise)


@given(st.integers(1, 50), st.integers(1, 10**6), st.data(), st.floats(1e-3, 1e3))
def test_the_limits_are_those_of_the_proof(steps, clients, data, smoothness):
    coverage = data.draw(st.integers(1, clients))
    changes = {"clients": clients, "coverage": coverage, "local_steps": steps}
    run = replace(RUN, smoothness=smoothness, **changes)
    gamma, r = run.ra_fed_largest_step_size, clients / coverage
    x = smoothness * gamma * steps
    needed = [32 * x**2 * r * 8, 96 * x**3 * r * 8, 1.5 * x * 8, 4 * x]
    assert max(needed) == pytest.approx(1)
    assert needed[0] == pytest.approx(1)  # the smallest limit
    assert ra_fed_bound(run, step_size=gamma).holds
    assert not ra_fed_bound(run, step_size=1.001 * gamma).holds
    gamma = run.ram_fed_largest_step_size
    assert gamma == pytest.approx(1 / (4 * smoothness * steps))
    assert ram_fed_bound(run, step_size=gamma, **MEMORY).holds
    assert not ram_fed_bound(run, step_size=1.001 * gamma, **MEMORY).holds


def at_its_rate(coverage, steps, rounds, noise=0.0, delta_sq=None):
    """RA-Fed's bound at the rate's step size with c = 1/8; delta^2 = 3 / (T Q) by default."""
    run = replace(
        RUN,
        coverage=coverage,
        local_steps=steps,
        rounds=rounds,
        noise=noise,
        delta_sq=3 / (steps * rounds) if delta_sq is None else delta_sq,
    )
    return ra_fed_bound(run, step_size=run.rate_step_size(1 / 8))


@pytest.mark.parametrize("coverage", [1, 4, 12])
@pytest.mark.parametrize("steps", [1, 5, 40])
def test_the_rate_of_ra_fed(coverage, steps):
    """sqrt(Gamma* T Q) times the bound converges to 8 F / c + 12 c L N sigma^2."""
    limit = 8 * 5 * 8 + 12 / 8 * 2 * 12 * 7
    errors = []
    for rounds in (10**6, 10**8, 10**10):
        bound = at_its_rate(coverage, steps, rounds)
        assert bound.holds
        errors.append(bound.total * math.sqrt(coverage * steps * rounds) / limit - 1)
    assert np.all(np.diff(errors) < 0)
    assert 0 < errors[-1] < 1e-3
    # The rest decreases with 1 / sqrt(Q), so the bound is within O(1/Q) of its rate.
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.05)


def test_noise_and_heterogeneity_leave_a_floor():
    """Submodel noise and delta do not vanish as the number of rounds grows."""
    for changes, floor in (
        ({"noise": 0.75}, 64 * 3 * 4 * 0.75 * 13),
        ({"delta_sq": 11.0}, 24 * 11),
    ):
        bound = at_its_rate(4, 6, 10**12, **changes)
        assert floor < bound.total == pytest.approx(floor, rel=1e-3)
        assert bound.floor == pytest.approx(floor, rel=1e-6)
    # In RAM-Fed's bound delta vanishes and sigma remains.
    run = replace(RUN, rounds=10**12, noise=0.0)
    bound = ram_fed_bound(run, step_size=run.rate_step_size(), **MEMORY)
    assert bound.data_heterogeneity < 1e-4
    assert bound.total == pytest.approx(42 * 7, rel=1e-3)
    assert bound.floor == 42 * 7


@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_the_rate_step_size_needs_a_minimum_number_of_rounds(scale):
    """RA-Fed allows it if Q >= 256 c^2 L^2 T N, and RAM-Fed if Q >= 16 c^2 L^2 T Gamma*."""
    for least, limit in ((256 * 12, "ra_fed"), (16 * 4, "ram_fed")):
        rounds = least * scale**2 * 4 * 6
        for factor, fits in ((0.99, False), (1.01, True)):
            run = replace(RUN, rounds=round(factor * rounds))
            largest = getattr(run, f"{limit}_largest_step_size")
            assert (run.rate_step_size(scale) <= largest) == fits


GROWING = ("clients", "smoothness", "gradient_variance", "delta_sq", "noise", "model_norm_sq")


@pytest.mark.parametrize("name", [*GROWING, "initial_gap", "rounds", "coverage"])
def test_the_bounds_are_monotone_in_each_argument(name):
    """Both bounds decrease with rounds and coverage, and increase with every other argument."""
    value = getattr(RUN, name)
    more = replace(RUN, **{name: value + 1})
    for bound in (
        lambda run: ra_fed_bound(run, step_size=STEP).total,
        lambda run: ram_fed_bound(run, step_size=STEP, **MEMORY).total,
    ):
        assert (bound(more) < bound(RUN)) == (name in ("rounds", "coverage"))
        assert bound(more) != bound(RUN)


@pytest.mark.parametrize("name", [*MEMORY, "ages"])
def test_ram_feds_bound_increases_with_each_memory_constant(name):
    more = {**MEMORY, "ages": 1}
    more[name] += 1
    assert (
        ram_fed_bound(RUN, step_size=STEP, **more).total
        > ram_fed_bound(RUN, step_size=STEP, **MEMORY).total
    )


def test_coverage_and_submodel_noise_by_hand():
    masks = np.zeros((2, 3, 4), dtype=bool)
    masks[0, :, 0], masks[1, :2, 1], masks[1, 2, 3] = True, True, True
    assert minimum_coverage(masks) == 1
    masks[1, 2, 3] = False  # no client covers coordinates 2 and 3
    assert minimum_coverage(masks) == 2
    model = np.array([3.0, 4.0])
    assert relative_error(model * [[1, 0], [0, 1], [1, 1]], model) == pytest.approx(4 / 5)
    assert relative_error([[3, 4], [0, 0]], [[3, 3], [0, 0]]) == pytest.approx(1 / math.sqrt(18))
    noise = Fraction(2, 9 * 16) + Fraction(2, 9) + Fraction(1, 16)
    assert submodel_noise(1 / 3, 1 / 4) == pytest.approx(float(noise))
    assert submodel_noise(0.5) == 0.5


@given(st.integers(0, 999), st.sampled_from([0.5, 0.25, 0.125]))
def test_submodel_noise_bounds_the_error_of_clients_start_models(seed, grid):
    random = Stream(seed, ("models",)).generator()
    models = random.standard_normal((20, 6))
    sent = grid * np.round(models / grid)
    starts = sent * (random.random((20, 6)) < 0.7)
    noise = submodel_noise(relative_error(starts, sent), relative_error(sent, models))
    apart = ((starts - models) ** 2).sum(1)
    assert np.all(apart <= 2 * noise * (models**2).sum(1) * (1 + 1e-12))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "rounds is 0: give an integer of at least 1"),
        ({"local_steps": 1.5}, r"local_steps is 1\.5: give an integer"),
        ({"clients": 0}, "clients is 0"),
        ({"coverage": 0}, "coverage is 0"),
        ({"coverage": 13}, "coverage is 13 with clients=12: give a number from 1 to 12"),
        ({"smoothness": 0.0}, r"smoothness is 0\.0: give a finite number that is positive"),
        ({"gradient_variance": -1}, "gradient_variance is -1"),
        ({"delta_sq": math.nan}, "delta_sq is nan"),
        ({"noise": -0.5}, r"noise is -0\.5"),
        ({"model_norm_sq": math.inf}, "model_norm_sq is inf"),
        ({"initial_gap": -1e-9}, "initial_gap is -1e-09"),
    ],
)
def test_invalid_constants_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(RUN, **changes)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ra_fed_bound(RUN, step_size=0.0), r"step_size is 0\.0"),
        (lambda: RUN.rate_step_size(0.0), r"scale is 0\.0"),
        (lambda: ram_fed_bound(RUN, step_size=-1.0, **MEMORY), r"step_size is -1\.0"),
        (
            lambda: ram_fed_bound(RUN, step_size=1.0, **MEMORY | {"gradient_bound": -1}),
            "gradient_bound is -1",
        ),
        (
            lambda: ram_fed_bound(RUN, step_size=1.0, **MEMORY | {"staleness_sq": -2}),
            "staleness_sq is -2",
        ),
        (
            lambda: ram_fed_bound(RUN, step_size=1.0, **MEMORY | {"stale_norm_sq": math.nan}),
            "stale_norm_sq is nan",
        ),
        (lambda: ram_fed_bound(RUN, step_size=1.0, ages=0, **MEMORY), "ages is 0"),
        (
            lambda: ram_fed_bound(RUN, step_size=1.0, ages=2, printed=True, **MEMORY),
            "ages=2 conflicts with printed=True",
        ),
        (lambda: minimum_coverage(np.ones((2, 3, 4))), "masks has dtype float64 and shape"),
        (lambda: minimum_coverage(np.ones((3, 4), dtype=bool)), r"shape \[3, 4\]: give booleans"),
        (lambda: minimum_coverage(np.zeros((1, 3, 4), dtype=bool)), "masks contains no True"),
        (lambda: relative_error([1.0, math.nan], [1.0, 1.0]), "changed has shape"),
        (lambda: relative_error(1.0, 1.0), r"changed has shape \[\]"),
        (lambda: relative_error([1.0], [0.0]), "model is 0 but changed is not"),
        (lambda: submodel_noise(-0.1), r"mask_error is -0\.1"),
        (lambda: submodel_noise(0.1, math.inf), "compression_error is inf"),
    ],
)
def test_other_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
