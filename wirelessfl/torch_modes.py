"""Modes of torch that a caller may have set, and that must not change what is computed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

from wirelessfl.deferred import is_loaded
from wirelessfl.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
_locks: WeakKeyDictionary[torch.nn.Module, threading.RLock] = WeakKeyDictionary()
"""A lock for each module that was given to an entry point, and for each one that it contains."""


def own_modes(function: F) -> F:
    """Decorate an entry point: it does not depend on the caller's modes, such as ``no_grad``.

    A module that is given as ``model``, and each one that it contains, is used by one thread at a
    time, because training replaces their parameters meanwhile.

    Raises:
        ConfigError: when called, torch's default dtype or device is not the usual one.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _usual() if is_loaded("torch") else nullcontext(), _alone(kwargs.get("model")):
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]


@contextmanager
def _usual() -> Iterator[None]:
    """Modes of the calling thread in which models can be trained."""
    for kind, found, usual in (
        ("dtype", torch.get_default_dtype(), torch.float32),
        ("device", torch.get_default_device(), torch.device("cpu")),
    ):
        if found != usual:
            instead = " and choose the setting device" if kind == "device" else ""
            value = repr(str(usual)) if kind == "device" else usual
            raise ConfigError(
                f"torch's default {kind} is {found}, but runs need {usual}: call "
                f"torch.set_default_{kind}({value}) before{instead}."
            )
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda", "mps", "xpu"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def _alone(model: object) -> Iterator[None]:
    """Hold the locks of a module and of all modules that it contains."""
    with ExitStack() as stack:
        if is_loaded("torch") and isinstance(model, torch.nn.Module):
            for part in sorted(model.modules(), key=id):  # in the order of other threads
                stack.enter_context(_locks.setdefault(part, threading.RLock()))
        yield
