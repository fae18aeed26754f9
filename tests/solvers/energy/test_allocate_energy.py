"""``allocate_energy`` against cvxpy and SciPy, its certificate and limits, hard problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from solvers import Status, allocate_bandwidth, allocate_energy
from solvers.energy import prices, rounds

LN2 = np.log(2)


def drawn(random, *shape, regime="mixed", band=1e7):
    """Clients in a cell of 500 m with bits over three decades.

    Power limits are slack, or such that clients with a share of the band each need equally long
    (active), or ten times that for half of them (mixed).
    """
    km = np.sqrt(random.uniform(1e-4, 0.25, shape))
    loss = 128.1 + 37.6 * np.log10(km) + 8 * random.standard_normal(shape)  # 3GPP, in dB
    gain = 10 ** (-loss / 10) / 10 ** (-17.4 - 3)
    bits = 10 ** random.uniform(3.5, 6.5, shape)
    power = np.full(shape, 10.0)
    if regime != "slack":
        share = band * bits**0.7 / (bits**0.7).sum(-1, keepdims=True)
        load = bits / share
        load *= 10 ** random.uniform(0, 1, (*shape[:-1], 1)) / load.max(-1, keepdims=True)
        power = share * np.expm1(load) / gain  # 1 to 10 nats per Hz s at most
        power *= 10 ** (random.integers(0, 2, shape) if regime == "mixed" else 0)
    return {
        "bits": bits,
        "cycles": random.uniform(5e6, 1.5e7, shape) * 10 ** random.uniform(0, 1.5, shape),
        "gain_per_noise": gain,
        "bandwidth_hz": band,
        "max_power_watts": power,
        "max_cpu_hz": random.uniform(5e8, 3e9, shape),
        "kappa": 1e-28,
    }


def least_seconds(problem):
    return allocate_bandwidth(
        problem["bits"],
        problem["cycles"] / problem["max_cpu_hz"],
        problem["gain_per_noise"] * problem["max_power_watts"],
        problem["bandwidth_hz"],
    ).objective


def joules(problem, plan):
    computed = problem["kappa"] * problem["cycles"] * plan.cpu_hz**2
    return (plan.power_watts * plan.upload_seconds + computed).sum(-1)


def assert_within_limits(problem, plan, end, tolerance=1e-11):
    """Bits are delivered in time within the band, at no more than full power and speed."""
    band, seconds, power, speed, _ = plan
    total = np.asarray(problem["bandwidth_hz"])
    assert (band.sum(-1) <= total * (1 + tolerance)).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.nan_to_num(band * np.log1p(power * problem["gain_per_noise"] / band) / LN2)
        busy = np.where(problem["cycles"] == 0, 0.0, problem["cycles"] / speed)
    assert (rate * seconds >= problem["bits"] * (1 - tolerance)).all()
    assert ((busy + seconds).max(-1) <= end * (1 + tolerance)).all()
    assert (power <= problem["max_power_watts"]).all()
    assert (speed <= problem["max_cpu_hz"]).all()


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


def test_time_alone_ends_at_the_least_time():
    """w_E = 0, alone and in a batch with others, has the energy of the deadline T*."""
    problem = drawn(np.random.default_rng(6), 10)
    found = allocate_energy(**problem, weights=(3.0, [0.0, 1.0]))
    soonest = least_seconds(problem)
    assert found.objective[0] == pytest.approx(3 * soonest, rel=1e-13)
    at_once = allocate_energy(**problem, deadline_seconds=soonest)
    spent = joules(problem, found.value)
    assert spent[0] == pytest.approx(at_once.objective, rel=1e-7)
    assert spent[1] < spent[0]
    assert (found.status == Status.OPTIMAL).all()


@pytest.mark.parametrize("regime", ["slack", "mixed", "active"])
def test_a_deadline_of_exactly_the_least_time(regime):
    """T* and times next to it are feasible, with a proven energy; less time is not."""
    problem = drawn(np.random.default_rng(7), 40, 20, regime=regime)
    soonest = least_seconds(problem)
    for ratio in (1, 1 + 1e-12, 1 + 1e-9, 1 + 1e-6, 1.0002):
        found = allocate_energy(**problem, deadline_seconds=ratio * soonest)
        assert (found.status == Status.OPTIMAL).all()
        assert_within_limits(problem, found.value, ratio * soonest)
    short = allocate_energy(**problem, deadline_seconds=soonest * (1 - 1e-9))
    assert (short.status == Status.INFEASIBLE).all()
    assert (short.value.bandwidth_hz == -1).all()
    assert (short.value.seconds == -1).all()
    assert np.isinf(short.objective).all()


def test_a_window_of_rounding_errors_delays_nobody():
    """Client 1 computes until 1e-5 s before T*; duality fails there, but the bound is near."""
    problem = {
        "bits": np.array([2.7e7, 3.9e2, 1.8e4]),
        "cycles": np.array([7.5e4, 9.14376e10, 7.8e3]),
        "gain_per_noise": np.array([1.04e9, 4.4e7, 5.1e7]),
        "bandwidth_hz": 4.45e7,
        "max_power_watts": np.ones(3),
        "max_cpu_hz": np.full(3, 1e9),
        "kappa": 1e-28,
    }
    end = least_seconds(problem)
    found = allocate_energy(**problem, deadline_seconds=end)
    assert_within_limits(problem, found.value, end)
    later = allocate_energy(**problem, deadline_seconds=end * (1 + 1e-9))
    assert found.bound == pytest.approx(later.objective, rel=1e-3)
    assert later.objective < found.objective


@pytest.mark.parametrize("regime", ["slack", "mixed", "active"])
def test_clients_alone_in_the_band_bound_the_energy(regime, monkeypatch):
    """Where duality fails; for one client without energy of the CPU, the bound is tight."""
    random = np.random.default_rng(12)
    problem = drawn(random, 60, 4, regime=regime)
    problem["bits"][::3, 1] = problem["cycles"][::4, 2] = 0
    one = drawn(random, 20, 1, regime=regime) | {"kappa": 0}
    goals = {"deadline_seconds": least_seconds(problem) * 10 ** random.uniform(0, 1, 60)}
    ends = {"deadline_seconds": least_seconds(one) * 10 ** random.uniform(0, 1, 20)}
    cases = [(problem, goals), (problem, {"weights": (1, 10 ** random.uniform(-3, 3, 60))})]
    cases += [(one, ends)]
    optima = [allocate_energy(**case, **goal).objective for case, goal in cases]
    monkeypatch.setattr(rounds, "dual", lambda _, price, *rest: (price + np.inf, price))
    bounds = [allocate_energy(**case, **goal).bound for case, goal in cases]
    for bound, optimum in zip(bounds, optima, strict=True):
        assert (bound > 0).all()
        assert (bound <= optimum * (1 + 1e-12)).all()
    np.testing.assert_allclose(bounds[2], optima[2], rtol=1e-9)


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


def test_clients_without_bits_or_cycles():
    """They need no band or no frequency; what they compute still costs energy."""
    limits = {"max_power_watts": [0.1, 0.1, 0, 0.1], "max_cpu_hz": [2e9, 0, 2e9, 0], "kappa": 1e-28}
    clients = ([1e5, 1e5, 0, 0], [1e7, 0, 1e7, 0], [1e10, 1e10, 0, 0])
    found = allocate_energy(*clients, 1e6, deadline_seconds=0.5, **limits)
    assert found.status is Status.OPTIMAL
    assert found.gap < 1e-12
    np.testing.assert_array_equal(found.value.bandwidth_hz > 0, [True, True, False, False])
    assert found.value.bandwidth_hz.sum() == pytest.approx(1e6)
    assert found.value.upload_seconds[1] == pytest.approx(0.5)
    np.testing.assert_allclose(found.value.cpu_hz[1:], [0, 2e7, 0])
    np.testing.assert_array_equal(found.value.power_watts[2:], 0)
    weighed = allocate_energy(*clients, 1e6, weights=(1, 1e3), **limits)
    at_end = allocate_energy(*clients, 1e6, deadline_seconds=weighed.value.seconds, **limits)
    assert weighed.gap < 1e-12
    assert weighed.objective == pytest.approx(weighed.value.seconds + 1e3 * at_end.objective)


@pytest.mark.parametrize("joule", [1e-9, 1e12])
def test_a_slow_client_without_bits_can_decide_the_end(joule):
    """The round ends no sooner than its computation; then the others have time to spare."""
    limits = {"max_power_watts": 0.1, "max_cpu_hz": [2e9, 1e6], "kappa": 1e-28}
    found = allocate_energy([1e5, 0], 1e7, 1e10, 1e6, weights=(1, joule), **limits)
    assert found.status is Status.OPTIMAL
    if joule < 1:
        assert found.value.seconds == 10.0
    else:
        assert found.value.seconds > 10.0


def test_nothing_to_send():
    """Only computation: f = c / T; with weights, 2 w_E sum kappa c^3 = w_T T^3."""
    limits = {"max_power_watts": 0.1, "max_cpu_hz": 2e9, "kappa": 1e-28}
    found = allocate_energy([0, 0.0], [1e7, 2e7], 1.0, 1e6, deadline_seconds=2, **limits)
    assert found.objective == pytest.approx(1e-28 * (1e21 + 8e21) / 4)
    assert found.gap == 0
    weighed = allocate_energy([0, 0.0], [1e7, 2e7], 1.0, 1e6, weights=(1, 1e9), **limits)
    assert weighed.value.seconds == pytest.approx((2e9 * 9e-7) ** (1 / 3))
    assert weighed.status is Status.OPTIMAL
    nothing = allocate_energy([0.0], 0, 1.0, 1e6, weights=(1, 1), **limits)
    assert nothing.objective == nothing.value.seconds == 0
    late = allocate_energy([0.0], 1e9, 1.0, 1e6, deadline_seconds=0.1, **limits)
    assert late.message.endswith("client 0 needs 0.5 s in the whole band")


def test_free_computation_is_as_fast_as_it_can_be():
    problem = drawn(np.random.default_rng(9), 10) | {"kappa": 0}
    end = 1.5 * least_seconds(problem)
    found = allocate_energy(**problem, deadline_seconds=end)
    assert found.gap < 1e-12
    np.testing.assert_allclose(found.value.cpu_hz, problem["max_cpu_hz"])


def test_one_client_takes_all():
    problem = drawn(np.random.default_rng(10), 1)
    found = allocate_energy(**problem, deadline_seconds=2 * least_seconds(problem))
    assert found.value.bandwidth_hz == pytest.approx([1e7])
    assert found.gap < 1e-12


def test_wide_spreads_and_many_clients():
    """150 dB between channels, powers over 6 decades, and 20,000 clients in one cell."""
    random = np.random.default_rng(11)
    for clients in (50, 20_000):
        problem = drawn(random, clients, regime="slack")
        problem["gain_per_noise"] = 10 ** random.uniform(0, 15, clients)
        problem["max_power_watts"] = 10 ** random.uniform(0, 6, clients)
        for ratio in (1.02, 3):
            end = ratio * least_seconds(problem)
            found = allocate_energy(**problem, deadline_seconds=end)
            assert found.gap < 1e-9
            assert_within_limits(problem, found.value, end)


@pytest.mark.parametrize("band", [5e16, 1e17, 1e18, 1e20])
@pytest.mark.parametrize("late", [0, 1e-12, 1e-9])
def test_energy_where_rates_hardly_depend_on_bands(band, late):
    """At the least time all send at full power, whatever rounding errors do to the price."""
    bits, gain = np.array([1.33e16, 5.28e16, 2.2e16]), np.array([202.0, 75.0, 142.0])
    power = np.array([0.0323, 0.00414, 0.00603])
    limits = {"max_power_watts": power, "max_cpu_hz": 5e8, "kappa": 1e-28}
    least = allocate_bandwidth(bits, 20.0, power * gain, band).objective
    found = allocate_energy(bits, 1e10, gain, band, deadline_seconds=least * (1 + late), **limits)
    assert found.objective <= (power * least).sum() * (1 + 1e-6)
    assert found.bound <= found.objective
    assert (found.value.power_watts <= power * (1 + 1e-9)).all()
    ratio = found.value.power_watts * gain / found.value.bandwidth_hz
    rate = found.value.bandwidth_hz * np.log1p(ratio) / np.log(2)
    assert (rate * found.value.upload_seconds >= bits * (1 - 1e-9)).all()


def test_computations_end_in_time_where_rates_hardly_depend_on_bands():
    """Client 1 needs full power, and longer than the price of the band says."""
    problem = {
        "bits": np.array([9.026e10, 2.995e9]),
        "cycles": np.array([1.434e8, 1.178e10]),
        "gain_per_noise": np.array([5.229e5, 3638]),
        "bandwidth_hz": 1.7e19,
        "max_power_watts": np.array([0.0643, 0.0085]),
        "max_cpu_hz": np.array([1.387e8, 3.051e8]),
        "kappa": 1e-28,
    }
    end = 1.1 * least_seconds(problem)
    found = allocate_energy(**problem, deadline_seconds=end)
    assert (problem["cycles"] / found.value.cpu_hz + found.value.upload_seconds <= end).all()
    assert found.gap < 1e-12


def test_costly_time_where_rates_hardly_depend_on_bands(monkeypatch):
    """Then T is hardly above the least time, and the energy is that of full power.

    Rounding errors hide the price; the search ends before its limit.
    """
    tried = []
    state = prices._state
    monkeypatch.setattr(prices, "_state", lambda *given: tried.append(1) or state(*given))
    near = np.exp(1e-6 * np.random.default_rng(0).standard_normal((200, 9)))
    bits, cycles, gain, band, power, speed, kappa, second, joule = (
        near * (96275, 8147956620, 820286, 8.7e10, 8.1e-5, 213782, 2.4e-27, 1094.6, 6.2e-4)
    ).T[..., None]
    solution = allocate_energy(
        bits,
        cycles,
        gain,
        band[:, 0],
        max_power_watts=power,
        max_cpu_hz=speed,
        kappa=kappa,
        weights=(second[:, 0], joule[:, 0]),
    )
    least = allocate_bandwidth(bits, cycles / speed, gain * power, band[:, 0]).objective
    energy = (kappa * cycles * speed**2)[:, 0] + power[:, 0] * (least - (cycles / speed)[:, 0])
    cost = second[:, 0] * least + joule[:, 0] * energy
    np.testing.assert_allclose(solution.objective, cost, rtol=1e-6)
    np.testing.assert_allclose(solution.bound, cost, rtol=1e-6)
    assert (solution.value.power_watts <= power * (1 + 1e-12)).all()
    assert 1 < len(tried) < prices._MAX_STEPS
