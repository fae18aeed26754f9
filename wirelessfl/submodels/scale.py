"""The setting that scales the activations of submodels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

SubmodelScale = Annotated[
    Literal["none", "width"],
    Field(
        description="factor of the activations of a submodel's partial layers while it trains: 1 "
        "(none), or full width / own width, as in inverted dropout (width)"
    ),
]
