"""Rolling: windows of neurons that move each round (FedRolex; Alam et al., NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class Rolling(Adaptive):
    """Windows of neurons that move each round (Alam et al., NeurIPS 2022).

    In round j the window starts at neuron j, modulo the layer's width. A client that can afford k
    neurons of a layer gets k consecutive ones from there, cyclically.
    """

    name = "rolling"

    @property
    def kind(self) -> Masks:
        """Masks ``rolling``."""
        return "rolling"
