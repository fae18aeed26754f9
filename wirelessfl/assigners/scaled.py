"""Base class of assigners whose submodels can train on the scale of the full model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.assigners.assigner import Assigner


@dataclass(frozen=True)
class Scaled(Assigner):
    """Base class: activations of a submodel's partial layers may be scaled while it trains.

    Args:
        submodel_scale: factor of the activations: 1 (``none``), or full width / own width
            (``width``). As with inverted dropout, sums over the submodel's neurons then have the
            scale of the full model's, which is tested.
    """

    name = ""

    submodel_scale: Annotated[
        Literal["none", "width"],
        Field(
            description="factor of the activations of a submodel's partial layers while it trains: "
            "1 (none), or full width / own width, as in inverted dropout (width)"
        ),
    ] = "none"

    @property
    def scaled(self) -> bool:
        """Whether ``submodel_scale`` is "width"."""
        return self.submodel_scale == "width"
