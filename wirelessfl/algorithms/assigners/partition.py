"""Partition: cells train disjoint submodels, redrawn every round (HIST; Fang, Han and Brinton)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.algorithms.assigners.assigner import (
    DealingContext,
    RoundContext,
    SubmodelSizes,
)
from wirelessfl.algorithms.assigners.narrow import Scaled
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import beside
from wirelessfl.models.submodels import (
    Dealing,
    Neurons,
    Partition,
    Submodels,
    deal_masks,
    extract_neurons,
)
from wirelessfl.models.submodels.partition import Scheme, even_sizes, sizes_by_share

SUM_TOLERANCE = 1e-6
"""Largest deviation of the sum of ``mask_shares`` from 1: shares are written in decimals."""


@dataclass(frozen=True)
class CellPartition(Scaled):
    """Disjoint submodels of the cells, which cover the model, redrawn every round (Fang et al.)."""

    name = "partition"
    of_cells: ClassVar[bool] = True

    mask_sizes: Annotated[
        Literal["uniform", "optimized", "fixed"],
        Field(
            description=(
                "sizes of the cells' submodels: uniform, fixed by --mask-shares, or "
                "optimized for latency (19)"
            )
        ),
    ] = "uniform"
    mask_shares: Annotated[
        tuple[Annotated[float, Field(gt=0, le=1)], ...] | None,
        Field(
            min_length=1,
            description=(
                "share of the neurons of each cell, with sum 1, e.g. "
                "0.4,0.3,0.2,0.1; rounded by largest remainders"
            ),
        ),
        beside("mask_sizes", "fixed"),
    ] = None
    size_cap: Annotated[
        float,
        Field(ge=1, description="cap (19c) on an optimized size, in units of total/cells"),
        beside("mask_sizes", "optimized"),
    ] = 1.5
    partition: Annotated[
        Scheme,
        Field(
            description=(
                "hidden layers to partition: alternate ones (1/N of their parameters), or "
                "all (1/N^2)"
            )
        ),
    ] = "alternate"

    hidden_biases: Annotated[
        Literal["exchanged", "local"],
        Field(
            description=("biases of partitioned neurons: exchanged, or local: trained, never sent")
        ),
    ] = "exchanged"
    mask_overlap: Annotated[
        float,
        Field(ge=0, description="overlap between submodels, relative to submodel size"),
        beside("mask_sizes", "uniform"),
    ] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()  # that of an algorithm that derives from this
        if self.mask_overlap and self.mask_sizes != "uniform":
            raise ValueError(
                f"mask_overlap={self.mask_overlap} conflicts with mask_sizes='{self.mask_sizes}', "
                "whose submodels are disjoint: choose mask_sizes uniform, or mask_overlap 0"
            )
        if self.mask_sizes == "fixed" and self.mask_shares is None:
            raise ValueError(
                "mask_sizes='fixed' needs mask_shares: give one share per cell, with sum 1"
            )
        if self.mask_shares is not None and abs(sum(self.mask_shares) - 1) > SUM_TOLERANCE:
            raise ValueError(
                f"mask_shares={self.mask_shares} has the sum {sum(self.mask_shares):.7g}: give "
                "shares with sum 1"
            )

    @property
    def design_sizes(self) -> SubmodelSizes:
        """Sizes of the cells."""
        return CellSizes(self)

    @property
    def fixed_shapes(self) -> bool:
        """False for optimized sizes, which depend on the channels of each round."""
        return self.mask_sizes != "optimized"

    def check_cells(self, cells: int) -> None:
        """Check that there is a share for each cell, if sizes are fixed."""
        super().check_cells(cells)
        if self.mask_sizes == "fixed" and len(self.mask_shares or ()) != cells:
            raise ConfigError(
                f"mask_shares={self.mask_shares} conflicts with cells={cells}: give one share per "
                "cell."
            )

    def submodels(self, context: RoundContext) -> Submodels:
        """Draw this round's masks (3), which are disjoint and cover all neurons."""
        partition = context.partition(self.partition)
        if self.mask_sizes == "optimized":
            sizes = context.durations.fastest_sizes(self._exchanged(partition), self.size_cap)
        elif self.mask_sizes == "fixed" and partition.width >= context.nodes:
            sizes = sizes_by_share(partition.width, self.mask_shares or ())
        else:
            sizes = even_sizes(partition.width, context.nodes)
        if min(sizes) < 1:
            raise ConfigError(
                f"cells={context.nodes} conflicts with the model's {partition.width} neurons to "
                f"partition: each cell needs one. Lower cells to {partition.width} or less, or "
                "widen the layers."
            )
        layers = partition.layers
        counts = np.repeat(np.array(sizes, dtype=np.int64)[:, None], len(layers), 1)
        cells = deal_masks(
            "partition",
            layers,
            counts,
            Dealing(
                number=context.number,
                clients=np.arange(context.nodes),
                round=context.stream,
                run=context.run_stream,
                overlap=self.mask_overlap,
            ),
        )
        return self._extracted(partition, cells)

    def redealt(
        self, context: DealingContext, before: Submodels, cells: Sequence[int]
    ) -> Submodels:
        """Pool the neurons of the merged cells and reassign them; each cell keeps its size.

        Cells that are still training keep their neurons, so the submodels stay disjoint and cover
        the model. If all cells are merged, the result equals that of ``submodels`` in the round of
        the same number.
        """
        partition, merged = context.partition(self.partition), np.array(cells, dtype=np.int64)
        dealing = Dealing(context.number, merged, context.stream, context.run_stream)
        assert before.neurons is not None, "submodels of HIST are defined by neurons"
        parts = [list(held) for held in before.neurons]
        for index, layer in enumerate(partition.layers):
            held = [parts[cell][index] for cell in cells]
            pool = np.sort(np.concatenate(held))
            if not len(pool):  # the layer has fewer neurons than there are cells
                continue
            sizes = np.array([[len(part)] for part in held], dtype=np.int64)
            pooled = Neurons(layer.name, len(pool), ())
            dealt = deal_masks("partition", [pooled], sizes, dealing)
            for cell, (numbers,) in zip(cells, dealt, strict=True):
                parts[cell][index] = pool[numbers]
        return self._extracted(partition, parts)

    def check_merged_cells(self, merged: int, cells: int) -> None:
        """Check that 2 or more cells are merged, with disjoint submodels of known sizes."""
        if cells < 2:
            raise ConfigError(
                f'cells={cells} conflicts with schedule="buffered": "{self.title}" '
                "reassigns neurons among the merged cells. Use 2 or more cells, or choose schedule "
                '"rounds".'
            )
        super().check_merged_cells(merged, cells)
        if merged < 2:
            raise ConfigError(
                f'buffer={merged} conflicts with "{self.title}", which reassigns neurons '
                "among the merged cells: a single cell would always keep its submodel. Choose a "
                'buffer of 2 or more, or algorithm "hfedavg".'
            )
        if self.mask_sizes == "optimized":
            raise ConfigError(
                'mask_sizes="optimized" conflicts with schedule="buffered": without common rounds '
                'there is no round latency to minimise. Choose mask_sizes "uniform" or "fixed", or '
                'schedule "rounds".'
            )
        if self.mask_overlap:
            raise ConfigError(
                f'mask_overlap={self.mask_overlap:g} conflicts with schedule="buffered": '
                "overlapping submodels cannot be pooled. Choose mask_overlap 0, or schedule "
                '"rounds".'
            )

    def _exchanged(self, partition: Partition) -> Partition:
        """The partition without the parameters that stay at the cells, for lengths by size."""
        if self.hidden_biases == "local":
            return partition.without([f"{layer.name}.bias" for layer in partition.layers])
        return partition

    def _extracted(self, partition: Partition, cells: Sequence[Sequence[IntArray]]) -> Submodels:
        """Submodels of cells, given the neurons of each cell in each partitioned layer."""
        submodels = extract_neurons(partition.spec, partition.layers, cells)
        if self.hidden_biases == "local":
            submodels = submodels.keeping([f"{layer.name}.bias" for layer in partition.layers])
        return replace(submodels, scaled=self.scaled)


@dataclass(frozen=True)
class CellSizes(SubmodelSizes):
    """Sizes of the cells' submodels, which a design chooses."""

    assigner: CellPartition
    of: ClassVar[Literal["", "cells", "clients"]] = "cells"

    @property
    def disjoint(self) -> bool:
        """True without ``mask_overlap``."""
        return not self.assigner.mask_overlap

    def fixed(self, shares: tuple[float, ...] | None) -> CellPartition:
        """With these fixed shares of the cells; None for uniform sizes."""
        sizes: Literal["uniform", "fixed"] = "uniform" if shares is None else "fixed"
        return replace(self.assigner, mask_sizes=sizes, mask_shares=shares)

    def optimized(self) -> CellPartition:
        """With ``mask_sizes`` optimized."""
        return replace(self.assigner, mask_sizes="optimized", mask_shares=None)

    def limit(self, partition_of: Callable[[Scheme], Partition]) -> tuple[Partition, float]:
        """The partition of the model, and ``size_cap``."""
        return partition_of(self.assigner.partition), self.assigner.size_cap
