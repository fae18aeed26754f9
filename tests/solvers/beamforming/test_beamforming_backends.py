"""Beamforming backends by name, as objects and as user classes; their settings are checked."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
import torch

from solvers import BEAMFORMER_BACKENDS, Status, optimize_beamformer
from solvers.beamforming import (
    Anneal,
    BeamformerBackend,
    BeamformingProblems,
    BranchAndBound,
    Certificate,
    Default,
    FoundBeamformers,
    MirrorProx,
    RelaxationBound,
    Sca,
    Sdr,
)

CLASSES = (Default, Anneal, MirrorProx, Sca, Sdr, BranchAndBound)


def channels(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal((*shape, 2)).view(complex)[..., 0]


def same(one: Any, other: Any) -> None:
    """Assert that two solutions are bit-identical."""
    for field in ("value", "objective", "bound", "gap"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field
    assert (one.status == other.status).all()
    assert (one.backend, one.message) == (other.backend, other.message)


def test_backend_names_are_those_of_the_classes() -> None:
    assert tuple(kind.name for kind in CLASSES) == BEAMFORMER_BACKENDS


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", CLASSES, ids=BEAMFORMER_BACKENDS)
def test_name_and_object_agree(kind: type[BeamformerBackend]) -> None:
    h = channels(1, 2, 6, 3)
    same(optimize_beamformer(h, backend=kind.name), optimize_beamformer(h, backend=kind()))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("name", "proof"), [("sdr", RelaxationBound()), ("exact", BranchAndBound())]
)
def test_certificates_by_name_and_object_agree(name: Any, proof: Certificate) -> None:
    h = channels(2, 2, 5, 3)
    same(optimize_beamformer(h, certificate=name), optimize_beamformer(h, certificate=proof))


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize(
    ("few", "many"),
    [
        (Anneal(starts=1), Anneal(starts=40)),
        (MirrorProx(starts=1), MirrorProx(starts=20)),
        (Sca(starts=1), Sca(starts=6)),
        (Sdr(samples=1), Sdr(samples=2000)),
    ],
    ids=["anneal", "mirror_prox", "sca", "sdr"],
)
def test_more_starts_find_better_beamformers(few: Any, many: Any) -> None:
    h = channels(3, 6, 10, 4)
    worse, better = (optimize_beamformer(h, backend=method).objective for method in (few, many))
    assert better.mean() > worse.mean() * 1.005


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", [Anneal, MirrorProx, Sca, Sdr])
def test_the_seed_determines_the_result(kind: Any) -> None:
    h = channels(4, 12, 4)
    one, again, other = (
        optimize_beamformer(h, backend=kind(1, seed=seed)).value for seed in (0, 0, 1)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_backends_are_immutable() -> None:
    """Backends are immutable, so they can be shared, compared, hashed and pickled."""
    method: Any = BranchAndBound(time_limit_seconds=5, start=Anneal(starts=16, seed=3))
    with pytest.raises(FrozenInstanceError):
        method.time_limit_seconds = 10
    assert pickle.loads(pickle.dumps(method)) == method
    assert len({method, BranchAndBound(5, Anneal(16, 3)), BranchAndBound(5)}) == 2


@dataclass(frozen=True)
class Blend(BeamformerBackend):
    """Principal direction of weighted channels; each round increases the weakest's weight."""

    name = "blend"

    rounds: int = 20
    length: float = 1.0

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        h = problem.h
        weight = torch.ones_like(h.real[..., 0])
        for _ in range(self.rounds):
            covariance = (h * weight.unsqueeze(-1)).mT @ h.conj()
            a = torch.linalg.eigh(covariance).eigenvectors[..., -1]
            weight = weight / ((a.conj().unsqueeze(1) @ h.mT).abs().square().squeeze(1) + 0.1)
        return FoundBeamformers(self.length * a, message=f"{self.rounds} rounds")


def test_a_user_defined_backend_works() -> None:
    h = channels(5, 3, 5, 3)
    best = optimize_beamformer(h, certificate="exact")
    mine = optimize_beamformer(h, backend=Blend(), certificate="sdr")
    assert (mine.backend, mine.message) == ("blend", "20 rounds")
    assert (mine.objective > 0).all()
    assert (mine.objective <= best.objective * (1 + 1.01e-4)).all()
    assert (mine.bound >= best.objective * (1 - 1e-9)).all()
    reached = (np.abs((mine.value.conj()[:, None] * h).sum(-1)) ** 2).min(-1)
    np.testing.assert_allclose(mine.objective, reached, rtol=1e-9)


@pytest.mark.thorough
def test_beamformers_of_a_backend_may_have_any_norm() -> None:
    """Beamformers are normalised; otherwise branch and bound would overstate the gain."""
    h = channels(6, 2, 5, 3)
    one, long = (Blend(length=length) for length in (1.0, 3.0))
    for options in ({}, {"certificate": "exact"}):
        same_value, scaled = (
            optimize_beamformer(h, backend=method, **options) for method in (one, long)
        )
        np.testing.assert_allclose(np.linalg.norm(scaled.value, axis=-1), 1, rtol=1e-12)
        np.testing.assert_allclose(scaled.objective, same_value.objective, rtol=1e-9)
    finished = optimize_beamformer(h, backend=BranchAndBound(start=long))
    assert (finished.status == Status.OPTIMAL).all()
    np.testing.assert_allclose(finished.objective, scaled.objective, rtol=1.1e-4)


@dataclass(frozen=True)
class TraceBound(Certificate):
    """A certificate with a message; its bound, the mean of ||h_i||^2, is loose."""

    name = "trace_bound"

    def certify(self, problem: BeamformingProblems, found: FoundBeamformers) -> FoundBeamformers:
        power = problem.h.abs().square().sum((-1, -2)) / problem.h.shape[1]
        return FoundBeamformers(found.value, power, "mean power")


def test_a_user_defined_certificate_works() -> None:
    """The reported bound is at most min ||h_i||^2, and messages are joined."""
    h = channels(7, 3, 5, 3)
    plain = optimize_beamformer(h, backend=Blend())
    mine = optimize_beamformer(h, backend=Blend(), certificate=TraceBound())
    assert mine.message == "20 rounds; mean power"
    assert np.array_equal(mine.bound, plain.bound)
    assert np.array_equal(mine.value, plain.value)


@dataclass(frozen=True)
class Single(BeamformerBackend):
    """A backend that returns one beamformer for the whole batch."""

    name = "single"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        return FoundBeamformers(problem.h[0, 0])


def test_beamformers_of_the_wrong_shape_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"backend 'single' returned .* shape \(3,\) for .*5, 3"):
        optimize_beamformer(channels(8, 2, 5, 3), backend=Single())


@dataclass(frozen=True)
class Bare(BeamformerBackend):
    """A backend that returns a bare array of beamformers instead of a FoundBeamformers."""

    name = "bare"

    def solve(self, problem: BeamformingProblems) -> FoundBeamformers:
        return problem.h[:, 0]  # type: ignore[return-value]


def test_beamformers_without_a_found_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"backend 'bare' returned Tensor: it must return"):
        optimize_beamformer(channels(8, 2, 5, 3), backend=Bare())


def test_the_base_class_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BeamformerBackend()  # type: ignore[abstract]
