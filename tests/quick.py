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
    """Try each model of the package once on samples of a shape, instead of in every run."""
    from wirelessfl.setup import executors

    with pytest.MonkeyPatch.context() as patch:
        for name in ("check_model", "why_not_stacked"):
            patch.setattr(executors, name, _once(getattr(executors, name)))
        yield


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function(objective, ...)``, called once for equal models of the package and samples."""
    known: dict[Any, Any] = {}

    def checked(objective: Any, *others: Any) -> Any:
        key = _key(objective, others)
        if key is None:
            return function(objective, *others)
        if key not in known:
            known[key] = function(objective, *others)
        return known[key]

    return checked


def _key(objective: Any, others: tuple[Any, ...]) -> Any:
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
    first = others if hasattr(others[0], "shape") else others[0].first(4)
    shapes = [(tuple(x.shape), str(x.dtype)) if hasattr(x, "shape") else x for x in first]
    return repr((type(module), module, loss, parameters, objective.slots, shapes))
