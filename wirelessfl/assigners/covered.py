"""Covered: neurons are covered as evenly as possible (RA-Fed; KDD '23)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class Covered(Adaptive):
    """Consecutive arcs of a common circle, which cover each layer's neurons evenly.

    Each neuron is in the submodels of the floor or ceiling of the mean number of clients.
    """

    name = "covered"

    @property
    def kind(self) -> Masks:
        """Masks ``covered``."""
        return "covered"
