"""Save time in tests of runs, without another result for the run's own models."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def fewer_steps(steps: int = 16) -> Iterator[None]:
    """Anneal beamformers in a few steps from 16 starts without a polish, to save most of the time.

    Tests of runs compare runs with each other and with sums written out, which hold for any
    beamformers; tests/solvers tests how good they are.
    """
    from solvers.beamforming import anneal  # imports PyTorch, which the controller does not need

    climb = anneal._climb
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anneal, "_climb", lambda h, first, _: climb(h, first, steps))
        patch.setattr(anneal, "default_starts", lambda clients: 16)
        patch.setattr(anneal, "_POLISH", 0)
        patch.setattr(anneal, "_LAST_POLISH", 0)
        yield


@contextmanager
def models_checked_once() -> Iterator[None]:
    """Try and trace each model of the package once in all tests, instead of in every run."""
    from wirelessfl.runs.build import executors
    from wirelessfl.training import stacked, trial

    with pytest.MonkeyPatch.context() as patch:
        for place, name in (
            (executors, "check_model"),
            (executors, "why_not_stacked"),
            (trial, "check_partition"),
        ):
            patch.setattr(place, name, _once(getattr(place, name)))
        patch.setattr(stacked, "chain", _once(stacked.chain, unless=_drops))
        yield


KNOWN: dict[Any, Any] = {}
"""Results by function, model and samples."""


def _once(
    function: Callable[..., Any], unless: Callable[[Any], bool] = lambda module: False
) -> Callable[..., Any]:
    """``function(objective, ...)``, called once for equal models of the package and samples.

    Args:
        function: a check, or the layers of a model.
        unless: whether the results for equal modules differ.
    """

    def checked(objective: Any, *others: Any) -> Any:
        key = _key(objective, others)
        if key is None or unless(objective.module):
            return function(objective, *others)
        if (function, key) not in KNOWN:
            KNOWN[function, key] = function(objective, *others)
        return KNOWN[function, key]

    return checked


def _drops(module: Any) -> bool:
    """Whether a model has dropout, whose layers are those of one model."""
    return any(getattr(part, "p", 0) > 0 for part in module.modules())


def _key(objective: Any, others: tuple[Any, ...]) -> str | None:
    """What the checks of a model depend on; None if it or the loss is not of the package."""
    module, loss = objective.module, objective.criterion
    own = (type(module).__module__, type(loss).__module__)
    if not all(name.startswith(("wirelessfl.models.", "wirelessfl.losses.")) for name in own):
        return None
    if any(part._forward_hooks or part._forward_pre_hooks for part in module.modules()):
        return None
    if any(part._backward_hooks or part._backward_pre_hooks for part in module.modules()):
        return None
    parameters = [
        (name, tuple(p.shape), p.requires_grad, str(p.dtype))
        for name, p in module.named_parameters(remove_duplicate=False)
    ]
    shapes = [part for other in others for part in _shapes(other)]
    return repr((type(module), module, loss, parameters, objective.slots, shapes))


def _shapes(given: Any) -> Iterator[Any]:
    """What is known of samples, or of data or a partition, by which a check may differ."""
    if hasattr(given, "first"):
        for part in given.first(4):
            yield from _shapes(part)
    else:
        yield (tuple(given.shape), str(given.dtype)) if hasattr(given, "dtype") else given
