"""State of torch that results must not depend on, or must leave: modes, generators and settings."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch

from channels.concurrency import SharedContext, process_state
from channels.streams import Stream
from solvers.torch_threads import torch_threads
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.packages import is_loaded

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
    for kind, current, usual in (
        ("dtype", torch.get_default_dtype(), torch.float32),
        ("device", torch.get_default_device(), torch.device("cpu")),
    ):
        if current != usual:
            instead = " and choose the setting device" if kind == "device" else ""
            value = repr(str(usual)) if kind == "device" else usual
            raise ConfigError(
                f"torch's default {kind} is {current}, but runs need {usual}: call "
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


@contextmanager
def kept_generators() -> Iterator[None]:
    """Restore the global generators of Python, NumPy and torch at the end; other threads wait."""
    with process_state, kept_torch_generators() if is_loaded("torch") else nullcontext():
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def seeded_generators(stream: Stream) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch by ``stream``; restore them at the end.

    Users' constructors and data functions run in this context, so that the run's seed determines
    what they draw.
    """
    key = stream.key() >> 1
    with kept_generators():
        if is_loaded("torch"):  # otherwise no code of users runs, see ``registry.import_path``
            seed_torch(key, cuda=torch.cuda.is_available())
        random.seed(key)
        np.random.seed(key % 2**32)  # noqa: NPY002
        yield


def kept_torch_generators() -> AbstractContextManager[None]:
    """Restore torch's global generators at the end; the caller holds ``process_state``."""
    # Those of GPUs that have not been used have no state yet.
    initialized = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    used = torch.cuda.device_count() if initialized else 0
    return torch.random.fork_rng(devices=range(used))


def torch_state(x: torch.Tensor) -> torch.Tensor:
    """State of torch's global generators that code on the device of ``x`` may draw from."""
    state = torch.random.get_rng_state()
    return torch.cat([state, torch.cuda.get_rng_state(x.device)]) if x.is_cuda else state


def other_states() -> tuple[object, ...]:
    """State of the global generators of Python and NumPy."""
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), kind, np.asarray(keys).tobytes(), *rest


def seed_torch(seed: int, *, cuda: bool) -> None:
    """Seed torch's global generator of the CPU and, if ``cuda``, of every GPU.

    ``torch.manual_seed`` also formats and keeps a stack trace for each unused kind of device, which
    takes longer than a small training step.
    """
    torch.default_generator.manual_seed(seed)
    if cuda:
        torch.cuda.manual_seed_all(seed)


@contextmanager
def torch_settings(threads: int) -> Iterator[None]:
    """Set all torch settings that affect rounding, and restore them at the end.

    Products and convolutions use full float32, and those of GPUs deterministic algorithms; products
    of bfloat16 add up in float32. Warnings that ask to report operations without a batching rule
    are off, since clients need no such rule.

    Args:
        threads: CPU threads of the calling thread's operations.
    """
    with torch_threads(threads), ExitStack() as stack:
        with process_state:  # another run may compute in TF32, see ``training/precision.py``
            stack.enter_context(running)
        yield


@contextmanager
def _exact() -> Iterator[None]:
    cudnn, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, cudnn.deterministic
    rounded = products.allow_bf16_reduced_precision_reduction
    precision = _products()
    cudnn.allow_tf32, cudnn.deterministic = False, True
    products.allow_bf16_reduced_precision_reduction = False
    if precision != "highest":
        torch.set_float32_matmul_precision("highest")
    warn_of_fallbacks(False)
    try:
        yield
    finally:
        warn_of_fallbacks(True)
        cudnn.allow_tf32, cudnn.deterministic = before
        products.allow_bf16_reduced_precision_reduction = rounded
        if precision != "highest":
            torch.set_float32_matmul_precision(precision)


def warn_of_fallbacks(enabled: bool) -> None:
    """Whether ``torch.vmap`` warns of operations that it computes one by one; it does by default.

    Torch cannot tell whether a caller has turned the warnings off.
    """
    functorch: Any = torch._C._functorch
    functorch._set_vmap_fallback_warning_enabled(enabled)


def _products() -> str:
    """Torch's precision of products; "highest" where a caller has set it by operation instead."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to name several in one word
        return "highest"


running = SharedContext(_exact)
"""Settings that torch has for all threads; all runs need the same."""
