"""Crossed: weights between layers are covered evenly."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class Crossed(Adaptive):
    """Arcs by the columns and rows of a grid, which cover the weights between layers evenly.

    See ``submodels.weight_coverage``.
    """

    name = "crossed"

    @property
    def kind(self) -> Masks:
        """Masks ``crossed``."""
        return "crossed"
