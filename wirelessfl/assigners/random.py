"""Random: each client trains random neurons, drawn in every round (RA-Fed; KDD '23)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class RandomNeurons(Adaptive):
    """Random neurons of each layer, drawn for each client in every round (KDD '23)."""

    name = "random"

    @property
    def kind(self) -> Masks:
        """Masks ``random``."""
        return "random"
