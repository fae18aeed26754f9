"""Properties that a module may declare by class or instance attributes of these names."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch


@dataclass(frozen=True)
class Declared:
    """Optional attributes of a module, or their defaults.

    Attributes of other types, such as a layer of the same name, are ignored.

    Args:
        fully_connected: names of the fully connected layers in order, from input to output; HIST
            partitions the neurons between them.
        bytes_per_sample: memory per training sample in addition to the parameters; 0 if
            negligible.
        test_batch: number of samples per test batch.
        vocabulary: number of known token ids, which start at 0; None if the inputs are not tokens.
    """

    fully_connected: tuple[str, ...] = ()
    bytes_per_sample: int = 0
    test_batch: int = 2000
    vocabulary: int | None = None

    @classmethod
    def of(cls, module: torch.nn.Module) -> Declared:
        """Read the attributes of any ``nn.Module``."""
        found: dict[str, Any] = {}
        for name in (entry.name for entry in fields(cls)):
            value = getattr(module, name, None)
            if name == "fully_connected":
                if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
                    found[name] = tuple(value)
            elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
                found[name] = value
        return cls(**found)
