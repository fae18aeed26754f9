"""``allocate_energy`` against cvxpy and SciPy, its certificate and limits, hard problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from solvers import Status, allocate_energy
from tests.solvers.energy.cells import assert_within_limits, drawn, joules, least_seconds

LN2 = np.log(2)


@pytest.mark.parametrize("regime", ["slack", "mixed", "active"])
def test_every_instance_of_a_sweep_is_solved(regime):
    """Gaps are far below 1e-6, and the plans keep all limits, from 1.02 to 10 times T*."""
    random = np.random.default_rng(len(regime))
    problem = drawn(random, 100, 50, regime=regime)
    end = least_seconds(problem) * np.where(
        np.arange(100) < 40, 1.02, 10 ** random.uniform(np.log10(1.02), 1, 100)
    )
    found = allocate_energy(**problem, deadline_seconds=end)
    assert (found.status == Status.OPTIMAL).all()
    assert found.gap.max() < 1e-10
    np.testing.assert_allclose(found.value.bandwidth_hz.sum(-1), 1e7, rtol=1e-13)
    assert_within_limits(problem, found.value, end)
    np.testing.assert_allclose(joules(problem, found.value), found.objective, rtol=1e-12)
    full = (found.value.power_watts >= problem["max_power_watts"]).mean()
    fast = (found.value.cpu_hz >= problem["max_cpu_hz"]).mean()
    assert (full < 0.2) if regime == "slack" else (0.2 < full < 0.9)
    assert fast > 0.03


def by_cvxpy(problem, end=None, weights=None):
    """The geometric program; (exp(x) - 1) / x is the mean of exp(v x), by Gauss and Legendre."""
    cvxpy = pytest.importorskip("cvxpy")
    clients = len(problem["bits"])
    nodes, means = np.polynomial.legendre.leggauss(14)
    band, seconds, speed = (cvxpy.Variable(clients, pos=True) for _ in range(3))  # MHz, s, GHz
    last = cvxpy.Variable(pos=True)
    limits, spent = [cvxpy.sum(band) <= problem["bandwidth_hz"] / 1e6], 0
    for i in range(clients):
        nats = problem["bits"][i] * LN2
        load = nats / 1e6 / (band[i] * seconds[i])
        mean = sum(m / 2 * cvxpy.exp((1 + v) / 2 * load) for v, m in zip(nodes, means, strict=True))
        sent = nats / problem["gain_per_noise"][i] * mean
        cycles = problem["cycles"][i] / 1e9
        spent += sent + problem["kappa"] * 1e27 * cycles * speed[i] ** 2
        limits += [
            sent <= problem["max_power_watts"][i] * seconds[i],
            cycles / speed[i] + seconds[i] <= (last if end is None else end),
            speed[i] <= problem["max_cpu_hz"][i] / 1e9,
        ]
    cost = spent if weights is None else weights[0] * last + weights[1] * spent
    program = cvxpy.Problem(cvxpy.Minimize(cost), limits)
    exact = {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}
    return program.solve(gp=True, solver="CLARABEL", **exact)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("regime", "ratio"), [("slack", 2.0), ("mixed", 1.02), ("mixed", 3.0), ("active", 1.1)]
)
def test_a_geometric_program_agrees(regime, ratio):
    problem = drawn(np.random.default_rng(3), 4, regime=regime, band=1e6)
    end = ratio * least_seconds(problem)
    found = allocate_energy(**problem, deadline_seconds=end)
    assert found.objective == pytest.approx(by_cvxpy(problem, end), rel=1e-6)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 10.0)])
def test_a_geometric_program_agrees_on_the_end(weights):
    problem = drawn(np.random.default_rng(4), 3, band=1e6)
    found = allocate_energy(**problem, weights=weights)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(by_cvxpy(problem, weights=weights), rel=1e-6)


def alone(problem, i, band, end):
    """Least joules of a client within a band, by bounded search over its window."""
    one = {name: np.broadcast_to(values, 2)[i] for name, values in problem.items()}
    gain, cycles = one["gain_per_noise"], one["cycles"]
    rate = band * np.log2(1 + one["max_power_watts"] * gain / band)
    first, last = one["bits"] / rate, end - cycles / one["max_cpu_hz"]
    if first > last:
        return 1e6 * (1 + first - last)

    def spent(seconds):
        u = band * seconds
        sent = u / gain * np.expm1(one["bits"] * LN2 / u)
        return sent + one["kappa"] * cycles**3 / (end - seconds) ** 2

    best = minimize_scalar(spent, bounds=(first, last), options={"xatol": 1e-12}, method="bounded")
    return min(best.fun, spent(first), spent(last))


@pytest.mark.parametrize(("seed", "ratio"), [(0, 1.02), (1, 1.3), (2, 4.0)])
def test_no_split_between_two_clients_is_better(seed, ratio):
    """Brute force: all splits of the band, and every client's window by itself."""
    problem = drawn(np.random.default_rng(seed), 2, band=1e6)
    end = ratio * least_seconds(problem)
    found = allocate_energy(**problem, deadline_seconds=end)

    def split(share):
        return alone(problem, 0, share * 1e6, end) + alone(problem, 1, (1 - share) * 1e6, end)

    shares = np.linspace(0.01, 0.99, 99)
    middle = shares[np.argmin([split(share) for share in shares])]
    around = (max(middle - 0.01, 1e-4), min(middle + 0.01, 1 - 1e-4))
    best = minimize_scalar(split, bounds=around, method="bounded", options={"xatol": 1e-10})
    assert found.objective == pytest.approx(best.fun, rel=1e-7)


@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from(["slack", "mixed", "active"]))
def test_optimality_conditions_hold(seed, clients, regime):
    """One price of the band; a second is worth the same to computation and upload.

    At full power the band is worth more than its marginal energy, at full speed the second.
    """
    random = np.random.default_rng(seed)
    problem = drawn(random, clients, regime=regime, band=1e6)
    end = least_seconds(problem) * 10 ** random.uniform(0.01, 1)
    found = allocate_energy(**problem, deadline_seconds=end)
    band, seconds, power, speed, _ = found.value
    x = problem["bits"] * LN2 / (band * seconds)
    marginal = seconds * (1 + (x - 1) * np.exp(x)) / problem["gain_per_noise"]  # -de/db
    free = power < problem["max_power_watts"] * (1 - 1e-9)
    slow = speed < problem["max_cpu_hz"] * (1 - 1e-9)
    computing = 2 * problem["kappa"] * speed**3
    uploading = marginal * band / seconds  # -de/dt
    # A price times |b'(t)| less P, where the least band of the window is taken at full power.
    steep = band / seconds * (1 + np.expm1(x) / (1 + (x - 1) * np.exp(x)))
    price = [marginal[free], ((computing + power) / steep)[slow & ~free]]
    price = np.concatenate(price)
    if price.size:
        np.testing.assert_allclose(price, price[0], rtol=1e-6)
        assert (marginal[~free] <= price[0] * (1 + 1e-6)).all()
        late = ~slow & ~free
        assert (price[0] * steep[late] - power[late] >= computing[late] * (1 - 1e-6)).all()
    np.testing.assert_allclose(uploading[free & slow], computing[free & slow], rtol=1e-6)
    assert (uploading[free & ~slow] >= computing[free & ~slow] * (1 - 1e-6)).all()


@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from(["slack", "mixed", "active"]))
def test_no_feasible_plan_beats_the_bound(seed, clients, regime):
    """Random bands, windows in between: those in time cost no less than the bound."""
    random = np.random.default_rng(seed)
    problem = drawn(random, clients, regime=regime, band=1e6)
    end = least_seconds(problem) * 10 ** random.uniform(0.01, 1)
    found = allocate_energy(**problem, deadline_seconds=end)
    assert found.gap <= 1e-9
    assert_within_limits(problem, found.value, end)
    band = found.value.bandwidth_hz * np.exp(0.1 * random.standard_normal((200, clients)))
    band *= 1e6 / band.sum(-1, keepdims=True)
    snr = problem["max_power_watts"] * problem["gain_per_noise"]
    first = problem["bits"] / (band * np.log2(1 + snr / band))
    last = end - problem["cycles"] / problem["max_cpu_hz"]
    seconds = first + random.uniform(0, 1, band.shape) * (last - first)
    sent = np.expm1(problem["bits"] * LN2 / (band * seconds)) * band * seconds
    spent = sent / problem["gain_per_noise"]
    spent += problem["kappa"] * problem["cycles"] ** 3 / (end - seconds) ** 2
    in_time = (first <= last).all(-1)
    assert (spent.sum(-1)[in_time] >= found.bound * (1 - 1e-12)).all()


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_more_of_anything_costs_no_more(seed, clients):
    """More band, power, speed, gain or time; fewer bits or cycles; and a convex front."""
    random = np.random.default_rng(seed)
    problem = drawn(random, clients, band=1e6)
    end = least_seconds(problem) * 10 ** random.uniform(0.01, 1)
    spent = allocate_energy(**problem, deadline_seconds=end).objective
    easier = {
        name: np.stack([np.broadcast_to(value, clients)] * 6) for name, value in problem.items()
    }
    for row, name in enumerate(easier.keys() - {"kappa"}):
        easier[name][row] *= 0.7 if name in ("bits", "cycles") else 1.3
    easier["bandwidth_hz"] = easier["bandwidth_hz"][:, 0]
    less = allocate_energy(**easier, deadline_seconds=end).objective
    assert (less <= spent * (1 + 1e-9)).all()
    front = allocate_energy(**problem, deadline_seconds=end * np.linspace(1, 2, 7)).objective
    assert (np.diff(front) <= 1e-9 * spent).all()
    assert (np.diff(front, 2) >= -1e-9 * spent).all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", ["slack", "mixed", "active"])
def test_weights_find_the_best_end(regime):
    """No other deadline costs less, in w_T seconds + w_E joules; energy alone waits long."""
    random = np.random.default_rng(5)
    problem = drawn(random, 20, 15, regime=regime)
    joule = 10 ** random.uniform(-5, 7, 20)
    found = allocate_energy(**problem, weights=(2.0, joule))
    end = found.value.seconds
    assert (found.status == Status.OPTIMAL).all()
    assert_within_limits(problem, found.value, end)
    cost = 2 * end + joule * joules(problem, found.value)
    np.testing.assert_allclose(found.objective, cost, rtol=1e-12)
    soonest = least_seconds(problem)
    assert (end >= soonest * (1 - 1e-12)).all()
    for factor in (0.5, 0.99, 1.01, 2):
        other = soonest + factor * (end - soonest)
        spent = allocate_energy(**problem, deadline_seconds=other).objective
        assert (2 * other + joule * spent >= found.bound * (1 - 1e-12)).all()
    assert (end < 1.001 * soonest).any()
    assert (end > 5 * soonest).any()


def test_equal_clients_get_equal_shares():
    limits = {"max_power_watts": 0.1, "max_cpu_hz": 2e9, "kappa": 1e-28}
    found = allocate_energy(np.full(7, 1e5), 1e7, 1e10, 1e6, deadline_seconds=1.0, **limits)
    np.testing.assert_allclose(found.value.bandwidth_hz, 1e6 / 7, rtol=1e-14)
    for part in found.value[:4]:
        np.testing.assert_allclose(part, part[0], rtol=1e-12)
    assert isinstance(found.objective, float)
    assert found.value.seconds == 1.0


def test_the_front_is_a_batch_of_deadlines():
    """One call gives the same as one call each; a batch may mix what is feasible and what not."""
    problem = drawn(np.random.default_rng(8), 12)
    ends = least_seconds(problem) * np.array([[0.5, 1.02, 1.1], [1.5, 2, 5]])
    front = allocate_energy(**problem, deadline_seconds=ends)
    assert front.value.bandwidth_hz.shape == (2, 3, 12)
    assert front.value.seconds.shape == front.objective.shape == (2, 3)
    assert front.message.startswith("1 of 6 problems are infeasible; item [0, 0]: deadline_seconds")
    for index in np.ndindex(2, 3):
        single = allocate_energy(**problem, deadline_seconds=ends[index])
        assert single.status is front.status[index]
        if index != (0, 0):
            assert single.objective == pytest.approx(front.objective[index], rel=1e-12)
            np.testing.assert_allclose(single.value.cpu_hz, front.value.cpu_hz[index], rtol=1e-9)
