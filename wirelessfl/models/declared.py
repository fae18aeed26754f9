"""Properties that a module may declare by class or instance attributes of these names."""

from __future__ import annotations

from dataclasses import dataclass, fields

from torch import nn


@dataclass(frozen=True)
class Declared:
    """Optional attributes of a module, or their defaults.

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
    def of(cls, module: nn.Module) -> Declared:
        """Read the attributes of any ``nn.Module``."""
        names = [entry.name for entry in fields(cls) if hasattr(module, entry.name)]
        found = {name: getattr(module, name) for name in names}
        if not isinstance(found.get("vocabulary"), int):  # an unrelated attribute, e.g. a list
            found.pop("vocabulary", None)
        return cls(**found)
