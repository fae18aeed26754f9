"""Assigners of arbitrary neurons: random, static, or arcs that cover evenly (RA-Fed; KDD '23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.algorithms.assigners.adaptive import Adaptive
from wirelessfl.algorithms.assigners.assigner import ClientContext
from wirelessfl.algorithms.assigners.narrow import deal
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import beside
from wirelessfl.models.submodels.masks import Masks


@dataclass(frozen=True)
class Masked(Adaptive):
    """Base class: submodels of arbitrary neurons (KDD '23, supplement A.1)."""

    name = ""

    masks: Annotated[
        Masks,
        Field(
            description=(
                "neurons of a client: the first (ordered), a moving window "
                "(rolling), random per round or per run (static), arcs that cover "
                "all evenly (covered), arcs of a grid (crossed), or a partition as "
                "in HIST; see docs/guides/submodels.md"
            )
        ),
    ] = "random"
    mask_overlap: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "neurons that a submodel of a partition shares with the next ones, "
                "relative to its size"
            ),
        ),
        beside("masks", "partition"),
    ] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.masks == "partition" and not self.fixed_shapes:
            raise ValueError(
                f"masks='partition' conflicts with budget={self.budget!r}: a partition scales the "
                "submodels to cover each layer once, so they can exceed the budget. Choose masks "
                '"covered"'
            )

    @property
    def kind(self) -> Masks:
        """``masks``."""
        return self.masks

    @property
    def even_masks(self) -> str:
        """Advice to choose masks "crossed"."""
        return "" if self.masks == "crossed" else 'choose masks "crossed", or '

    @property
    def plans_ahead(self) -> bool:
        """Also True for masks "partition": a layer may have fewer neurons than senders."""
        return super().plans_ahead or self.masks == "partition"

    def check_requests(self, schedule: str) -> None:
        """Also refuse masks "partition", which may not suffice for the clients of a round."""
        if self.masks == "partition":
            raise ConfigError(
                f'masks="partition" conflicts with {schedule}, which does not plan rounds in '
                'advance: choose masks "covered", or schedule "rounds".'
            )
        super().check_requests(schedule)

    def choose(self, context: ClientContext, counts: IntArray) -> list[list[IntArray]]:
        """Choose masks by the rule ``masks``.

        Raises:
            ConfigError: there are too many clients for a partition, so that a submodel has no
                channels of a convolution and cannot be evaluated.
        """
        chosen = deal(self.masks, context, counts, self.mask_overlap)
        shapes = context.spec.shapes
        for index, layer in enumerate(context.neurons().layers):
            if all(len(shapes[slot.parameter]) < 3 for slot in layer.slots):
                continue
            empty = [len(neurons[index]) == 0 for neurons in chosen]
            if any(empty):
                raise ConfigError(
                    f"masks is 'partition', and in round {context.number + 1} client "
                    f"{context.senders[np.argmax(empty)]} gets none of the {layer.width} channels "
                    f"of layer {layer.name!r}. Lower clients_per_round, make capacities more "
                    'equal, or choose masks "covered".'
                )
        return chosen


@dataclass(frozen=True)
class RandomNeurons(Adaptive):
    """Random neurons of each layer, drawn for each client in every round (KDD '23)."""

    name = "random"

    @property
    def kind(self) -> Masks:
        """Masks ``random``."""
        return "random"


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
