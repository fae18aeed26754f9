"""``align_transmitters`` against brute force, cvxpy, inversion and its own bounds."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers import Status, align_transmitters, optimize_beamformer
from solvers.alignment.alignment_problem import read_arguments
from solvers.alignment.gains import fill
from solvers.alignment.relaxation import relax, weighted_bound

VARIANTS: list[dict[str, Any]] = [
    {},
    {"correlation": 0.5},
    {"correlation": 0.99},
    {"unbiased_sum": True},
    {"unbiased_sum": True, "correlation": 0.5},
]


def rayleigh(seed: int, *shape: int) -> Any:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((*shape, 2)).view(complex)[..., 0] / np.sqrt(2)


def drawn(seed: int, clients: int, antennas: int, spread_db: float = 10.0) -> Any:
    """Channels, weights and amplitudes of one problem."""
    rng = np.random.default_rng(seed + 1)
    h = rayleigh(seed, clients, antennas) * 10 ** (
        rng.uniform(-1, 1, (clients, 1)) * spread_db / 20
    )
    return h, rng.dirichlet(np.ones(clients)), rng.uniform(0.5, 2, clients)


def errors(h: Any, q: Any, value: Any, noise: Any, c: float = 0.0) -> tuple[Any, Any]:
    """Bias and noise parts for a value, one client at a time."""
    a, b = value.receive, value.transmit
    w = np.stack([(a.conj() * h[..., i, :]).sum(-1) * b[..., i] for i in range(h.shape[-2])], -1)
    bias = (1 - c) * (np.abs(w - q) ** 2).sum(-1) + c * np.abs((w - q).sum(-1)) ** 2
    return bias, noise * (np.abs(a) ** 2).sum(-1)


def inversion(h: Any, q: Any, amplitude: Any, noise: Any) -> Any:
    """Error of channel inversion with the beamformer that makes it least."""
    return noise / optimize_beamformer(h, scales=q / amplitude).objective


def by_cvxpy(h: Any, q: Any, amplitude: Any, noise: float, options: dict[str, Any]) -> float:
    """The convex problem over A >= 0 in place of a a^H, which one antenna solves exactly."""
    cp = pytest.importorskip("cvxpy")
    c, (clients, antennas) = options.get("correlation", 0.0), h.shape
    w, scale = cp.Variable(clients), cp.Variable()
    if antennas == 1:
        power, limits = cp.square(scale), [w <= cp.multiply(amplitude * np.abs(h[:, 0]), scale)]
    else:
        matrix = cp.Variable((antennas, antennas), hermitian=True)
        power, limits = cp.real(cp.trace(matrix)), [matrix >> 0]
        for i, x in enumerate(h):
            gain = cp.real(cp.trace(np.outer(x, x.conj()) @ matrix))
            limits.append(w[i] <= amplitude[i] * cp.sqrt(gain))
    total = cp.sum(w - q)
    if options.get("unbiased_sum"):
        limits.append(total == 0)
    error = (1 - c) * cp.sum_squares(w - q) + c * cp.square(total)
    problem = cp.Problem(cp.Minimize(error + noise * power), limits)
    return float(problem.solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("clients", [1, 2, 7, 20])
def test_one_antenna_is_solved_exactly(clients: int, options: dict[str, Any]) -> None:
    """The bound is the objective up to rounding at any SNR, and the value has this error."""
    c = options.get("correlation", 0.0)
    h = rayleigh(clients, 6, clients, 1) * 10 ** np.linspace(-2, 4, 6)[:, None, None]
    q = np.random.default_rng(1).dirichlet(np.ones(clients), 6)
    found = align_transmitters(h, q, 2.0, 0.5, **options)
    assert (found.status == Status.OPTIMAL).all()
    assert found.gap.max() < 1e-12
    assert (np.abs(found.value.transmit) <= 2 * (1 + 1e-15)).all()
    bias, noise = errors(h, q, found.value, 0.5, c)
    np.testing.assert_allclose(found.value.noise, noise, rtol=1e-12)
    np.testing.assert_allclose(found.value.bias, bias, rtol=1e-6, atol=1e-24)
    np.testing.assert_allclose(found.objective, bias + noise, rtol=1e-9)
    if options.get("unbiased_sum"):
        w = (found.value.receive * found.value.transmit * h[..., 0]).sum(-1)
        assert w == pytest.approx(q.sum(-1), rel=1e-12)


def test_the_closed_form_of_one_antenna() -> None:
    """1 / sqrt(eta) is the largest ratio over the clients sorted by a_i / q_i (Cao et al. 2020)."""
    h, q, amplitude = drawn(3, 9, 1)
    a = amplitude * np.abs(h[:, 0])
    order = np.argsort(a / q)
    ratios = np.cumsum((q * a)[order]) / (0.1 + np.cumsum((a**2)[order]))
    found = align_transmitters(h, q, amplitude, 0.1)
    assert found.value.receive[0] == pytest.approx(ratios.max(), rel=1e-12)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize(("clients", "antennas"), [(6, 1), (6, 3)])
def test_the_bound_is_that_of_a_cone_program(
    clients: int, antennas: int, options: dict[str, Any]
) -> None:
    h, q, amplitude = drawn(clients, clients, antennas)
    found = align_transmitters(h, q, amplitude, 0.1, starts=4, **options)
    expected = by_cvxpy(h, q, amplitude, 0.1, options)
    assert found.bound == pytest.approx(expected, rel=1e-5)
    assert found.status is Status.OPTIMAL or antennas > 1


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", [VARIANTS[0], VARIANTS[4]])
def test_the_relaxation_is_tight_for_three_clients(options: dict[str, Any]) -> None:
    """It then has a solution of rank one (Huang and Palomar, 2010)."""
    found = align_transmitters(rayleigh(3, 12, 3, 4), 1 / 3, 1.0, np.logspace(-3, 1, 12), **options)
    assert (found.status == Status.OPTIMAL).all()


@pytest.mark.thorough
def test_sums_with_two_antennas_match_a_grid_search() -> None:
    """All directions of two antennas, (cos u, sin u e^jv), each with its best length."""
    u, v = np.meshgrid(np.linspace(0, np.pi / 2, 60), np.linspace(0, 2 * np.pi, 120))
    grid = np.stack([np.cos(u) + 0j, np.sin(u) * np.exp(1j * v)], -1).reshape(-1, 2)
    h, q, _ = drawn(7, 6, 2)
    for options in ({}, {"correlation": 0.5}, {"unbiased_sum": True}):
        channels = (grid.conj() @ h.T)[..., None]
        best = align_transmitters(channels, q, 1.0, 0.05, **options).objective.min()
        found = align_transmitters(h, q, 1.0, 0.05, **options)
        assert found.bound <= found.objective <= best * (1 + 1e-12)
        assert found.objective == pytest.approx(best, rel=1e-3)


@settings(max_examples=8)
@given(st.integers(1, 7), st.integers(1, 4), st.floats(-20, 40), st.integers(0, 10**6))
def test_no_point_is_below_the_bound(clients: int, antennas: int, snr: float, seed: int) -> None:
    """Random receivers have larger errors, and the value has the objective as its error."""
    h, q, amplitude = drawn(seed, clients, antennas)
    noise = 10 ** (-snr / 10)
    found = align_transmitters(h, q, amplitude, noise, starts=4)
    a = rayleigh(seed + 2, 500, antennas) * 10 ** np.random.default_rng(3).uniform(-2, 2, (500, 1))
    reach = np.abs(a.conj() @ h.T) * amplitude
    values = (np.maximum(q - reach, 0) ** 2).sum(-1) + noise * (np.abs(a) ** 2).sum(-1)
    assert values.min() >= found.bound * (1 - 1e-12)
    bias, part = errors(h, q, found.value, noise)
    assert bias + part == pytest.approx(found.objective, rel=1e-9)
    assert (np.abs(found.value.transmit) <= amplitude * (1 + 1e-15)).all()


@given(st.integers(1, 8), st.integers(0, 10**6))
def test_the_weights_of_given_limits_are_optimal(clients: int, seed: int) -> None:
    """No feasible weights have a smaller error; the multipliers are its slope."""
    rng = np.random.default_rng(seed)
    q, y = rng.uniform(0, 1, clients), rng.uniform(0, 2, clients)
    kappa = 10 ** rng.uniform(-2, 2)

    def error(limits: Any) -> float:
        return float(
            fill(
                torch.from_numpy(q),
                torch.from_numpy(limits),
                torch.tensor(kappa, dtype=torch.float64),
                torch.ones(clients, dtype=torch.bool),
            ).error
        )

    w = np.minimum(rng.uniform(-1, 2, (300, clients)), y)
    others = ((w - q) ** 2).sum(-1) + (w - q).sum(-1) ** 2 / kappa
    assert error(y) <= others.min() * (1 + 1e-12)
    found = fill(
        *(torch.from_numpy(x) for x in (q, y)),
        torch.tensor(kappa, dtype=torch.float64),
        torch.ones(clients, dtype=torch.bool),
    )
    step = 1e-6 * np.eye(clients)
    slope = [(error(y + row) - error(y - row)) / 2e-6 for row in step]
    np.testing.assert_allclose(slope, -2 * found.multipliers.numpy(), atol=1e-5)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", [VARIANTS[0], VARIANTS[4]])
def test_inversion_is_never_better(options: dict[str, Any]) -> None:
    """It satisfies every variant's constraints and has no error but noise."""
    h, noise = rayleigh(8, 4, 12, 5), np.array([1, 0.1, 0.01, 1e-4])
    q = np.random.default_rng(8).dirichlet(np.ones(12), 4)
    found = align_transmitters(h, q, 2.0, noise, starts=1, **options)
    assert (found.objective <= inversion(h, q, 2.0, noise) * (1 + 1e-9)).all()


def test_phases_scales_and_order_do_not_matter() -> None:
    h, q, amplitude = drawn(11, 6, 3)
    turned = h * np.exp(1j * np.random.default_rng(0).uniform(0, 6, (6, 1)))
    unitary = np.linalg.qr(rayleigh(1, 3, 3))[0]
    order = np.random.default_rng(2).permutation(6)
    same = align_transmitters(
        np.stack([h, turned, h @ unitary, h[order], h * 1e-6, h]),
        np.stack([q, q, q, q[order], q, 7 * q]),
        np.stack([amplitude, amplitude, amplitude, amplitude[order], amplitude * 1e3, amplitude]),
        [0.1, 0.1, 0.1, 0.1, 1e-7, 0.1],
    )
    factor = np.array([1, 1, 1, 1, 1, 49])
    np.testing.assert_allclose(same.objective, same.objective[0] * factor, rtol=1e-6)
    np.testing.assert_allclose(same.bound, same.bound[0] * factor, rtol=1e-6)
    other = align_transmitters(h, q, amplitude, 0.1, seed=3, starts=80)
    assert other.objective == pytest.approx(same.objective[0], rel=1e-6)


def test_very_high_snr_is_channel_inversion() -> None:
    """1 + SNR then rounds to the SNR, and no client may seem to be at its limit."""
    h = np.array([1.0, 0.5, 2.0]) + 0j
    for noise in np.geomspace(1e-12, 1e-20, 9):
        for options in VARIANTS:
            solution = align_transmitters(h, 1 / 3, 1.0, noise, **options)
            assert solution.objective == pytest.approx(noise * (1 / 3 / 0.5) ** 2, rel=1e-6)
            assert solution.status is Status.OPTIMAL
    unheard = np.concatenate([h, [0]])
    assert align_transmitters(unheard, 0.5, 1.0, 1e-17).objective == pytest.approx(0.25)
    many = rayleigh(11, 4, 3, 2)
    solution = align_transmitters(many, 1 / 3, 1.0, 1e-17)
    inverted = inversion(many, np.full(3, 1 / 3), 1.0, 1e-17)
    assert (solution.objective <= inverted * (1 + 1e-9)).all()


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", [VARIANTS[0], VARIANTS[4]])
def test_absent_and_unheard_clients(options: dict[str, Any]) -> None:
    """A client of weight 0 changes nothing; one without a channel sends nothing and is missed."""
    h, q, amplitude = drawn(5, 5, 3)
    alone = align_transmitters(h[1:], q[1:], amplitude[1:], 0.1, **options)
    with_absent = align_transmitters(h, [0, *q[1:]], amplitude, 0.1, **options)
    assert with_absent.objective == pytest.approx(alone.objective, rel=1e-6)
    assert with_absent.bound == pytest.approx(alone.bound, rel=1e-6)
    assert with_absent.value.transmit[0] == 0
    h[0] = 0
    unheard = align_transmitters(h, q, amplitude, 0.1, **options)
    assert unheard.value.transmit[0] == 0
    assert unheard.objective > alone.objective
    assert unheard.bound <= unheard.objective


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("antennas", "options"),
    [*((1, variant) for variant in VARIANTS), (2, VARIANTS[-1]), (2, {"certificate": "exact"})],
)
def test_clients_that_cannot_send_are_named(antennas: int, options: dict[str, Any]) -> None:
    """With the reason; the error counts them, and is that of the others if they have weight 0."""
    h, q, amplitude = drawn(19, 4, antennas)
    h[0], amplitude[2] = 0, 0
    found = align_transmitters(h, q, amplitude, 1e-3, **options)
    text = "client 0 cannot send: h is 0; client 2 cannot send: max_amplitude is 0"
    assert found.message == text
    c = options.get("correlation", 0.0)
    assert found.objective > (1 - c) * (q[0] ** 2 + q[2] ** 2)
    others = align_transmitters(h, q * [0, 1, 0, 1], amplitude, 1e-3, **options)
    assert others.message == ""
    same = align_transmitters(h[1::2], q[1::2], amplitude[1::2], 1e-3, **options)
    assert others.objective == pytest.approx(same.objective, rel=1e-6)
    many = align_transmitters(h, [q * [0, 1, 0, 1], q, q], amplitude, 1e-3, **options)
    assert many.message == f"2 of 3 problems go without clients; item [1]: {text}"
    assert many.objective[1] == pytest.approx(found.objective, rel=1e-6)


def test_a_client_below_the_range_is_not_taken_for_one_that_cannot_send() -> None:
    with pytest.raises(ValueError, match=r"of client \[1\] is 0e\+00: give values within"):
        align_transmitters(np.array([1, 1e-300 + 0j]), 1.0, [1.0, 1e-60], 1.0)


@pytest.mark.thorough
def test_exact_certificates_close_the_gap() -> None:
    """Branch and bound reaches 1e-4, and agrees with many starts."""
    h = rayleigh(0, 30, 5, 3)[23:24]
    loose = align_transmitters(h, 1 / 5, 1.0, 0.1)
    exact = align_transmitters(h, 1 / 5, 1.0, 0.1, certificate="exact", time_limit_seconds=math.inf)
    assert (exact.status == Status.OPTIMAL).all()
    assert exact.gap.max() <= 1e-4
    assert loose.gap.max() > 1e-2
    assert (exact.bound >= loose.bound).all()
    many = align_transmitters(h, 1 / 5, 1.0, 0.1, starts=200, seed=9)
    assert (many.objective >= exact.bound).all()
    np.testing.assert_allclose(exact.objective, many.objective, rtol=1.01e-4)


def test_bounds_hold_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake clock advances by 0.1 s per reading: the result does not depend on the load."""
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: 0.1 * next(ticks))
    monkeypatch.setattr("solvers.alignment.branch_and_bound.time", clock)
    h = rayleigh(9, 10, 6)
    found = align_transmitters(h, 0.1, 1.0, 0.1, certificate="exact", time_limit_seconds=0.15)
    assert found.status is Status.FEASIBLE
    assert found.message == "1 of 1 problems not closed in 0.15 s"
    assert found.bound <= align_transmitters(h, 0.1, 1.0, 0.1, starts=100).objective


def test_any_weights_prove_a_bound_below_that_of_the_relaxation() -> None:
    h, q, amplitude = drawn(13, 6, 3)
    problem = read_arguments(h, q, amplitude, 0.1, 0.3, False).problems
    best = relax(problem).bound
    for seed in range(5):
        w = torch.from_numpy(np.random.default_rng(seed).uniform(0, 1, (1, 6)))
        covariance = (problem.g * w.unsqueeze(-1)).mT @ problem.g.conj()
        w = w / torch.linalg.eigvalsh(covariance)[:, -1:]
        assert weighted_bound(problem, w) <= best


def test_twenty_clients_and_one_antenna_on_average() -> None:
    """Gain over inversion, and what correlation changes, for Rayleigh fading."""
    h = rayleigh(0, 1000, 20, 1)
    for snr, ratio, correlated in ((-10, 29, 0.037), (0, 8.5, 0.0075), (10, 2.8, 0.0020)):
        noise = 10 ** (-snr / 10)
        found = align_transmitters(h, 1 / 20, 1.0, noise)
        inverted = noise / 400 / (np.abs(h) ** 2).min((-1, -2))
        assert np.median(inverted / found.objective) == pytest.approx(ratio, rel=0.1)
        aware = align_transmitters(h, 1 / 20, 1.0, noise, correlation=0.5)
        assert np.mean(aware.objective) == pytest.approx(correlated, rel=0.1)
        bias, part = errors(h, 1 / 20, found.value, noise, 0.5)
        assert np.mean(bias + part) > 1.6 * np.mean(aware.objective)


def test_batches_shapes_and_tensors() -> None:
    """Arguments broadcast; items equal single problems; tensors give tensors."""
    h = rayleigh(15, 2, 5, 3)
    noise = np.array([[1.0], [0.1], [0.01]])
    found = align_transmitters(h, 0.2, 1.0, noise)
    assert found.value.receive.shape == (3, 2, 3)
    assert found.value.transmit.shape == (3, 2, 5)
    assert found.objective.shape == found.status.shape == found.value.bias.shape == (3, 2)
    alone = align_transmitters(h[1], 0.2, 1.0, 0.1)
    assert isinstance(alone.objective, float)
    assert alone.objective == pytest.approx(found.objective[1, 1], rel=1e-6)
    tensor: Any = align_transmitters(torch.from_numpy(h), 0.2, torch.ones(5), torch.tensor(0.1))
    assert tensor.value.receive.dtype == torch.complex128
    np.testing.assert_allclose(tensor.objective, found.objective[1], rtol=1e-6)
    flat = align_transmitters(h[0, :, 0], 0.2, 1.0, 0.1)
    assert flat.value.receive.shape == (1,)
    empty = align_transmitters(np.zeros((0, 4, 2), complex), 1.0, 1.0, 1.0)
    assert empty.value.transmit.shape == (0, 4)
    assert empty.objective.shape == (0,)


def test_a_sum_that_nobody_can_send_is_infeasible() -> None:
    h = rayleigh(16, 2, 3, 2)
    h[1] = 0
    found = align_transmitters(h, 1.0, 1.0, 1.0, unbiased_sum=True)
    assert found.status.tolist()[1] is Status.INFEASIBLE
    assert found.objective[1] == np.inf
    assert (found.value.transmit[1] == -1).all()
    text = "clients 0, 1, 2 cannot send: h is 0, so sum w cannot reach sum q"
    assert found.message == f"1 of 2 problems are infeasible; item [1]: {text}"
    alone = align_transmitters(h[1], 1.0, 1.0, 1.0, unbiased_sum=True)
    assert (alone.value, alone.status, alone.message) == (None, Status.INFEASIBLE, text)
    silent = align_transmitters(h[1], 1.0, 1.0, 1.0)
    assert silent.objective == silent.bound == 3.0


H = rayleigh(17, 3, 2)
GOOD: dict[str, Any] = {"h": H, "weights": 1.0, "max_amplitude": 1.0, "noise_variance": 1.0}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": np.ones((3, 2))}, "h has dtype float64: give complex"),
        ({"h": torch.ones(3, 2)}, "h has dtype torch.float32: give complex"),
        ({"h": np.zeros((3, 0), complex)}, r"h has shape \(3, 0\)"),
        ({"h": 1e200 * H}, r"client \[0\] is \de\+\d+: .* Change the unit"),
        ({"weights": 0.0}, "weights are 0 for every client of a problem"),
        ({"noise_variance": np.ones((2, 3, 4, 1)), "h": H[None, None, None]}, None),
        ({"certificate": "exact", "correlation": 0.5}, "'exact' conflicts with correlation"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_invalid_input_is_named(change: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert align_transmitters(**GOOD | change).objective.shape == (2, 3, 4, 1)
        return
    with pytest.raises(ValueError, match=message) as caught:
        align_transmitters(**GOOD | change)
    assert "\n" not in str(caught.value)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("options", VARIANTS)
def test_without_a_certificate(options: dict[str, Any]) -> None:
    """The error is within 1 % of that of the full search, and there is no bound."""
    h, q = rayleigh(8, 3, 8, 3), np.random.default_rng(8).dirichlet(np.ones(8), 3)
    amplitude = 10 ** (np.linspace(-10, 30, 3) / 20)[:, None]
    full = align_transmitters(h, q, amplitude, 0.5, **options)
    found = align_transmitters(h, q, amplitude, 0.5, certificate=None, **options)
    assert (found.objective <= full.objective * 1.01).all()
    assert np.isnan(found.bound).all()
    assert np.isnan(found.gap).all()
    assert (found.status == Status.FEASIBLE).all()
    bias, noise = errors(h, q, found.value, 0.5, options.get("correlation", 0.0))
    np.testing.assert_allclose(found.objective, bias + noise, rtol=1e-9)
    assert (np.abs(found.value.transmit) <= amplitude * (1 + 1e-12)).all()
    if not options:
        inverted = inversion(h, q, amplitude + 0 * q, np.full(3, 0.5))
        assert (found.objective <= inverted * (1 + 1e-6)).all()
    if options.get("unbiased_sum"):
        w = (np.einsum("pm,pkm->pk", found.value.receive.conj(), h) * found.value.transmit).sum(-1)
        np.testing.assert_allclose(w, q.sum(-1), rtol=1e-9)


def test_without_a_certificate_one_antenna_is_solved_exactly_all_the_same() -> None:
    h, q, amplitude = drawn(2, 5, 1)
    found = align_transmitters(h, q, amplitude, 0.5, certificate=None)
    full = align_transmitters(h, q, amplitude, 0.5)
    assert found.objective == full.objective
    assert found.bound == full.bound
    assert found.status is Status.OPTIMAL
