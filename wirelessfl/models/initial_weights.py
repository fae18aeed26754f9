"""Initial weights of built-in models, whatever other threads draw meanwhile."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class OwnGenerator(TorchDispatchMode):
    """Initialisations in the calling thread draw from a generator of their own.

    The numbers are those of torch's global generator with the same seed, from which other threads
    may draw at the same time.

    Args:
        seed: seed of the generator.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._own = {"generator": torch.Generator().manual_seed(seed)}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # True would make torch import its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        draws = any(argument.name == "generator" for argument in func._schema.arguments)
        return func(*args, **(self._own if draws else {}) | (kwargs or {}))
