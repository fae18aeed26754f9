"""The bound for dynamic clients: hand calculations, and simulated rounds on quadratics."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream
from wirelessfl.theory import (
    RoundConstants,
    data_deviation,
    gradient_norm_bound,
    largest_step_size,
)

FIRST = RoundConstants(
    samples=[8, 4],
    batch=[2, 4],
    steps=[3, 1],
    deviation=[3, 7],
    step_size=0.25,
    smoothness=2,
    variability=5,
    zeta_1=1.5,
    zeta_2=11,
    drift_share=0.5,
    decrease=-0.75,
)
SECOND = RoundConstants(
    samples=[10, 5, 5],
    batch=[1, 1, 5],
    steps=[2, 2, 2],
    deviation=[2, 1, 9],
    step_size=0.5,
    smoothness=1,
    variability=3,
    zeta_1=1,
    zeta_2=13,
    drift_share=0.2,
    decrease=2.0,
)


def test_every_term_by_hand():
    """Terms equal exact fractions for two rounds of different clients, with beta eta = 1/2."""
    half, fifth = Fraction(1, 2), Fraction(1, 5)
    over = [1 / (1 - half), 1 / (1 - fifth)]
    by_hand = {
        "decrease": [2 * Fraction(-3, 4) * 4, 2 * 2 * 2],
        "sampling": [
            4 * half * 25 * Fraction(9 * 3, 2) * Fraction(6, 64),
            4 * half * 9 * (4 * 2 * Fraction(9, 100) + 1 * 2 * Fraction(4, 25)),
        ],
        "drift": [
            4 * half**2 / 12 * 2 * (1 - Fraction(2, 8)) * 5 * Fraction(9, 2),
            4 * half**2 / 20 * (Fraction(9, 10) * 3 * 4 + Fraction(4, 5) * 3 * 1),
        ],
        "dissimilarity": [8 * half**2 * 3 * 2 * 11, 8 * half**2 * 2 * 1 * 13],
        "uneven_steps": [0, 0],
    }
    bound = gradient_norm_bound([FIRST, SECOND])
    means = {
        name: float((one * over[0] + two * over[1]) / 2) for name, (one, two) in by_hand.items()
    }
    assert bound.terms == pytest.approx(means)
    assert bound.total == pytest.approx(sum(means.values()))


def test_every_corrected_term_by_hand():
    """Terms equal exact fractions.

    In the first round, e = 7/3, so V = 2/3 (2/7)^2 + 1/3 (4/7)^2 = 8/49.
    """
    half, fifth, e = Fraction(1, 2), Fraction(1, 5), Fraction(7, 3)
    over = [1 / (1 - half), 1 / (1 - fifth)]
    noise = Fraction(3, 4) * 25 * 9 / (2 * 7)
    noises = [Fraction(9, 10) * 9 * 4 / 9, Fraction(4, 5) * 9 * 1 / 4]
    by_hand = {
        "decrease": [2 * Fraction(-3, 4) * 4 / e, 2 * 2 * 2 / 2],
        "sampling": [
            2 * half / e * Fraction(2, 3) * 3 * noise,
            2 * half / 2 * 2 * (noises[0] / 2 + noises[1] / 4),
        ],
        "drift": [
            3 * half**2 / e * Fraction(2, 3) * 6 * noise,
            3 * half**2 / 2 * 2 * (noises[0] / 2 + noises[1] / 4),
        ],
        "dissimilarity": [12 * half**2 * 9 * 2 / e * 11, 12 * half**2 * 4 * 1 / 2 * 13],
        "uneven_steps": [2 * Fraction(8, 49) * 11, 0],
    }
    bound = gradient_norm_bound([FIRST, SECOND], corrected=True)
    means = {
        name: float((one * over[0] + two * over[1]) / 2) for name, (one, two) in by_hand.items()
    }
    assert bound.terms == pytest.approx(means)


@pytest.mark.parametrize("corrected", [False, True])
def test_terms_that_vanish(corrected):
    """Full batches have no sampling noise, single steps no drift, single samples no deviation."""
    full = gradient_norm_bound([replace(FIRST, batch=FIRST.samples)], corrected=corrected)
    assert full.sampling == full.drift == 0 < full.dissimilarity
    single = gradient_norm_bound([replace(FIRST, steps=[1, 1])], corrected=corrected)
    assert single.drift == single.dissimilarity == single.uneven_steps == 0 < single.sampling
    alone = replace(FIRST, samples=[8, 1], batch=[2, 1])
    other = replace(FIRST, samples=[8, 1], batch=[2, 1], deviation=[3, 0])
    assert gradient_norm_bound([alone], corrected=corrected) == gradient_norm_bound(
        [other], corrected=corrected
    )


def condition(steps, corrected=False, **changes):
    run = {"smoothness": 2.0, "zeta_1": 1.0, "drift_share": 0.5} | changes
    return largest_step_size(samples=[30] * len(steps), steps=steps, corrected=corrected, **run)


def test_the_condition_by_hand():
    limit = condition([2, 3, 4])
    assert limit.descent == pytest.approx((0.5 - 0.25) / 2)
    assert limit.drift == pytest.approx(math.sqrt(0.5) / (4 * math.sqrt(1.5 * 12)))
    assert limit.value == limit.drift
    assert not limit.admits(limit.value)
    assert limit.admits(limit.value * (1 - 1e-12))
    assert condition([1, 1]).drift == math.inf
    assert condition([1, 1]).value == condition([1, 1]).descent == 0.25
    even = condition([2, 2], corrected=True)
    assert even.descent == pytest.approx(1 / 8)
    assert even.drift == pytest.approx(math.sqrt(0.5) / (4 * math.sqrt(2.5 * 2)))
    assert condition([1, 1], corrected=True) == condition([1, 1])


@pytest.mark.parametrize(("fewest", "positive"), [(1, True), (2, True), (3, True), (4, False)])
def test_the_printed_condition_limits_the_fewest_steps_to_three(fewest, positive):
    """At least one client must take fewer than 1 / (1 - sqrt(1/2)) = 3.41 steps."""
    assert (condition([fewest, 9]).value > 0) == positive
    assert condition([fewest, 9], corrected=True).value > 0


def test_the_published_five_steps_violate_the_printed_condition():
    published = replace(SECOND, steps=[5, 5, 5], step_size=1e-12)
    assert gradient_norm_bound([SECOND, published, published]).violated == (0, 1, 2)
    assert not gradient_norm_bound([published]).holds
    assert gradient_norm_bound([published], corrected=True).holds


def test_uneven_steps_leave_less_room_for_drift():
    """For 1 and 2 steps, V = 1/9, so 2 V (zeta_1 - 1) reaches Lambda = 1/2 at zeta_1 = 3.25."""
    assert condition([1, 2], corrected=True, zeta_1=3.2).value > 0
    assert condition([1, 2], corrected=True, zeta_1=3.3).value == 0


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 6)), min_size=1, max_size=5),
    st.floats(1, 5),
    st.floats(0.05, 0.95),
)
def test_the_corrected_condition_is_what_the_proof_needs(clients, zeta_1, share):
    """At the largest step size, uneven steps and drift add up to Lambda, and 1/(1 - q) <= 3/2."""
    samples, steps = np.array(clients).T
    beta, most = 2.0, int(steps.max())
    eta = largest_step_size(
        samples=samples,
        steps=steps,
        smoothness=beta,
        zeta_1=zeta_1,
        drift_share=share,
        corrected=True,
    ).drift
    weights = samples / samples.sum()
    e = weights @ steps
    uneven = 2 * (weights @ (1 - steps / e) ** 2) * (zeta_1 - 1)
    if most == 1:
        assert eta == math.inf
    elif uneven >= share:
        assert eta == 0
    else:
        q = 4 * beta**2 * eta**2 * most * (most - 1)
        taken = 8 * beta**2 * eta**2 * most**2 * (most - 1) / e * zeta_1 / (1 - q)
        assert uneven + taken == pytest.approx(share)
        assert 1 / (1 - q) <= 1.5


def test_the_deviation_bounds_the_variance_of_gradients():
    """(13) holds for f = beta/2 ||w - d||^2 with this deviation, not with the sample variance."""
    data = Stream(1, ("data",)).generator().standard_normal((9, 3, 2))
    sum_sq = sum(((one - data.mean(0)) ** 2).sum() for one in data)
    assert data_deviation(data) == pytest.approx(math.sqrt(sum_sq))
    gradients = 4.0 * (0.5 - data.reshape(9, 6))
    variance = gradients.var(0, ddof=1).sum()
    assert variance <= 2 * 4.0**2 * data_deviation(data) ** 2 / 9
    # The paper's text names the sample variance, for which (13) does not hold.
    assert variance > 2 * 4.0**2 * data_deviation(data) ** 2 / 8 / 9
    assert data_deviation([[5.0, 1.0]]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": [8]}, r"batch has shape \[2\]"),
        ({"samples": []}, r"samples has shape \[0\]: give one number per client"),
        ({"samples": [2.5, 8]}, r"samples\[0\] is 2\.5: give an integer"),
        ({"batch": [2, 5]}, r"batch\[1\] is 5 with samples\[1\] = 4: give a batch"),
        ({"batch": [0, 4]}, r"batch\[0\] is 0"),
        ({"steps": [0, 1]}, r"steps\[0\] is 0"),
        ({"deviation": [1.0]}, r"deviation has shape \[1\]: .* 2 clients"),
        ({"deviation": [1.0, -1.0]}, r"deviation\[1\] is -1"),
        ({"step_size": 0.0}, r"step_size is 0\.0"),
        ({"smoothness": 0.0}, r"smoothness is 0\.0"),
        ({"variability": math.nan}, "variability is nan"),
        ({"zeta_1": 0.9}, r"zeta_1 is 0\.9: give a finite number >= 1"),
        ({"zeta_2": -1}, "zeta_2 is -1"),
        ({"drift_share": 1.0}, r"drift_share is 1\.0: give a number above 0 and below 1"),
        ({"decrease": math.inf}, "decrease is inf"),
    ],
)
def test_invalid_constants_are_rejected(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(FIRST, **changes)


def test_other_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="rounds is empty"):
        gradient_norm_bound([])
    with pytest.raises(ValueError, match=r"samples has shape \[0, 2\]"):
        data_deviation(np.zeros((0, 2)))
    with pytest.raises(ValueError, match="samples has shape"):
        data_deviation([1.0, math.nan])
    with pytest.raises(ValueError, match="drift_share is 0"):
        condition([1], drift_share=0)


# Rounds on f(w, d) = beta/2 ||w - d||^2, for which Theta = beta and zeta_1 = 1.

BETA = 2.0


def loss(w, data):
    """F(w) [runs], the mean over all samples of the present clients."""
    everything = np.concatenate(data)
    apart = (w - everything.mean(0)) ** 2
    return BETA / 2 * (apart.sum(-1) + ((everything - everything.mean(0)) ** 2).sum(-1).mean())


def trained(w, data, batches, steps, eta, random):
    """Models after one round from w [runs, d]: clients train by (7), weighted by samples."""
    total = sum(map(len, data))
    merged = np.zeros_like(w)
    for own, batch, number in zip(data, batches, steps, strict=True):
        local = w.copy()
        for _ in range(number):
            drawn = random.random((len(w), len(own))).argsort(1)[:, :batch]
            local -= eta * BETA * (local - own[drawn].mean(1))
        merged += len(own) / total * local
    return merged


def measured(rounds, start, runs, random, drift_share, corrected):
    """Return mean squared gradient norms [runs], the bound of each run [runs], and the mean bound.

    ``rounds`` contains (data, batches, steps); the step size is just below its limit. The bound is
    linear in the decrease of the loss; a run's bound uses the decrease in that run.
    """
    w = np.tile(start, (runs, 1))
    norms, falls, constants = [], [], []
    for data, batches, steps in rounds:
        samples, mean = np.array([len(own) for own in data]), np.concatenate(data).mean(0)
        centres = np.array([own.mean(0) for own in data])
        apart = samples @ ((centres - mean) ** 2).sum(1) / samples.sum()
        limit = largest_step_size(
            samples=samples,
            steps=steps,
            smoothness=BETA,
            zeta_1=1.0,
            drift_share=drift_share,
            corrected=corrected,
        )
        eta = 0.999 * limit.value
        norms.append(BETA**2 * ((w - mean) ** 2).sum(1))
        before = loss(w, data)
        w = trained(w, data, batches, steps, eta, random)
        falls.append(before - loss(w, data))
        constants.append(
            RoundConstants(
                samples=samples,
                batch=np.array(batches),
                steps=np.array(steps),
                deviation=np.array([data_deviation(own) for own in data]),
                step_size=eta,
                smoothness=BETA,
                variability=BETA,
                zeta_1=1.0,
                zeta_2=BETA**2 * apart,
                drift_share=drift_share,
                decrease=falls[-1].mean(),
            )
        )
    bound = gradient_norm_bound(constants, corrected=corrected)
    e = [own.samples @ own.steps / own.samples.sum() if corrected else 1.0 for own in constants]
    slopes = [
        2 / (own.step_size * mean * (1 - drift_share))
        for own, mean in zip(constants, e, strict=True)
    ]
    decreases = np.mean([slope * fall for slope, fall in zip(slopes, falls, strict=True)], axis=0)
    return np.mean(norms, axis=0), bound.total - bound.decrease + decreases, bound


def those_present(random, number, uneven, most, size=3):
    """Draw ``number`` rounds, each with 1 to 4 of six clients with different data."""
    data = [
        2 * random.standard_normal(size) + random.standard_normal((n, size))
        for n in random.integers(1, 30, 6)
    ]
    rounds = []
    for _ in range(number):
        present = [data[k] for k in random.permutation(6)[: random.integers(1, 5)]]
        steps = random.integers(1, most + 1, len(present))
        if not uneven:
            steps[:] = steps[0]
        rounds.append((present, [int(random.integers(1, len(own) + 1)) for own in present], steps))
    return rounds


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("corrected", "uneven", "most"), [(False, False, 3), (True, False, 5), (True, True, 5)]
)
def test_rounds_of_changing_clients_stay_below_the_bound(seed, corrected, uneven, most):
    """The printed bound requires equal numbers of steps, at most 3; the corrected one does not."""
    random = Stream(seed, ("rounds", most)).generator()
    rounds = those_present(random, 25, uneven, most)
    start = 3 * random.standard_normal(3)
    norms, bounds, bound = measured(rounds, start, 300, random, 0.5, corrected)
    assert bound.holds
    room = bounds - norms
    assert 3 * room.std(ddof=1) / math.sqrt(len(room)) < room.mean()


def test_uneven_steps_break_the_printed_bound():
    """Two clients with full batches at -1 and 1 take 1 and 2 steps, which (17) ignores.

    The rounds converge to 1/3, where the mean of e_k grad F_k is 0 and grad F is beta / 3. There
    the loss decreases no further, (b) and (c) are 0, and (d) is proportional to the squared step.
    """
    data = [np.array([[-1.0]]), np.array([[1.0]])]
    rounds = [(data, [1, 1], [1, 2])] * 400
    random = Stream(2, ("uneven",)).generator()  # only orders the samples of full batches
    for share in (1e-3, 1e-4):
        norms, bounds, bound = measured(rounds, np.array([1 / 3]), 1, random, share, False)
        assert bound.holds
        assert bounds == pytest.approx(bound.total)
        assert norms > 0.9 * (BETA / 3) ** 2 > 10 * bound.total
        # The corrected bound needs its fifth term.
        norms, _, bound = measured(rounds, np.array([1 / 3]), 1, random, share, True)
        assert bound.holds
        assert bound.total - bound.uneven_steps < norms <= bound.total


def test_the_sample_variance_breaks_the_printed_bound():
    """A single client starts at its optimum, and steps on single samples move it away.

    The mean squared distance converges to beta eta / 2 times the variance, up to a relative error
    of beta eta.
    """
    random = Stream(3, ("alone",)).generator()
    data = random.standard_normal((100, 2))
    constants = RoundConstants(
        samples=[100],
        batch=[1],
        steps=[1],
        deviation=[data_deviation(data)],
        step_size=0.02,
        smoothness=BETA,
        variability=BETA,
        zeta_1=1.0,
        zeta_2=0.0,
        drift_share=0.01,
        decrease=0.0,
    )
    w = np.tile(data.mean(0), (2000, 1))
    for _ in range(200):
        w = trained(w, [data], [1], [1], constants.step_size, random)
    norms = BETA**2 * ((w - data.mean(0)) ** 2).sum(1)
    error = norms.std(ddof=1) / math.sqrt(len(norms))
    settled = BETA**2 * 0.04 / (2 - 0.04) * data.var(0).sum()
    assert 3 * error < 0.1 * settled
    assert norms.mean() == pytest.approx(settled, rel=0.1)
    assert 1.1 * settled < gradient_norm_bound([constants], corrected=True).total
    assert 1.1 * settled < gradient_norm_bound([constants]).total
    as_in_the_text = replace(constants, deviation=constants.deviation / math.sqrt(99))
    assert 0.9 * settled > 5 * gradient_norm_bound([as_in_the_text]).total
