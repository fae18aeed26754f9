"""``allocate_energy`` at its limits: the shortest round, idle clients, extreme numbers."""

import numpy as np
import pytest

from solvers import Status, allocate_bandwidth, allocate_energy
from solvers.energy import band_price, least_energy
from tests.solvers.energy.cells import assert_within_limits, drawn, joules, least_seconds


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


@pytest.mark.thorough(every=8)
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


@pytest.mark.thorough(every=8)
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
    monkeypatch.setattr(
        least_energy, "dual", lambda _, price, *rest: (price + np.inf, price, price)
    )
    bounds = [allocate_energy(**case, **goal).bound for case, goal in cases]
    for bound, optimum in zip(bounds, optima, strict=True):
        assert (bound > 0).all()
        assert (bound <= optimum * (1 + 1e-12)).all()
    np.testing.assert_allclose(bounds[2], optima[2], rtol=1e-9)


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


@pytest.mark.thorough
def test_costly_time_where_rates_hardly_depend_on_bands(monkeypatch):
    """Then T is hardly above the least time, and the energy is that of full power.

    Rounding errors hide the price; the search ends before its limit.
    """
    tried = []
    state = band_price._state
    monkeypatch.setattr(band_price, "_state", lambda *given: tried.append(1) or state(*given))
    near = np.exp(1e-6 * np.random.default_rng(0).standard_normal((60, 9)))
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
    assert 1 < len(tried) < band_price._MAX_STEPS
