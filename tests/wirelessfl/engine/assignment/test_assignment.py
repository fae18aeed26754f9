"""Assignment of clients to tasks: valid sets, brute-force references, synthetic clients."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from channels.streams import Stream
from wirelessfl.engine.assignment import BanditAssignment, BayesAssignment, RandomAssignment
from wirelessfl.engine.assignment.bayes import expected_improvement, posterior

STREAM = Stream(7, ("assignment",))


def random(clients, tasks, stream=STREAM):
    return RandomAssignment(stream)


def bayes(clients, tasks, stream=STREAM, **settings):
    settings = {"candidates": 20, "history": 6} | settings
    return BayesAssignment(stream, clients=clients, tasks=tasks, **settings)


def bandit(clients, tasks, stream=STREAM, **settings):
    return BanditAssignment(stream, clients=clients, tasks=tasks, **settings)


KINDS = {"random": random, "bayes": bayes, "bandit": bandit}


def made_up(rng, chosen):
    """Random durations and losses of the chosen clients."""
    return [[rng.exponential(1.0, len(them)) for them in chosen] for _ in range(2)]


@st.composite
def runs(draw):
    """Numbers of clients and tasks, and rounds of (available clients, clients per task)."""
    clients, tasks = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rounds = []
    for _ in range(draw(st.integers(1, 8))):
        order = draw(st.permutations(range(clients)))
        available = np.array(order[: draw(st.integers(0, clients))], dtype=np.int64)
        cuts = sorted(draw(st.integers(0, len(available))) for _ in range(tasks))
        rounds.append((available, np.diff(cuts, prepend=0)))
    return clients, tasks, rounds


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", KINDS)
@given(runs())
def test_sets_are_disjoint_and_have_the_requested_sizes(kind, run):
    clients, tasks, rounds = run
    assignment, rng = KINDS[kind](clients, tasks), np.random.default_rng(0)
    for number, (available, shares) in enumerate(rounds):
        chosen = assignment.choose(number, available, shares)
        assert [len(them) for them in chosen] == shares.tolist()
        assert all(them.dtype == np.int64 for them in chosen)
        assert all((np.diff(them) > 0).all() for them in chosen)
        everyone = np.concatenate(chosen).tolist()
        assert len(set(everyone)) == len(everyone)
        assert set(everyone) <= set(available.tolist())
        assignment.learn(chosen, *made_up(rng, chosen))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", KINDS)
@given(runs(), st.integers(0, 8))
def test_a_restored_assignment_makes_the_same_choices(kind, run, cut):
    """Choices are the same after a restore, and for any order of the available clients."""
    clients, tasks, rounds = run
    plain, cut_off = (KINDS[kind](clients, tasks) for _ in range(2))
    rng = np.random.default_rng(0)
    for number, (available, shares) in enumerate(rounds):
        if number == cut:
            state = cut_off.state()
            assert all(array.dtype.kind in "iuf" for array in state.values())
            cut_off = KINDS[kind](clients, tasks)
            cut_off.restore(state)
            for array in state.values():  # the restored state is a copy
                array[...] = -1
        chosen = plain.choose(number, available, shares)
        again = cut_off.choose(number, np.sort(available), shares)
        assert [them.tolist() for them in chosen] == [them.tolist() for them in again]
        seconds, losses = made_up(rng, chosen)
        plain.learn(chosen, seconds, losses)
        cut_off.learn(again, seconds, losses)


def test_random_sets_are_uniformly_drawn():
    """Single clients and the pair (0, 1) are chosen for a task with the expected frequency."""
    rounds, assignment = 4000, RandomAssignment(STREAM)
    counts, together = np.zeros((2, 10)), 0
    for number in range(rounds):
        first, second = assignment.choose(number, np.arange(10), np.array([3, 2]))
        counts[0, first] += 1
        counts[1, second] += 1
        together += {0, 1} <= set(first.tolist())
    for row, expected in zip(counts / rounds, (0.3, 0.2), strict=True):
        error = math.sqrt(expected * (1 - expected) / rounds)  # at most 0.0073
        assert np.abs(row - expected).max() < 4 * error
    expected = 3 / 10 * 2 / 9
    error = math.sqrt(expected * (1 - expected) / rounds)
    assert abs(together / rounds - expected) < 4 * error


def rounds_of(assignment, durations, shares, rounds, seed=0):
    """Simulate rounds; return their durations and the participation counts [tasks, clients].

    A client's duration is within 20 % of its mean in ``durations``.
    """
    rng, clients = np.random.default_rng(seed), durations.shape[1]
    took, times = [], np.zeros_like(durations)
    for number in range(rounds):
        chosen = assignment.choose(number, np.arange(clients), shares)
        seconds = [
            durations[task, them] * rng.uniform(0.8, 1.2, len(them))
            for task, them in enumerate(chosen)
        ]
        assignment.learn(chosen, seconds)
        took.append(max(values.max() for values in seconds))
        for task, them in enumerate(chosen):
            times[task, them] += 1
    return np.array(took), times


@pytest.mark.thorough
def test_bayes_prefers_fast_clients():
    """If a quarter of 40 clients are slow, rounds become shorter than with random sets.

    Random sets of 8 contain a slow client in 92 % of the rounds.
    """
    durations = np.tile(np.where(np.arange(40) % 4 == 0, 5.0, 1.0), (2, 1))
    shares, rounds = np.array([4, 4]), 60
    taken, differences = [], []
    for seed in range(4):
        stream = Stream(seed)
        learnt, times = rounds_of(
            bayes(40, 2, stream, fairness=0.0, candidates=100, history=50),
            durations,
            shares,
            rounds,
            seed,
        )
        plain, _ = rounds_of(RandomAssignment(stream), durations, shares, rounds, seed)
        differences.append(plain[30:].mean() - learnt[30:].mean())
        taken.append(times[:, ::4].sum() / times.sum())
    error = np.std(differences, ddof=1) / math.sqrt(4)
    assert np.mean(differences) > 1.0
    assert error < 1.0 / 3
    assert np.std(taken, ddof=1) / math.sqrt(4) < 0.07 / 3
    assert np.mean(taken) < 0.18  # 0.25 for random sets


@pytest.mark.thorough
def test_bayes_with_large_fairness_balances_participation():
    """The participation variance is less than a tenth of that of random sets.

    Over eight seeds the ratio is 0.029, with standard deviation 0.008.
    """
    durations = np.tile(np.where(np.arange(20) % 4 == 0, 5.0, 1.0), (2, 1))
    variances = []
    for assignment in (bayes(20, 2, fairness=1e6, candidates=100), RandomAssignment(STREAM)):
        _, times = rounds_of(assignment, durations, np.array([3, 4]), 60)
        variances.append(times.var(1).sum())
    assert variances[0] < 0.1 * variances[1]


@pytest.mark.thorough
@given(runs())
def test_rises_are_the_increases_of_the_participation_variance(run):
    """The state's ``rises`` are the increases of the variance per round, summed over tasks."""
    clients, tasks, rounds = run
    assignment, rng = bayes(clients, tasks, history=99), np.random.default_rng(0)
    times, rises = np.zeros((tasks, clients)), []
    for number, (available, shares) in enumerate(rounds):
        chosen = assignment.choose(number, available, shares)
        before = times.var(1).sum()
        for task, them in enumerate(chosen):
            times[task, them] += 1
        if shares.any():
            rises.append(times.var(1).sum() - before)
        assignment.learn(chosen, made_up(rng, chosen)[0])
    assert assignment.state()["rises"] == pytest.approx(rises, abs=1e-12)
    assert assignment.state()["times"].tolist() == times.tolist()


def test_bayes_history_is_bounded_and_omits_rounds_without_clients():
    assignment, rng = bayes(5, 2, history=4), np.random.default_rng(0)
    for number in range(9):
        shares = np.array([2, 1]) if number % 3 else np.array([0, 0])
        chosen = assignment.choose(number, np.arange(5), shares)
        assignment.learn(chosen, made_up(rng, chosen)[0])
    assert {len(assignment.state()[n]) for n in ("features", "round_seconds", "rises")} == {4}


@pytest.mark.thorough
@given(st.integers(1, 12), st.integers(1, 4), st.booleans(), st.integers(0, 2**32))
def test_the_gaussian_process_never_warns(points, features, equal, seed):
    """Repeated points, constant features and constant values give finite results."""
    rng = np.random.default_rng(seed)
    seen = rng.integers(0, 2, (points, features)) * 1e6
    values = np.full(points, 3.0) if equal else rng.exponential(1.0, points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean, deviation = posterior(seen, values, np.vstack([seen, rng.normal(size=(3, features))]))
        gain = expected_improvement(mean, deviation, values.min())
    assert np.isfinite(mean).all()
    assert (deviation >= 0).all()
    assert (gain >= 0).all()


def matern(a, b):
    """Matern covariance with smoothness 5/2, [len(a), len(b)]."""
    r = math.sqrt(5) * np.linalg.norm(a[:, None] - b[None], axis=-1)
    return (1 + r + r**2 / 3) * np.exp(-r)


def test_the_posterior_is_that_of_the_most_likely_grid_point():
    """Mean and deviation equal those of a reference with explicit matrix inverses."""
    rng = np.random.default_rng(1)
    seen, asked = rng.normal(size=(25, 3)), rng.normal(size=(9, 3))
    values = np.sin(seen).sum(1) + 0.1 * rng.normal(size=25)
    mean, deviation = posterior(seen, values, asked)
    centre, spread = seen.mean(0), seen.std(0)
    x, z = (seen - centre) / spread, (asked - centre) / spread
    y = (values - values.mean()) / values.std()
    fits = []
    for length in (0.5, 1.0, 2.0, 5.0):
        unit = length * math.sqrt(3)
        for noise in (0.01, 0.1, 0.5):
            inner = (1 - noise) * matern(x / unit, x / unit) + noise * np.eye(25)
            inverse, cross = np.linalg.inv(inner), (1 - noise) * matern(x / unit, z / unit)
            likelihood = -y @ inverse @ y - np.linalg.slogdet(inner)[1]
            variance = 1 - noise - np.einsum("ia,ij,ja->a", cross, inverse, cross)
            fits.append((likelihood, cross.T @ inverse @ y, variance))
    _, expected, variance = max(fits, key=lambda fit: fit[0])
    assert mean == pytest.approx(values.mean() + values.std() * expected, rel=1e-8)
    assert deviation == pytest.approx(values.std() * np.sqrt(variance), rel=1e-6)


@given(st.floats(-3, 3), st.floats(0.01, 3), st.floats(-3, 3))
def test_expected_improvement_equals_its_integral(mean, deviation, best):
    def weighted(x):
        density = math.exp(-0.5 * ((x - mean) / deviation) ** 2) / (
            deviation * math.sqrt(2 * math.pi)
        )
        return (best - x) * density

    low = min(best, mean - 12 * deviation)
    integral, _ = quad(weighted, low, best, points=[min(best, mean)], limit=200)
    found = expected_improvement(np.array([mean]), np.array([deviation]), best)
    assert found[0] == pytest.approx(integral, abs=1e-7)
    sure = expected_improvement(np.array([mean]), np.array([0.0]), best)
    assert sure[0] == max(best - mean, 0.0)


def known(means, **settings):
    """A bandit with four observations of each pair and mean losses ``means`` [tasks, clients]."""
    assignment = bandit(means.shape[1], len(means), **settings)
    looks = np.full(means.shape, 4.0)
    assignment.restore({"losses": means * looks, "looks": looks, "rounds": np.array([9.0])})
    return assignment


@given(st.integers(1, 8), st.integers(1, 3), st.integers(0, 2**32), st.data())
def test_bandit_without_exploration_is_greedy(clients, tasks, seed, data):
    """The bandit repeatedly takes the pair with the largest mean until all shares are full."""
    rng = np.random.default_rng(seed)
    means = rng.permutation(tasks * clients).reshape(tasks, clients) + 1.0
    available = np.flatnonzero(rng.random(clients) < 0.8)
    cuts = sorted(data.draw(st.integers(0, len(available))) for _ in range(tasks))
    shares = np.diff(cuts, prepend=0)
    picks, free = [[] for _ in range(tasks)], set(available.tolist())
    while any(len(own) < share for own, share in zip(picks, shares, strict=True)):
        open_tasks = [m for m in range(tasks) if len(picks[m]) < shares[m]]
        task, client = max(((m, i) for m in open_tasks for i in free), key=lambda pair: means[pair])
        picks[task].append(client)
        free.remove(client)
    chosen = known(means, exploration=0.0).choose(0, available, shares)
    assert [them.tolist() for them in chosen] == [sorted(own) for own in picks]


def test_bandit_indices_by_hand():
    """After losses 3 and 1 with discount 1/2, n = t = 1/2 + 1 and the mean is (3/2 + 1) / n."""
    assignment = bandit(2, 1, exploration=2.0, discount=0.5)
    for loss in (3.0, 1.0):
        assignment.learn([np.array([0])], [np.array([1.0])], [np.array([loss])])
    expected = 2.5 / 1.5 + math.sqrt(2 * math.log(1.5) / 1.5)
    assert assignment.indices()[0].tolist() == [pytest.approx(expected), np.inf]


def test_bandit_sees_all_pairs_first():
    """In four rounds, each of task 0's 6 pairs is observed, and no pair of task 1 twice."""
    assignment, seen = bandit(6, 2, exploration=0.0), np.zeros((2, 6))
    for number in range(4):
        chosen = assignment.choose(number, np.arange(6), np.array([2, 1]))
        losses = [np.full(len(them), 1.0) for them in chosen]
        assignment.learn(chosen, losses, losses)
        for task, them in enumerate(chosen):
            seen[task, them] += 1
    assert seen[0].sum() == 8
    assert (seen[0] >= 1).all()  # 8 choices for 6 pairs
    assert (seen[1] <= 1).all()


@pytest.mark.parametrize("discount", [0.9, 1.0])
def test_bandit_finds_high_losses_and_keeps_exploring(discount):
    """Clients with high losses are chosen most often; a discount keeps all pairs explored.

    Five of 20 clients have losses around 3, the others around 1. Over eight seeds, the fraction of
    choices with high losses is 0.76 with discount 0.9 (deviation 0.001), and 1 without discount;
    random choices would give 0.25.
    """
    rng, high = np.random.default_rng(0), np.arange(20) % 4 == 0
    assignment, times = bandit(20, 2, exploration=0.1, discount=discount), np.zeros((2, 20))
    for number in range(400):
        chosen = assignment.choose(number, np.arange(20), np.array([2, 2]))
        losses = [np.where(high[them], 3.0, 1.0) + rng.normal(0, 0.3, 2) for them in chosen]
        assignment.learn(chosen, losses, losses)
        if number >= 100:
            for task, them in enumerate(chosen):
                times[task, them] += 1
    assert times[:, high].sum() / times.sum() > 0.7
    if discount < 1:  # otherwise exploration grows with log t alone
        assert (times > 0).all()


def test_bandit_forgets_without_dividing_by_zero():
    assignment = bandit(2, 1, discount=0.5)
    assignment.learn([np.array([0])], [np.array([1.0])], [np.array([2.0])])
    for _ in range(2000):  # 0.5^2000 is zero
        assignment.learn([np.array([1])], [np.array([1.0])], [np.array([2.0])])
    assert np.isinf(assignment.indices()[0, 0])
    assert assignment.indices()[0, 1] == pytest.approx(2 + math.sqrt(0.1 * math.log(2) / 2))


@pytest.mark.thorough
def test_a_thousand_clients_take_little_memory():
    """With 1000 clients and four tasks, the state stays below 100 kB and stops growing."""
    for kind in (random, bayes, bandit):
        settings = {"candidates": 100, "history": 50} if kind is bayes else {}
        assignment, rng, sizes = kind(1000, 4, **settings), np.random.default_rng(0), []
        for number in range(60):
            available = rng.permutation(1000)[:300]
            chosen = assignment.choose(number, available, np.array([100, 84, 48, 68]))
            assignment.learn(chosen, *made_up(rng, chosen))
            sizes.append(sum(value.nbytes for value in assignment.state().values()))
        assert sizes[-1] == sizes[-9] < 100_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("available", "shares", "message"),
    [
        ([0, 1], [2, 1], "shares sum to 3, and 2 clients are available"),
        ([0, 1], [3, -1], "shares contains -1"),
        ([0, 0, 1], [1, 1], "available contains client 0 twice"),
        ([-1, 2], [1, 1], "available contains client -1"),
        ([0.5], [1, 0], r"available has shape \(1,\) and dtype float64"),
        ([[0]], [1, 0], r"available has shape \(1, 1\)"),
    ],
)
def test_invalid_rounds_are_rejected(kind, available, shares, message):
    with pytest.raises(ValueError, match=message):
        KINDS[kind](4, 2).choose(0, np.array(available), np.array(shares))


@pytest.mark.parametrize("kind", [bayes, bandit])
def test_learners_reject_unknown_clients_and_wrong_numbers_of_tasks(kind):
    with pytest.raises(ValueError, match=r"available contains client 4: .* >= 0 and < 4"):
        kind(4, 2).choose(0, np.array([0, 4]), np.array([1, 1]))
    with pytest.raises(ValueError, match="shares has 1 entries: give one for each of 2 tasks"):
        kind(4, 2).choose(0, np.array([0, 3]), np.array([1]))
    with pytest.raises(ValueError, match="give the state of a run with shape"):
        kind(4, 2).restore(kind(4, 3).state())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bandit(0, 1), "clients is 0"),
        (lambda: bandit(1, 1, discount=0), "discount is 0"),
        (lambda: bandit(1, 1, exploration=-1), "exploration is -1"),
        (lambda: bayes(1, 1, fairness=-1), "fairness is -1"),
        (lambda: bayes(1, 1, history=2), "history is 2"),
        (lambda: bandit(1, 1).learn([np.arange(1)], [np.ones(1)]), "losses is None"),
        (
            lambda: bandit(2, 1).learn([np.arange(2)], [np.ones(2)], [np.array([1, np.nan])]),
            r"losses\[0\] is nan for client 1: give a finite number\.",
        ),
        (
            lambda: bayes(1, 1).learn([np.arange(1)], [-np.ones(1)]),
            r"seconds\[0\] is -1.0 for client 0: give a finite number >= 0",
        ),
        (lambda: bayes(1, 1).learn([np.arange(1)], [np.ones(2)]), r"seconds\[0\] has shape \(2,\)"),
        (lambda: bayes(1, 1).learn([np.arange(1)], []), "seconds is 0 arrays"),
    ],
)
def test_invalid_settings_and_observations_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
