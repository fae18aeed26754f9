"""Global random generators, which users' code may draw from."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import numpy as np
import torch

from channels.concurrency import process_state
from channels.streams import Stream
from wirelessfl.deferred import is_loaded


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
