"""Receive beamformers match closed forms, brute force, duality bounds and the exact method."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from solvers import BEAMFORMER_BACKENDS, Status, optimize_beamformer
from solvers.beamforming import Anneal, BranchAndBound
from solvers.beamforming.branch_and_bound import branch_and_bound

Channels = NDArray[np.complex128]
ENDLESS = BranchAndBound(time_limit_seconds=math.inf)  # results do not depend on the load


def rayleigh(seed: int, *shape: int, path_gain_db: float = 0.0) -> Channels:
    """CN(0, I) channels with random path gains between -``path_gain_db`` and +``path_gain_db``."""
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((*shape, 2)).view(complex)[..., 0] / np.sqrt(2)
    gain = rng.uniform(-path_gain_db, path_gain_db, (*shape[:-1], 1))
    return h * 10 ** (gain / 20)


def min_gain(h: Channels, a: Channels) -> NDArray[np.float64]:
    """min_i |a^H h_i|^2, by a loop over the clients."""
    each = [np.abs((a.conj() * h[..., i, :]).sum(-1)) ** 2 for i in range(h.shape[-2])]
    return np.min(each, axis=0)


def test_one_client_gets_the_matched_filter() -> None:
    h = rayleigh(1, 7, 1, 5)
    solution = optimize_beamformer(h)
    np.testing.assert_allclose(solution.objective, (np.abs(h) ** 2).sum((-1, -2)), rtol=1e-12)
    assert (solution.status == Status.OPTIMAL).all()


def test_one_antenna_has_the_gain_of_the_weakest_client() -> None:
    h = rayleigh(2, 6, 1)
    solution = optimize_beamformer(h)
    assert solution.objective == pytest.approx(np.abs(h).min() ** 2, rel=1e-12)
    assert solution.status is Status.OPTIMAL
    assert abs(abs(solution.value[0]) - 1) < 1e-12


@pytest.mark.parametrize("clients", [2, 3])
def test_duality_is_tight_for_up_to_three_clients(clients: int) -> None:
    """Then the semidefinite relaxation has a rank-one solution (Huang and Palomar, 2010)."""
    solution = optimize_beamformer(rayleigh(3, 20, clients, 4), certificate="sdr")
    assert solution.gap.max() < 1e-3
    assert np.median(solution.gap) < 1e-6
    assert (solution.status == Status.OPTIMAL).sum() >= 18


def test_orthogonal_clients_share_evenly() -> None:
    """For orthogonal channels with norms r_i, the optimum is 1 / sum_i (1 / r_i^2)."""
    norms = np.array([1.0, 2.0, 0.5])
    unitary = np.linalg.qr(rayleigh(4, 6, 6))[0]
    solution = optimize_beamformer(norms[:, None] * unitary[:3])
    assert solution.objective == pytest.approx(1 / (1 / norms**2).sum(), rel=1e-6)


@pytest.mark.thorough
def test_branch_and_bound_matches_a_grid_search() -> None:
    """The grid covers all beamformers of two antennas, (cos u, sin u e^jv) up to a phase."""
    u, v = np.meshgrid(np.linspace(0, np.pi / 2, 400), np.linspace(0, 2 * np.pi, 800))
    grid = np.stack([np.cos(u) + 0j, np.sin(u) * np.exp(1j * v)], -1).reshape(-1, 2)
    for seed in range(2):
        h = rayleigh(seed, 6, 2)
        best = min_gain(h, grid).max()
        solution = optimize_beamformer(h, backend=ENDLESS)
        assert solution.status is Status.OPTIMAL
        assert best <= solution.bound * (1 + 1e-9)
        assert solution.objective == pytest.approx(best, rel=5e-3)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("path_gain_db", [0.0, 20.0])
@pytest.mark.parametrize(("antennas", "clients"), [(3, 9), (4, 12)])
def test_the_default_is_close_to_certified_optima(
    antennas: int, clients: int, path_gain_db: float
) -> None:
    h = rayleigh(antennas, 2, clients, antennas, path_gain_db=path_gain_db)
    exact = optimize_beamformer(h, backend=Anneal(seed=5), certificate=ENDLESS)
    assert (exact.status == Status.OPTIMAL).all()
    ratio = optimize_beamformer(h).objective / exact.objective
    assert ratio.max() <= 1 + 1.01e-4
    assert ratio.mean() >= 0.998
    assert ratio.min() >= 0.95


@pytest.mark.thorough
def test_ten_antennas_are_close_to_certified_optima() -> None:
    h = rayleigh(8, 2, 5, 10)
    exact = optimize_beamformer(h, certificate=ENDLESS)
    assert (exact.status == Status.OPTIMAL).all()
    ratio = optimize_beamformer(h, backend=Anneal(seed=1)).objective / exact.objective
    assert 0.99 < ratio.min() <= ratio.max() <= 1 + 1.01e-4


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("backend", ["anneal", "mirror_prox"])
def test_the_scale_of_the_channels_does_not_matter(backend: str) -> None:
    h = rayleigh(5, 2, 8, 5)
    one = optimize_beamformer(h, backend=backend)
    for factor in (1e-8, 1e8, 1e-30):
        other = optimize_beamformer(h * factor, backend=backend, certificate="sdr")
        np.testing.assert_allclose(other.objective, one.objective * factor**2, rtol=1e-3)
        assert (other.bound >= other.objective).all()


@pytest.fixture(scope="module")
def certified() -> Any:
    """Certified optima of the channels ``rayleigh(6, 2, 2, 5, 3)``."""
    return optimize_beamformer(rayleigh(6, 2, 2, 5, 3), certificate=ENDLESS)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("backend", BEAMFORMER_BACKENDS)
def test_every_backend_returns_valid_solutions(backend: str, certified: Any) -> None:
    """Beamformers have unit norm and the reported objective, which is within all bounds."""
    h = rayleigh(6, 2, 2, 5, 3)
    solution = optimize_beamformer(h, backend=backend)
    np.testing.assert_allclose(np.linalg.norm(solution.value, axis=-1), 1, rtol=1e-12)
    np.testing.assert_allclose(min_gain(h, solution.value), solution.objective, rtol=1e-9)
    assert (solution.objective <= solution.bound).all()
    assert (solution.objective <= certified.bound * (1 + 1e-9)).all()
    assert (solution.bound >= certified.objective * (1 - 1e-9)).all()
    assert (solution.objective >= 0.4 * certified.objective).all()
    assert solution.backend == backend


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_finds_the_optimum_from_a_bad_start(seed: int) -> None:
    """Random starts lead to the optimum, with repeated channels too.

    Channels repeat where ignored clients are replaced.
    """
    h = torch.from_numpy(rayleigh(seed, 7, 3))
    for channels in (h, torch.cat([h, h[:4]]), h[[0, 1, 2, 2, 2, 3, 3]]):
        start = torch.from_numpy(rayleigh(seed + 100, 3))
        exact = branch_and_bound(channels, start / start.norm(), math.inf)
        best = optimize_beamformer(channels, backend=Anneal(500, seed + 1)).objective
        assert exact.objective == pytest.approx(best, rel=2e-4)
        assert exact.bound >= max(best, exact.objective) * (1 - 1e-9)
        assert exact.bound <= exact.objective * (1 + 1.1e-4)


def test_branch_and_bound_may_start_at_a_beamformer_that_nulls_a_client() -> None:
    h = torch.eye(2, dtype=torch.complex128)
    exact = branch_and_bound(h, h[0], math.inf)
    assert exact.objective == pytest.approx(0.5, rel=1e-4)
    assert exact.bound >= 0.5 * (1 - 1e-12)


@pytest.mark.thorough
def test_ignored_clients_do_not_loosen_certificates() -> None:
    h = rayleigh(20, 12, 11, 3)
    scales = np.r_[np.ones(10), 0.0]
    for certificate in ("sdr", "exact"):
        few = slice(None) if certificate == "sdr" else slice(2)
        options: Any = {"certificate": "sdr" if certificate == "sdr" else ENDLESS}
        with_ignored = optimize_beamformer(h[few], scales=scales, **options)
        without = optimize_beamformer(h[few, :10], **options)
        np.testing.assert_allclose(with_ignored.bound, without.bound, rtol=1.1e-4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("backend", ["anneal", "mirror_prox", "branch_and_bound"])
def test_a_far_stronger_client_has_no_effect(backend: str) -> None:
    h = rayleigh(21, 2, 6, 3)
    method = ENDLESS if backend == "branch_and_bound" else backend
    alone = optimize_beamformer(h[:, 1:], backend=method)
    for spread in (1e8, 1e20, 1e60):
        strong = h.copy()
        strong[:, 0] *= spread
        solution = optimize_beamformer(strong, backend=method)
        assert np.isfinite(solution.value).all()
        if backend != "mirror_prox":  # its step size depends on the strongest client
            np.testing.assert_allclose(solution.objective, alone.objective, rtol=1e-2)
        np.testing.assert_allclose(min_gain(strong, solution.value), solution.objective, rtol=1e-6)


@pytest.mark.parametrize("readings", [0, 3])
def test_bounds_hold_at_the_time_limit(monkeypatch: pytest.MonkeyPatch, readings: int) -> None:
    """At the time limit, the bounds are valid.

    A fake clock advances by 0.1 s per reading, so that the result does not depend on the load.
    """
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: 0.1 * next(ticks))
    monkeypatch.setattr("solvers.beamforming.branch_and_bound.time", clock)
    h = rayleigh(7, 15, 10)
    limit = 0.1 * readings + 0.05
    solution = optimize_beamformer(h, backend=BranchAndBound(time_limit_seconds=limit))
    assert next(ticks) == readings + 2  # one reading for the deadline, the last one after it
    better = optimize_beamformer(h, backend=Anneal(starts=300, seed=3))
    assert solution.status is Status.FEASIBLE
    assert f"{limit:g} s" in solution.message
    assert better.objective <= solution.bound < (np.abs(h) ** 2).sum(-1).min() * (1 + 1e-9)


@pytest.mark.thorough
@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10**6))
def test_bounds_hold_for_every_beamformer(clients: int, antennas: int, seed: int) -> None:
    """No random beamformer exceeds a bound, and "sdr" is at least as tight as the default."""
    h = rayleigh(seed, clients, antennas, path_gain_db=20)
    a = rayleigh(seed + 1, 2000, antennas)
    a /= np.linalg.norm(a, axis=-1, keepdims=True)
    solution = optimize_beamformer(h, backend=Anneal(starts=4), certificate="sdr")
    crude = optimize_beamformer(h, backend=Anneal(starts=4))
    assert min_gain(h, a).max() <= solution.bound * (1 + 1e-9)
    assert solution.objective <= solution.bound <= crude.bound * (1 + 1e-9)
    assert crude.bound == pytest.approx(max((np.abs(h) ** 2).sum(-1).min(), crude.objective))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("certificate", [None, "sdr", "exact"])
def test_status_depends_on_the_gap_only(certificate: Any) -> None:
    """With any certificate, the status is OPTIMAL if and only if the gap is at most 1e-4."""
    h = np.concatenate([rayleigh(seed, 4, 3, 4, path_gain_db=10) for seed in range(3)])
    proof = ENDLESS if certificate == "exact" else certificate
    solution = optimize_beamformer(h, certificate=proof)
    assert ((solution.status == Status.OPTIMAL) == (solution.gap <= 1e-4)).all()
    np.testing.assert_allclose(solution.gap, solution.bound / solution.objective - 1, atol=1e-12)
    assert (solution.status == Status.OPTIMAL).any()


def test_array_types_and_batches() -> None:
    """NumPy and torch, both precisions and any batch shape give equal results.

    Results have the type of the input.
    """
    h = rayleigh(9, 2, 3, 8, 4)
    double = optimize_beamformer(h)
    assert double.value.shape == (2, 3, 4)
    assert double.objective.shape == double.status.shape == double.gap.shape == (2, 3)
    for single in (h.astype(np.complex64), torch.from_numpy(h.astype(np.complex64))):
        solution: Any = optimize_beamformer(single)
        assert type(solution.value) is type(single)
        assert solution.value.dtype == single.dtype
        assert type(solution.objective) is type(single)
        np.testing.assert_allclose(np.asarray(solution.objective), double.objective, rtol=1e-3)
    for i, j in itertools.product(range(2), range(3)):
        alone = optimize_beamformer(h[i, j])
        assert isinstance(alone.objective, float)
        assert alone.objective == pytest.approx(double.objective[i, j], rel=1e-3)
    assert (optimize_beamformer(h).value == double.value).all()
    strided = np.asarray(h[:, ::-1, ::2])
    assert optimize_beamformer(strided).value.shape == (2, 3, 4)


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    "scales",
    [
        np.array([1, 2, 4], ">f8"),
        np.array([1, 2, 4], np.longdouble),
        np.array([1, 2, 4], np.uint16),
        [Fraction(1), 2, 4.0],
        torch.tensor([1, 2, 4]),
    ],
)
def test_scales_of_any_real_type(scales: Any) -> None:
    h = rayleigh(12, 3, 4)
    expected = optimize_beamformer(h, scales=np.array([1.0, 2.0, 4.0]))
    assert optimize_beamformer(h, scales=scales).objective == expected.objective


def test_scales_divide_the_channels() -> None:
    h, s = rayleigh(10, 5, 6, 4), np.random.default_rng(0).uniform(0.1, 10, (5, 6))
    one, other = optimize_beamformer(h, scales=s), optimize_beamformer(h / s[..., None])
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-9)
    s[:, 2] = 0
    fewer = optimize_beamformer(np.delete(h, 2, 1) / np.delete(s, 2, 1)[..., None])
    np.testing.assert_allclose(
        optimize_beamformer(h, scales=s).objective, fewer.objective, rtol=2e-3
    )


def test_scales_and_channels_broadcast() -> None:
    """As the weights of ``align_transmitters``: one channel, several scales, and the reverse."""
    h, s = rayleigh(10, 3, 1, 5, 4), np.random.default_rng(0).uniform(0.1, 10, (2, 5))
    many = optimize_beamformer(h, scales=s)
    assert many.value.shape == (3, 2, 4)
    assert many.objective.shape == many.status.shape == (3, 2)
    for i, j in itertools.product(range(3), range(2)):
        one = optimize_beamformer(h[i, 0], scales=s[j])
        assert one.objective == pytest.approx(many.objective[i, j], rel=1e-9)
    tensor: Any = optimize_beamformer(torch.from_numpy(h[0, 0]), scales=torch.from_numpy(s))
    np.testing.assert_allclose(tensor.objective, many.objective[0], rtol=1e-9)
    with pytest.raises(ValueError, match=r"scales has shape \(2, 3\), and h \(5, 4\): give h"):
        optimize_beamformer(h[0, 0], scales=s[:, :3])
    with pytest.raises(ValueError, match=r"scales has shape \(5,\), and h \(1, 4\)"):
        optimize_beamformer(h[0, 0, :1], scales=s[0])
    with pytest.raises(ValueError, match=r"scales\[1, 2\] is -1: give finite numbers >= 0"):
        optimize_beamformer(h, scales=np.where(np.arange(10).reshape(2, 5) == 7, -1, s))
    with pytest.raises(ValueError, match="scales is 0 for every client of a problem"):
        optimize_beamformer(h[0, 0], scales=[[1.0] * 5, [0.0] * 5])


def test_few_or_repeated_clients() -> None:
    """Beamformers are in the span of the channels; repeating clients changes no objective."""
    h = rayleigh(11, 3, 10)
    solution = optimize_beamformer(h, certificate="sdr")
    assert solution.status is Status.OPTIMAL
    inside = np.linalg.lstsq(h.T, solution.value, rcond=None)[0] @ h
    np.testing.assert_allclose(inside, solution.value, atol=1e-9)
    twice = optimize_beamformer(np.concatenate([h, h, h * 1j]), certificate="sdr")
    assert twice.objective == pytest.approx(solution.objective, rel=1e-4)
    assert twice.status is Status.OPTIMAL


def test_zero_channels_of_ignored_clients_have_no_effect() -> None:
    h = rayleigh(13, 4, 3)
    h[1] = 0
    solution = optimize_beamformer(h, scales=[0, 1, 1, 1])
    assert solution.status is Status.ZERO
    assert solution.message == "client 1 cannot send: h is 0"
    assert optimize_beamformer(h, scales=[1, 0, 1, 1]).objective > 0


def test_read_only_and_strided_channels_are_accepted() -> None:
    h = rayleigh(14, 6, 5, 4)
    h.setflags(write=False)
    assert optimize_beamformer(h[::2]).objective.shape == (3,)


def test_a_zero_channel_gives_status_zero() -> None:
    """With a zero channel, the beamformer is still good for the other clients."""
    h = rayleigh(12, 3, 5, 4)
    h[1, 2] = 0
    h[2] = 0
    for certificate in (None, "sdr", "exact"):
        solution = optimize_beamformer(h, certificate=certificate)
        assert solution.status[0] is not Status.ZERO
        assert solution.objective[0] > 0
        assert (solution.status[1:] == Status.ZERO).all()
        assert (solution.objective[1:] == 0).all()
        assert (solution.bound[1:] == 0).all()
        text = "2 of 3 problems have objective 0; item [1]: client 2 cannot send: h is 0"
        assert solution.message == text
        np.testing.assert_allclose(np.linalg.norm(solution.value, axis=-1), 1)
    others = np.delete(h[1], 2, 0)
    assert min_gain(others, solution.value[1]) > 0.5 * optimize_beamformer(others).objective
    assert optimize_beamformer(h[1]).status is Status.ZERO


@pytest.mark.parametrize("certificate", [None, "sdr", "exact"])
@pytest.mark.parametrize("backend", BEAMFORMER_BACKENDS)
def test_an_empty_batch_gives_an_empty_solution(backend: str, certificate: Any) -> None:
    solution = optimize_beamformer(
        np.zeros((0, 3, 2), complex), backend=backend, certificate=certificate
    )
    assert solution.value.shape == (0, 2)
    assert solution.objective.shape == solution.status.shape == (0,)


@pytest.mark.parametrize(
    ("h", "options", "message"),
    [
        (np.zeros((3, 0), complex), {}, r"h has shape \(3, 0\)"),
        (np.zeros((0, 3), complex), {}, r"h has shape \(0, 3\)"),
        (np.zeros(3, complex), {}, r"h has shape \(3,\)"),
        (np.ones((2, 2)), {}, "h has dtype float64: give complex64"),
        (torch.ones(2, 2), {}, "h has dtype torch.float32: give complex64"),
        ([[1, 2]], {}, "h has dtype int64"),
        (np.ones((2, 2), complex), {"backend": "best"}, "is 'best': choose one of default, anneal"),
        (np.ones((2, 2), complex), {"scales": 0}, "scales is 0 for every client"),
        (np.ones((2, 2), complex), {"scales": [1, 1e300]}, r"h / scales\[1\] is of order 1e-300"),
        (np.full((2, 2), 1e-170 + 0j), {}, r"h\[0\] is of order 1e-170"),
        (np.diag([1e90, 1e-90 + 0j]), {}, r"h / max \|h\|\[1\] is of order 1e-180"),
        (np.full((1, 2, 2), 1e160 + 0j), {}, r"h\[0, 0\] is of order 1e\+160"),
    ],
)
def test_invalid_input_is_named(h: Any, options: dict[str, Any], message: str) -> None:
    def solve(backend: Any = "anneal", **more: Any) -> None:
        optimize_beamformer(h, backend=backend() if callable(backend) else backend, **more)

    with pytest.raises(ValueError, match=message):
        solve(**options)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    """The solver runs on one thread and restores the caller's setting."""
    h = rayleigh(3, 4, 6, 5)
    before = torch.get_num_threads()
    try:
        values = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            values.append(optimize_beamformer(h, backend="mirror_prox").value)
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*values)
