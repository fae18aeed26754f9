"""Backends by name or as objects: error messages state the remedy."""

import pytest

import solvers
from solvers import optimize_beamformer, optimize_mask_sizes
from solvers.settings import settings_elsewhere

H = [[1 + 1j, 2.0, 0.5j], [1j, 1.0, 1.0]]


@pytest.mark.parametrize("wrong", ["best", None, 3, ["exact"], int])
def test_errors_for_unknown_backends_list_names_and_classes(wrong):
    names = "choose one of exact, gurobi, highs, cvxpy"
    with pytest.raises(ValueError, match=f"^backend is .*{names}.*MaskSizeBackend class") as caught:
        optimize_mask_sizes([1.0, 2.0], 3, backend=wrong)
    assert "\n" not in str(caught.value)
    names = "choose one of default, anneal, mirror_prox, sca, sdr, branch_and_bound"
    with pytest.raises(ValueError, match=f"^backend is .*{names}.*BeamformerBackend class"):
        optimize_beamformer(H, backend=wrong)
    if wrong is not None:
        names = "choose one of sdr, exact"
        with pytest.raises(ValueError, match=f"^certificate is .*{names}.*Certificate class"):
            optimize_beamformer(H, certificate=wrong)


@pytest.mark.parametrize(
    ("call", "setting", "remedy"),
    [
        (optimize_beamformer, "starts", r"backend=Anneal\(starts=...\)"),
        (optimize_beamformer, "seed", r"backend=Anneal\(seed=...\)"),
        (optimize_beamformer, "time_limit_seconds", r"BranchAndBound\(time_limit_seconds=...\)"),
        (optimize_mask_sizes, "time_limit_seconds", r"backend=Highs\(time_limit_seconds=...\)"),
    ],
)
def test_backend_settings_are_rejected_as_arguments(call, setting, remedy):
    with pytest.raises(TypeError, match=rf"has no argument {setting}, .*{remedy}"):
        call([[1.0]], **{setting: 3})


def test_other_unknown_arguments_raise_the_usual_error():
    @settings_elsewhere(seed="Method(seed=...)")
    def solve(problem, *, cap=None):
        """Solve it."""
        return problem, cap

    assert solve(1, cap=2) == (1, 2)
    assert solve.__doc__ == "Solve it."
    with pytest.raises(TypeError, match="unexpected keyword argument 'cups'"):
        solve(1, cups=2)


def test_every_exported_name_can_be_loaded():
    """Every exported class can be loaded; beamforming loads its backends on first use."""
    for package in (solvers.beamforming, solvers.mask_sizes):
        for name in package.__all__:
            assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Genetic'"):
        _ = solvers.beamforming.Genetic
