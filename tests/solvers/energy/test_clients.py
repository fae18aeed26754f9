"""What clients do at a price of the band: against brute force, derivatives, and weak duality."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from solvers.energy.clients import Clients, dual, growth, settle


def drawn(random, shape, scale=1.0):
    """Clients with SNRs and CPU loads over decades, and an end that all of them can keep."""
    nats = 10 ** random.uniform(3, 6, shape)
    gain = 10 ** random.uniform(7, 13, shape)
    cycles = 10 ** random.uniform(6, 8, shape)
    speed = 10 ** random.uniform(8, 9.5, shape)
    power = nats / gain * 10 ** random.uniform(0, 3, shape) * scale
    clients = Clients(nats, cycles, gain, power, speed, np.full(shape, 1e-28), np.ones(shape))
    end = (cycles / speed + nats / (power * gain)).max(-1) * 10 ** random.uniform(0.01, 1, shape[0])
    price = 10 ** random.uniform(-12, -2, shape[0])
    return clients, price, end


def settled(clients, price, end):
    start = np.zeros(clients.nats.shape)
    return settle(clients, price, end, start, start > 0, np.full(len(price), 1e-7))


def test_growth_is_exact():
    """D = sum over k >= 2 of (k - 1) x^k / k!, for x from 1e-8 to 1."""
    x = 10 ** np.linspace(-8, 0, 200)
    terms, factorial = 0, 1.0
    for k in range(2, 30):
        factorial *= k
        terms += (k - 1) * x**k / factorial
    np.testing.assert_allclose(growth(x, np.expm1(x)), terms, rtol=1e-12)


def test_replies_are_the_least_costs():
    """Each client's cost is that of brute force over its window, with the best band for each."""
    clients, price, end = drawn(np.random.default_rng(3), (24, 1))
    replies = settled(clients, price, end)
    bound, *_ = dual(clients, price, end, replies)
    kinds = set()
    for row in range(24):
        n, c, g, p, f, kappa, _ = (array[row, 0] for array in clients)

        def cost(window, row=row, n=n, c=c, g=g, p=p, kappa=kappa):
            def spent(log_band):
                u = np.exp(log_band) * window
                return u / g * np.expm1(n / u) + price[row] * np.exp(log_band)

            low, high = np.log(n / window) - 6, np.log(n / window) + 20
            for _ in range(50):  # least band at full power, by bisection
                middle = (low + high) / 2
                b = np.exp(middle)
                enough = window * b * np.log1p(p * g / b) >= n
                low, high = (low, middle) if enough else (middle, high)
            best = minimize_scalar(
                spent, bounds=(high, high + 25), method="bounded", options={"xatol": 1e-11}
            )
            return min(best.fun, spent(high)) + kappa * c**3 / (end[row] - window) ** 2

        first, last = n / (p * g) * (1 + 1e-9), end[row] - c / f
        bounds = np.log(first), np.log(last)
        grid = np.linspace(*bounds, 24)
        k = int(np.argmin([cost(np.exp(w)) for w in grid]))
        near = grid[max(k - 1, 0)], grid[min(k + 1, 23)]
        best = minimize_scalar(
            lambda w, cost=cost: cost(np.exp(w)),
            bounds=near,
            method="bounded",
            options={"xatol": 1e-10},
        )
        least = min(best.fun, cost(last))
        assert bound[row] == pytest.approx(least, rel=1e-7)
        fast = clients.frequency(replies.worth)[row, 0] >= f
        kinds.add((bool(replies.limited[row, 0]), bool(fast)))
    assert len(kinds) == 4  # at full power or below, at full speed or below


def test_every_y_gives_a_lower_bound():
    """Weak duality holds away from the solution too, on the curve of either kind."""
    random = np.random.default_rng(1)
    clients, price, end = drawn(random, (200, 5))
    replies = settled(clients, price, end)
    best, *_ = dual(clients, price, end, replies)
    for scale in (1e-8, 1e-4, 1e-2, 1.0):
        y = replies.y + scale * random.standard_normal(replies.y.shape)
        limited = replies.limited ^ (random.random(y.shape) < 0.2)
        other, *_ = dual(clients, price, end, replies._replace(y=y, limited=limited))
        assert (other <= best + 1e-11 * np.abs(best)).all()


@pytest.mark.parametrize("curve", [True, False])
def test_either_curve_gives_a_lower_bound_beyond_the_other(curve):
    """Weak duality for each client alone: also at SNRs at which its curve is not valid."""
    clients, price, end = drawn(np.random.default_rng(5), (1000, 1))
    replies = settled(clients, price, end)
    best, *_ = dual(clients, price, end, replies)
    limited = np.full(replies.y.shape, curve)
    for step in np.linspace(-3, 3, 13):
        other = replies._replace(y=replies.y + step, limited=limited)
        bound, *_ = dual(clients, price, end, other)
        assert (bound <= best + 1e-11 * np.abs(best)).all()


def test_derivatives_agree_with_differences():
    """Those of the replies with respect to the price and to the end, away from kinks."""
    clients, price, end = drawn(np.random.default_rng(2), (200, 5))
    replies = settled(clients, price, end)
    step = 1e-6
    dearer = settled(clients, price * np.exp(step), end)
    longer = settled(clients, price, end * (1 + step))
    same = (dearer.limited == replies.limited) & (longer.limited == replies.limited)
    for name in ("band", "worth"):
        for other, by, unit in ((dearer, "price", 1.0), (longer, "end", end[:, None])):
            before, after = getattr(replies, name), getattr(other, name)
            difference = np.log(after / before)[same] / step
            exact = (getattr(replies, f"{name}_{by}") * unit)[same]
            close = np.isclose(difference, exact, rtol=1e-3, atol=1e-5)
            assert close.mean() > 0.99
