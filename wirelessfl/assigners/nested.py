"""Nested: clients train the first neurons of every layer (HeteroFL; Diao et al., ICLR 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.assigners.adaptive import Adaptive
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class Nested(Adaptive):
    """Nested submodels: the first neurons of each layer (Diao et al., ICLR 2021).

    A client that can afford k neurons of a layer gets the first k.
    """

    name = "nested"

    @property
    def kind(self) -> Masks:
        """Masks ``ordered``."""
        return "ordered"
