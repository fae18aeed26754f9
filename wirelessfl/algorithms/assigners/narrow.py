"""Base classes of assigners that give clients submodels of affordable width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from channels.arrays import FloatArray, IntArray
from wirelessfl.algorithms.assigners.assigner import Assigner, ClientContext
from wirelessfl.base.needs import Needs, beside
from wirelessfl.models.submodels import ClientSubmodels
from wirelessfl.models.submodels.budgets import dealt_capacities, levels_of
from wirelessfl.models.submodels.masks import Dealing, Masks, deal_masks

WIDTHS = Needs(
    lambda run, choice: getattr(choice, "widths", None) is None,
    "conflicts with widths, which replace them: leave one of them out",
)


@dataclass(frozen=True)
class Narrow(Assigner):
    """Base class: each client trains its own submodel and sends only the submodel's coordinates.

    A submodel keeps a fraction of the neurons of every hidden layer and of the channels of every
    convolution, and all inputs and outputs. Each coordinate is averaged over the clients that cover
    it; the algorithm decides how to use this mean.
    """

    name = ""
    of_clients: ClassVar[bool] = True

    capacities: Annotated[
        tuple[Annotated[float, Field(gt=0)], ...],
        Field(
            min_length=1,
            description=(
                "client capacities: fractions of the full model or, if above 1, "
                "bytes or FLOPs, see --budget; dealt at random in equal numbers, "
                "once per run"
            ),
        ),
        WIDTHS,
        beside(
            "budget", "width", "bytes", "flops", because=", which computes widths from the channels"
        ),
    ] = (1.0, 0.5, 0.25, 0.125)
    budget: Annotated[
        Literal["width", "bytes", "flops"],
        Field(
            description=(
                "unit of --capacities: neurons of each layer (width), bytes of "
                "parameters, or flops of the forward pass of a sample"
            )
        ),
    ] = "width"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget == "width" and max(self.capacities) > 1:
            raise ValueError(
                f"capacities={self.capacities} conflicts with budget='width': give fractions of a "
                "layer's neurons, at most 1"
            )

    @property
    def kind(self) -> Masks:
        """Kind of the masks, see ``submodels.masks``."""
        return "ordered"

    def choose(self, context: ClientContext, counts: IntArray) -> list[list[IntArray]]:
        """Choose ``counts`` [senders, layers] neurons per sender and layer; sorted indices."""
        return deal(self.kind, context, counts)

    @property
    def deals_jointly(self) -> bool:
        """True for masks that are arcs of a common circle."""
        return self.kind in ("covered", "crossed", "partition")

    def client_submodels(self, context: ClientContext) -> ClientSubmodels | None:
        """Submodel of each sender, as wide as the sender can afford."""
        neurons = context.neurons()
        counts = levels_of(neurons).widths[self.levels(context)]
        return ClientSubmodels(neurons, self.choose(context, counts))

    def levels(self, context: ClientContext) -> IntArray:
        """Width level [senders] of each sender, see ``budgets.Levels``.

        Raises:
            ConfigError: a client cannot afford the smallest submodel.
        """
        levels = levels_of(context.neurons())
        shares = self.shares(context).tolist()
        level = {share: levels.within(self.budget, share) for share in set(shares)}
        return np.array([level[share] for share in shares], dtype=np.int64)

    def shares(self, context: ClientContext) -> FloatArray:
        """Capacity [senders] of each sender, in the unit ``budget``."""
        return dealt_capacities(
            self.capacities, context.clients, context.capacity_stream, context.senders
        )


def deal(
    kind: Masks, context: ClientContext, counts: IntArray, overlap: float = 0.0
) -> list[list[IntArray]]:
    """Masks of each sender, assigned jointly to all senders of a node; see ``deal_masks``."""
    chosen: list[list[IntArray]] = [[] for _ in context.senders]
    for node, rows in reporting(context):
        stream = context.stream if context.nodes == 1 else context.stream.child("cell", node)
        dealing = Dealing(
            number=context.number,
            clients=context.senders[rows],
            round=stream,
            run=context.run_stream,
            overlap=overlap,
        )
        masks = deal_masks(kind, context.neurons().layers, counts[rows], dealing)
        for row, mine in zip(rows.tolist(), masks, strict=True):
            chosen[row] = mine
    return chosen


def reporting(context: ClientContext) -> Iterator[tuple[int, IntArray]]:
    """Yield each node with senders, and the indices of its senders among all senders."""
    for node in np.unique(context.node).tolist():
        yield node, np.flatnonzero(context.node == node)


@dataclass(frozen=True)
class Scaled(Assigner):
    """Base class: activations of a submodel's partial layers may be scaled while it trains."""

    name = ""

    submodel_scale: Annotated[
        Literal["none", "width"],
        Field(
            description=(
                "factor of the activations of a submodel's partial layers while it "
                "trains: 1 (none), or full width / own width, as in inverted "
                "dropout (width)"
            )
        ),
    ] = "none"

    @property
    def scaled(self) -> bool:
        """Whether ``submodel_scale`` is "width"."""
        return self.submodel_scale == "width"
