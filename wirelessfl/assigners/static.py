"""Static: each client trains random neurons, drawn once per run."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class Static(Adaptive):
    """Random neurons of each layer, drawn for each client once per run.

    A client's submodels of different widths are nested.
    """

    name = "static"

    @property
    def kind(self) -> Masks:
        """Masks ``static``."""
        return "static"
