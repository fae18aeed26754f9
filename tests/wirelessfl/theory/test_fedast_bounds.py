"""FedAST, Theorems 1 and 2: terms by hand, asynchronous runs on quadratics, errors of proofs."""

import heapq
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.engine.events import Ask, Measure, Measured, Returned, Started
from wirelessfl.engine.schedules.buffered_scheduler import BufferedScheduler, TaskPlan
from wirelessfl.theory import BufferedRun, fedast_theorem_1, fedast_theorem_2
from wirelessfl.theory.fedast_bounds import noise_growth

RUN = BufferedRun(
    rounds=50,
    buffer=4,
    requests=9,
    local_steps=3,
    smoothness=2.0,
    gradient_variance=5.0,
    heterogeneity=7.0,
    initial_gap=3.0,
    largest_staleness=6,
)
F = Fraction
STEPS = {"server_lr": 0.5, "client_lr": 1 / 256}
ETA_S, ETA_C, L, TAU, B, R, GAMMA, T = F(1, 2), F(1, 256), 2, 3, 4, 9, 6, 50
ETA = TAU * ETA_S
VARIANCE, APART, GAP = 5, 7, 3


def check(bound, terms, margin):
    assert bound.margin == pytest.approx(float(margin), rel=1e-12)
    assert bound.terms == pytest.approx({name: float(term) for name, term in terms.items()})
    assert bound.total == pytest.approx(float(sum(terms.values())))


def test_the_printed_bounds_by_hand():
    """The last displays of appendices E and F, and the left-hand sides of (53) and (59)."""
    d = L**2 * ETA_C**2 * TAU * (TAU - 1)
    stale = F(L**2 * ETA**2 * ETA_C**2 * R, B**2)
    terms = {
        "initial_gap": 11 * GAP / (T * ETA * ETA_C),
        "gradient_noise": 11
        * VARIANCE
        * (
            L * ETA * ETA_C / (2 * TAU * B)
            + 3 * L**3 * ETA_C**3 * ETA * TAU / (4 * (1 - d))
            + L**2 * ETA_C**2 * TAU / (4 * (1 - d))
        ),
        "heterogeneity": 11
        * APART
        * (
            3 * L * ETA * ETA_C / (2 * B)
            + 3 * L * ETA * ETA_C * d / (2 * (1 - d))
            + d / (2 * (1 - d))
        ),
        "stale_noise": 11
        * VARIANCE
        * (1 + 3 * R * L**2 * ETA_C**2 * TAU**2 / (2 * (1 - d)))
        * stale
        / (2 * TAU),
        "stale_heterogeneity": 11 * APART * (1 + d) / (1 - d) * 3 * stale * R / 2,
        "first_requests": 0,
    }
    margin = (
        F(1, 2)
        - 3 * L * ETA * ETA_C / 2
        - d / (2 * (1 - d))
        - 3 * L * ETA * ETA_C * d / (2 * (1 - d))
        - 3 * stale * B * GAMMA / 2 * (1 + d) / (1 - d)
    )
    check(fedast_theorem_1(RUN, **STEPS, printed=True), terms, margin)
    rho = F(6, 4)
    terms = {
        "initial_gap": 11 * GAP * rho / (T * ETA * ETA_C),
        "gradient_noise": 11
        * VARIANCE
        * (
            2 * rho**3 * L * ETA * ETA_C / (TAU * B)
            + 3 * rho**3 * L**3 * ETA_C**3 * ETA * TAU / (1 - d)
            + rho**2 * L**2 * ETA_C**2 * TAU / (2 * (1 - d))
        ),
        "heterogeneity": 11
        * APART
        * (
            6 * rho**3 * L * ETA * ETA_C / B
            + 6 * rho**3 * L * ETA * ETA_C * d / (1 - d)
            + rho**2 * d / (1 - d)
        ),
        "stale_noise": 11
        * VARIANCE
        * (1 + 3 * R * L**2 * ETA_C**2 * TAU**2 / (2 * (1 - d)))
        * stale
        * rho**2
        / TAU,
        "stale_heterogeneity": 11 * APART * (1 + d) / (1 - d) * 3 * stale * R * rho**2,
        "first_requests": 0,
    }
    margin = (
        F(1, 2)
        - 6 * rho**3 * L * ETA * ETA_C
        - rho**2 * d / (1 - d)
        - 6 * rho**3 * L * ETA * ETA_C * d / (1 - d)
        - 6 * stale * B * rho**3 * GAMMA * (1 + d) / (1 - d)
    ) / rho
    check(fedast_theorem_2(RUN, **STEPS, largest_buffer=6, printed=True), terms, margin)


def test_the_derived_bound_by_hand():
    """The steps of the proof with the corrections of the module's header."""
    s, low, high, most, b_max = ETA * ETA_C, F(3, 6), F(10, 4), 10, 6
    d = 2 * L**2 * ETA_C**2 * TAU * (TAU - 1)
    growth = sum((1 + L * ETA_C) ** (2 * j) for j in range(TAU)) / F(TAU)
    lemma_2 = L**2 * ETA_C**2 * TAU / (1 - d) * VARIANCE + d / (1 - d) * APART
    lemma_6 = {
        "stale_noise": F(L**2 * s**2 * R, B**2)
        * (growth / TAU + 3 * R * L**2 * ETA_C**2 * TAU / (1 - d))
        * VARIANCE,
        "stale_heterogeneity": 3 * L**2 * s**2 * F(R**2, B**2) * (1 + d) / (1 - d) * APART,
    }
    occurrence = high / 2 * 3 * L**2 * s**2 * F(R, B**2) * (1 + d) / (1 - d)

    def coefficient(share):
        return share / 2 - share / 2 * d / (1 - d) - F(3, 2) * L * s * share**2 * (1 + d / (1 - d))

    late = min(coefficient(low), coefficient(high)) - occurrence * most * GAMMA
    first = F(R - 1, B)
    gain = F(R - 1, b_max) * (F(1, 2) - d / (2 * (1 - d)))
    loss = F(3, 2) * L * s * first**2 * (1 + d / (1 - d))
    margin = min(late, late + gain - loss - occurrence * (R - 1) * (GAMMA + 1))
    startup = (first / 2 + F(3, 2) * L * s * first**2) * lemma_2
    startup += L * s * first**2 / 2 * (growth * VARIANCE / TAU + 3 * APART) / (R - 1)
    noise_only = L**2 * ETA_C**2 * TAU / (1 - d) * VARIANCE
    weight = high / 2 + F(3, 2) * L * s * high**2
    terms = {
        "initial_gap": GAP / (T * s),
        "gradient_noise": weight * noise_only + L * s / 2 * high / B * growth * VARIANCE / TAU,
        "heterogeneity": weight * (lemma_2 - noise_only) + L * s / 2 * high / B * 3 * APART,
        **{name: high / 2 * term for name, term in lemma_6.items()},
        "first_requests": startup / T,
    }
    bound = fedast_theorem_2(RUN, **STEPS, largest_buffer=b_max, sent=(3, 10))
    check(bound, {name: term / margin for name, term in terms.items()}, margin)
    assert bound.holds
    assert bound.margin > 0


def test_theorem_1_is_theorem_2_with_a_constant_buffer():
    static = fedast_theorem_1(RUN, **STEPS)
    dynamic = fedast_theorem_2(RUN, **STEPS, largest_buffer=4, sent=(4, 4))
    assert dynamic.terms == static.terms
    assert dynamic.margin == static.margin


@given(st.integers(1, 80), st.integers(0, 40), st.integers(1, 12), st.integers(1, 40), st.data())
def test_the_printed_step_sizes_leave_a_margin_of_1_in_11(buffer, merges, more, tau, data):
    """(53) and (59) hold at the limits of the step sizes, also with the corrections."""
    requests = 1 + data.draw(st.integers(0, buffer * merges)) if merges else 1
    staleness = -(-(requests - 1) // buffer) + more - 1
    run = replace(
        RUN, buffer=buffer, requests=requests, local_steps=tau, largest_staleness=staleness
    )
    limits = fedast_theorem_1(run, **STEPS).step_sizes
    steps = {"server_lr": limits.server, "client_lr": limits.client}
    for printed in (False, True):
        bound = fedast_theorem_1(run, **steps, printed=printed)
        assert bound.holds
        assert bound.margin >= 1 / 11
    largest = data.draw(st.integers(buffer, 3 * buffer))
    limits = fedast_theorem_2(run, **STEPS, largest_buffer=largest).step_sizes
    steps = {"server_lr": limits.server, "client_lr": limits.client}
    for printed in (False, True):
        bound = fedast_theorem_2(run, **steps, largest_buffer=largest, printed=printed)
        assert bound.holds
        assert bound.margin * largest / buffer >= 1 / 11


def test_step_sizes_beyond_the_limits_have_no_bound():
    """Too large a step of the server, of the clients, or of both: the bound says so."""
    limits = fedast_theorem_1(RUN, **STEPS).step_sizes
    assert limits.server == pytest.approx(math.sqrt(12))
    assert limits.buffer == pytest.approx(1 / (36 * math.sqrt(12)))
    assert limits.staleness == pytest.approx(1 / (24 * math.sqrt(3 * 54))) == limits.client
    for steps in ({"server_lr": 40.0}, {"client_lr": 0.15}, {"client_lr": 1.0}):
        bound = fedast_theorem_1(RUN, **STEPS | steps)
        assert not bound.holds
        assert bound.total == math.inf
        assert bound.margin <= 0
        assert not fedast_theorem_1(RUN, **STEPS | steps, printed=True).holds
    # A version that no client gets moves nothing.
    assert not fedast_theorem_2(RUN, **STEPS, largest_buffer=6, sent=(0, 8)).holds


CLIENTS, SIZE = 10, 4


class Quadratics:
    """f_i(x) = x'Hx/2 - c_i'x with known constants, and Algorithms 1 and 2 with random delays."""

    def __init__(self, seed, noise, apart, smoothness=2.0):
        rng = np.random.default_rng(seed)
        self.curvature = np.linspace(0.1, smoothness, SIZE)
        shifts = rng.normal(size=(CLIENTS, SIZE))
        shifts -= shifts.mean(0)
        self.shifts = (
            shifts * math.sqrt(apart / np.square(shifts).sum(1).max()) if apart else 0 * shifts
        )
        self.start = rng.normal(size=SIZE) * 2
        self.deviation = math.sqrt(noise / SIZE)
        self.constants = {
            "smoothness": smoothness,
            "gradient_variance": noise,
            "heterogeneity": apart,
            "initial_gap": float(self.curvature @ self.start**2) / 2,
        }

    def local(self, rng, client, x, tau, lr):
        moved = x.copy()
        for _ in range(tau):
            noise = self.deviation * rng.normal(size=SIZE)
            moved -= lr * (self.curvature * moved - self.shifts[client] + noise)
        return (x - moved) / (tau * lr)

    def run(self, seed, *, rounds, buffers, requests, tau, server_lr, client_lr, by_version=False):
        """Mean of ||grad f||^2 over rounds, largest staleness, and requests sent per version.

        Args:
            buffers: [versions], size of the buffer for each version.
            requests: [versions], R of each version; reached by 0 to 2 requests per update.
            by_version: weights of Remark 7, 1 / |A|, instead of 1 / b.
        """
        rng = np.random.default_rng(seed)
        slowness = np.random.default_rng(99).choice([0.7, 1.0, 1.3], CLIENTS)
        x, version, active, number = self.start.copy(), 0, 0, 0
        heap, buffer, sent = [], [], np.zeros(rounds + 1, dtype=int)
        norms, stalest, now = [float(np.sum((self.curvature * x) ** 2))], 0, 0.0

        def ask(count):
            nonlocal active, number
            for _ in range(count):
                client = int(rng.integers(CLIENTS))
                update = self.local(rng, client, x, tau, client_lr)
                delay = slowness[client] * (1 + rng.exponential(2))
                heapq.heappush(heap, (now + delay, number, version, update))
                number, active = number + 1, active + 1
                sent[version] += 1

        ask(requests[0])
        while version < rounds:
            now, _, issued, update = heapq.heappop(heap)
            active -= 1
            buffer.append((issued, update))
            stalest = max(stalest, version - issued)
            if len(buffer) >= buffers[version]:
                shares = [1 / (sent[v] if by_version else len(buffer)) for v, _ in buffer]
                step = sum(
                    share * update for share, (_, update) in zip(shares, buffer, strict=True)
                )
                x = x - server_lr * client_lr * tau * step
                version, buffer = version + 1, []
                if version < rounds:
                    norms.append(float(np.sum((self.curvature * x) ** 2)))
            ask(min(2, max(requests[min(version, rounds - 1)] - active, 0)))
        return float(np.mean(norms)), stalest, sent


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("by_version", [False, True])
@pytest.mark.parametrize(
    ("buffer", "requests", "tau", "noise", "apart"),
    [(3, 8, 3, 0.5, 0.5), (1, 6, 1, 2.0, 0.0), (5, 5, 4, 0.0, 0.0), (2, 20, 2, 0.0, 3.0)],
)
def test_theorem_1_holds_on_quadratics(buffer, requests, tau, noise, apart, by_version):
    """The mean over 20 runs of Algorithm 2 is below the bound, at the largest step sizes."""
    problem, rounds, staleness = Quadratics(3, noise, apart), 120, 60
    run = BufferedRun(
        rounds=rounds,
        buffer=buffer,
        requests=requests,
        local_steps=tau,
        largest_staleness=staleness,
        **problem.constants,
    )
    limits = fedast_theorem_1(run, **STEPS).step_sizes
    steps = {"server_lr": limits.server, "client_lr": limits.client}
    sizes = {"buffers": [buffer] * rounds, "requests": [requests] * rounds, "tau": tau}
    means = []
    for seed in range(20):
        mean, stalest, sent = problem.run(
            seed, rounds=rounds, **sizes, **steps, by_version=by_version
        )
        assert stalest <= staleness
        # b requests per version, and R + b - 1 of version 0, where the paper counts b.
        assert sent[0] == requests + buffer - 1
        assert (sent[1:rounds] == buffer).all()
        means.append(mean)
    for printed in (False, True):
        assert np.mean(means) < fedast_theorem_1(run, **steps, printed=printed).total
    # A gradient does not shrink by itself: the bound is not met by a run that has not started.
    assert np.mean(means) < float(np.sum((problem.curvature * problem.start) ** 2))


def test_theorem_2_holds_on_quadratics():
    """Requests and buffer change; the bound uses the numbers of requests that versions got."""
    problem, rounds, staleness = Quadratics(4, 0.5, 0.5), 90, 40
    requests = [6] * 30 + [9] * 30 + [7] * 30
    buffers = [2] * 30 + [3] * 60
    steps = {"server_lr": 0.5, "client_lr": 0.002}
    means, low, high = [], 10**6, 0
    for seed in range(20):
        mean, stalest, sent = problem.run(
            seed, rounds=rounds, buffers=buffers, requests=requests, tau=2, **steps
        )
        assert stalest <= staleness
        low, high = min(low, *sent[1:rounds]), max(high, *sent[1:rounds])
        means.append(mean)
    assert low == 1  # less than b_min, so that 1 / rho_b <= |A^t| / b of appendix F fails
    run = BufferedRun(
        rounds=rounds,
        buffer=2,
        requests=9,
        local_steps=2,
        largest_staleness=staleness,
        **problem.constants,
    )
    bound = fedast_theorem_2(run, **steps, largest_buffer=3, sent=(int(low), int(high)))
    assert bound.holds
    assert np.mean(means) < bound.total


def test_a_run_beyond_the_limits_diverges():
    """60 times the largest step size: gradients grow beyond the bound at the largest one."""
    problem = Quadratics(3, 0.0, 0.0)
    run = BufferedRun(
        rounds=120, buffer=1, requests=20, local_steps=1, largest_staleness=60, **problem.constants
    )
    limits = fedast_theorem_1(run, **STEPS).step_sizes
    bound = fedast_theorem_1(run, server_lr=limits.server, client_lr=limits.client)
    steps = {"server_lr": limits.server, "client_lr": 60 * limits.client}
    assert not fedast_theorem_1(run, **steps).holds
    mean, _, _ = problem.run(0, rounds=120, buffers=[1] * 120, requests=[20] * 120, tau=1, **steps)
    assert mean > bound.total


def test_local_steps_amplify_noise():
    """Lemmas 2 and 4: exact moments of local steps on -L x^2 / 2 from x = 0, where h = 0.

    x_k = eta_c sum_j (1 + a)^(k-1-j) e_j with a = L eta_c and noise e_j of variance 1, up to signs.
    """
    a, tau = F(1, 100), 20
    eta, smooth = F(1, 200), 2
    squares = [eta**2 * sum((1 + a) ** (2 * j) for j in range(k)) for k in range(tau + 1)]
    variance = squares[tau] / (tau * eta) ** 2
    assert variance > F(1, tau)  # Lemma 4, as printed
    assert float(variance * tau) == pytest.approx(noise_growth(tau, float(a)), rel=1e-14)
    # (54), L^2 / tau sum_k E x_k^2, exceeds what Lemma 2 concludes from it; twice D and noise hold.
    drift = smooth**2 / F(tau) * sum(squares[1:tau])
    d = a**2 * tau * (tau - 1)
    assert drift > a**2 * tau / 2 / (1 - d)
    assert drift <= a**2 * (tau - 1) / (1 - 2 * d)
    # Convex losses have no such error.
    shrunk = sum((1 - a) ** (2 * j) for j in range(tau)) / F(tau) ** 2
    assert shrunk < F(1, tau)


def test_the_first_version_is_in_progress_longer_than_the_paper_counts():
    """(31) for y = 0: R = 7, b = 2 and returns in the order of the requests."""
    requests, buffer, rounds = 7, 2, 12
    versions, occurrences, queue = [], {}, [0] * requests
    for version in range(rounds):
        for held in queue[
            : requests - 1
        ]:  # the last one replaces the update that filled the buffer
            occurrences[held] = occurrences.get(held, 0) + 1
        for arrival in range(buffer):
            versions.append(version - queue.pop(0))
            queue.append(version + (arrival == buffer - 1))
    staleness = max(versions)
    assert staleness == 3 == -(-(requests - 1) // buffer)
    assert occurrences[0] > buffer * staleness
    assert occurrences[0] <= buffer * staleness + (requests - 1) * (staleness + 1)
    assert max(count for version, count in occurrences.items() if version) <= buffer * staleness


def test_reduced_requests_leave_versions_without_any():
    """Theorem 2, 0 < |A^t|: the server of Algorithm 2 sends nothing while R falls."""
    plans = [TaskPlan(24, 3, 99), TaskPlan(24, 3, 99)]
    server = BufferedScheduler(plans, period=1 / 96, floor=8)
    server.decide(Started())
    sent = {}
    for number in range(16):
        decisions = server.decide(Returned(number, 0, 0))
        if isinstance(decisions[0], Measure):
            decisions = server.decide(Measured((1.0, 5.0)))
        version = server.tasks[0].version
        sent[version] = sent.get(version, 0) + sum(
            decision.count for decision in decisions if isinstance(decision, Ask)
        )
    assert server.tasks[0].requests == 8
    assert [sent[version] for version in (2, 3, 4)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replace(RUN, rounds=1.5), r"rounds is 1\.5"),
        (lambda: replace(RUN, heterogeneity=-1), "heterogeneity is -1"),
        (lambda: fedast_theorem_1(RUN, server_lr=0, client_lr=1), "server_lr is 0"),
        (lambda: fedast_theorem_1(RUN, server_lr=1, client_lr=-1), "client_lr is -1"),
        (
            lambda: fedast_theorem_1(replace(RUN, largest_staleness=1), **STEPS),
            "largest_staleness is 1, but requests=9 in buffers of 4 .* give 2 or more",
        ),
        (lambda: fedast_theorem_2(RUN, **STEPS, largest_buffer=3), "largest_buffer is 3"),
        (lambda: fedast_theorem_2(RUN, **STEPS, largest_buffer=4, sent=(3, 2)), r"sent\[1\] is 2"),
    ],
)
def test_invalid_arguments_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()
