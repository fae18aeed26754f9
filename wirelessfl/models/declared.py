"""What a module may declare about itself, by class or instance attributes of these names."""

from __future__ import annotations

from dataclasses import dataclass, fields

from torch import nn


@dataclass(frozen=True)
class Declared:
    """Optional attributes of a module, or their defaults.

    Args:
        fully_connected: names of its fully connected layers in order, input to output; HIST
            partitions the neurons between them.
        bytes_per_sample: memory per training sample in addition to the parameters; 0 if negligible.
        test_batch: samples that are evaluated at once.
        vocabulary: number of token ids that it knows, from 0; None: its inputs are not tokens.
    """

    fully_connected: tuple[str, ...] = ()
    bytes_per_sample: int = 0
    test_batch: int = 2000
    vocabulary: int | None = None

    @classmethod
    def of(cls, module: nn.Module) -> Declared:
        """What ``module`` declares now; any ``nn.Module`` will do."""
        names = [entry.name for entry in fields(cls) if hasattr(module, entry.name)]
        found = {name: getattr(module, name) for name in names}
        if not isinstance(found.get("vocabulary"), int):  # a user's own attribute, e.g. a list
            found.pop("vocabulary", None)
        return cls(**found)
