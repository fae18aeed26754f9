"""RA-Fed: clients train submodels of arbitrary neurons (KDD '23, supplement A.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.algorithms.context import RoundContext
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.narrow import Adaptive, deal
from wirelessfl.errors import ConfigError
from wirelessfl.submodels.masks import Masks


@dataclass(frozen=True)
class RaFed(Adaptive, FedAvg):
    """FedAvg on submodels: a coordinate moves by the mean change of those who cover it.

    theta^i <- theta^i - (1/Gamma^i) sum_{n covers i} (theta_{n,0} - theta_{n,T})^i. What nobody
    covers in a round stays. With full submodels it is FedAvg; with disjoint ones HIST with a client
    a cell and one edge round.

    Args:
        masks: which neurons a client gets: the first ones (``ordered``), a window that moves on
            every round (``rolling``), drawn afresh in every round (``random``) or once for the run
            (``static``); dealt round a circle, so that neurons are covered as evenly as can be
            (``covered``); or the parts of HIST, which may overlap (``partition``).
        mask_overlap: of ``partition``, what a part has of the parts behind it, in shares of its own
            size.
    """

    name = "ra-fed"

    masks: Annotated[
        Masks, Field(description="which neurons each client gets, see docs/submodels.md")
    ] = "random"
    mask_overlap: Annotated[
        float, Field(ge=0, description="of masks partition: what parts share, over their size")
    ] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masks == "partition" and not self.fixed_shapes:
            raise ValueError(
                f"masks is 'partition' and budget {self.budget!r}: parts of a whole are as wide as "
                'it takes, whatever the round has time for. Choose masks "covered"'
            )

    def unused(self) -> Mapping[str, str]:
        """Only the masks of a partition can overlap."""
        found = dict(super().unused())
        if self.masks != "partition":
            reason = f'conflicts with masks="{self.masks}": choose masks "partition"'
            found["mask_overlap"] = reason
        return found

    @property
    def deals_jointly(self) -> bool:
        """Where masks are laid round a circle, or are parts of a whole."""
        return self.masks in ("covered", "partition")

    @property
    def plans_ahead(self) -> bool:
        """Parts may be too many for a layer, depending on who takes part."""
        return super().plans_ahead or self.masks == "partition"

    def choose(self, context: RoundContext, counts: IntArray) -> list[list[IntArray]]:
        """By the mask maker.

        Raises:
            ConfigError: a part has no channel of some convolution, which cannot be computed: there
                are too many of them.
        """
        chosen = deal(self.masks, context, counts, self.mask_overlap)
        shapes = context.spec.shapes
        for place, layer in enumerate(context.neurons().layers):
            if all(len(shapes[slot.parameter]) < 3 for slot in layer.slots):
                continue
            gone = [len(mine[place]) == 0 for mine in chosen]
            if any(gone):
                raise ConfigError(
                    f"masks is 'partition', and of the {layer.width} channels of layer "
                    f"{layer.name!r} none is left for client {context.senders[np.argmax(gone)]} in "
                    f"round {context.number + 1}. Take fewer clients a round, give them more equal "
                    'capacities, or choose masks "covered".'
                )
        return chosen
