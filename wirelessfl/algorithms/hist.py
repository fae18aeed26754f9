"""HIST: hierarchical independent submodel training (Fang, Han and Brinton, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from channels.arrays import IntArray
from wirelessfl.algorithms.context import DealingContext, RoundContext
from wirelessfl.algorithms.hfedavg import HFedAvg
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import Dealing, Neurons, Partition, Submodels, deal_masks, extract_neurons
from wirelessfl.submodels.partition import Scheme, even_sizes


@dataclass(frozen=True)
class Hist(HFedAvg):
    """HFedAvg whose cells train disjoint parts of the model, dealt afresh every global round.

    In the cells it is FedAvg on the submodel, (4) to (6). The cloud puts the parts together, (7);
    what no part owns is shared by all cells and averaged over them, like what parts share that
    overlap. One cell is FedAvg.

    Args:
        lr: step size gamma.
        mask_sizes: equal parts, or those that minimise the round's latency, (19).
        size_cap: cap (19c) on an optimized part, in units of total/cells.
        partition: split every second hidden layer (a submodel is 1/N of the split layers), or
            all of them (1/N^2, the scheme of Yuan et al. in Fig. 8).
        hidden_biases: biases of the split neurons travel with them, or stay with the client, which
            trains them in its local steps and never sends them: servers keep them as they were
            drawn. That is how we read the published code, which leaves them out of the exchange.
        mask_overlap: neurons of the next parts that a part has beside its own, in shares of these
            (footnote 3: where many cells make parts too small); of equal parts only.
    """

    name = "hist"

    mask_sizes: Annotated[
        Literal["uniform", "optimized"],
        Field(description="sizes of the cells' parts: equal, or of minimum latency (19)"),
    ] = "uniform"
    size_cap: Annotated[
        float,
        Field(ge=1, description="cap (19c) on an optimized part, in units of total/cells"),
    ] = 1.5
    partition: Annotated[
        Scheme,
        Field(
            description="hidden layers to split: every second one (submodels are 1/N of the split "
            "layers) or all (1/N^2)"
        ),
    ] = "alternate"

    hidden_biases: Annotated[
        Literal["exchanged", "local"],
        Field(description="biases of split neurons: exchanged, or trained and never sent"),
    ] = "exchanged"
    mask_overlap: Annotated[
        float,
        Field(ge=0, description="what parts of the model share, in units of a part's own size"),
    ] = 0.0

    def unused(self) -> Mapping[str, str]:
        """A cap needs optimized sizes, an overlap equal ones."""
        found = dict(super().unused())
        if self.mask_sizes == "uniform":
            reason = 'conflicts with mask_sizes="uniform": choose mask_sizes "optimized"'
            found["size_cap"] = reason
        else:
            reason = f'conflicts with mask_sizes="{self.mask_sizes}": choose mask_sizes "uniform"'
            found["mask_overlap"] = reason
        return found

    def __post_init__(self) -> None:
        if self.mask_overlap and self.mask_sizes == "optimized":
            raise ValueError(
                f"mask_overlap is {self.mask_overlap} and mask_sizes 'optimized': those are of "
                "least latency for parts that do not overlap. Choose mask_sizes uniform, or "
                "mask_overlap 0"
            )

    @property
    def fixed_shapes(self) -> bool:
        """Not where the channel of each round decides the sizes."""
        return self.mask_sizes == "uniform"

    def submodels(self, context: RoundContext) -> Submodels:
        """Masks (3): disjoint, whole in their union, drawn afresh given their sizes."""
        partition = context.partition(self.partition)
        if self.mask_sizes == "optimized":
            sizes = context.fastest_sizes(partition, self.size_cap)
        else:
            sizes = even_sizes(partition.width, context.nodes)
        if min(sizes) < 1:
            raise ConfigError(
                f"cells is {context.nodes}, and the model has {partition.width} neurons to split: "
                "each cell needs one. Have fewer cells."
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
        """The parts of the merged cells, pooled and dealt anew among them; each keeps its size.

        Parts of cells at work stay with them, so that all parts remain disjoint and together whole.
        Of all cells the parts are those of ``submodels`` in the round of this number.
        """
        partition, who = context.partition(self.partition), np.array(cells, dtype=np.int64)
        dealing = Dealing(context.number, who, context.stream, context.run_stream)
        assert before.neurons is not None, "parts are made from neurons"
        parts = [list(held) for held in before.neurons]
        for place, layer in enumerate(partition.layers):
            held = [parts[cell][place] for cell in cells]
            pool = np.sort(np.concatenate(held))
            if not len(pool):  # more cells than this layer has neurons
                continue
            sizes = np.array([[len(part)] for part in held], dtype=np.int64)
            pooled = Neurons(layer.name, len(pool), ())
            dealt = deal_masks("partition", [pooled], sizes, dealing)
            for cell, (numbers,) in zip(cells, dealt, strict=True):
                parts[cell][place] = pool[numbers]
        return self._extracted(partition, parts)

    def check_merged_cells(self, merged: int, cells: int) -> None:
        """Two cells at least exchange parts, which are equal and do not overlap."""
        if cells < 2:
            raise ConfigError(
                f'cells is {cells}, and algorithm "{self.name}" under schedule "buffered" deals '
                "the parts of merged cells anew among them. Have 2 or more, or choose schedule "
                '"rounds".'
            )
        super().check_merged_cells(merged, cells)
        if merged < 2:
            raise ConfigError(
                f'buffer is {merged}, and algorithm "{self.name}" deals the parts of merged cells '
                "anew among them: a lone cell would keep its part forever. Choose a buffer of 2 or "
                'more, or algorithm "hfedavg".'
            )
        if self.mask_sizes != "uniform":
            raise ConfigError(
                f'mask_sizes is "{self.mask_sizes}", and schedule is "buffered": cells merged in '
                'turns have no common round to minimise. Choose mask_sizes "uniform", or schedule '
                '"rounds".'
            )
        if self.mask_overlap:
            raise ConfigError(
                f'mask_overlap is {self.mask_overlap:g}, and schedule is "buffered": parts that '
                'overlap cannot be pooled. Choose mask_overlap 0, or schedule "rounds".'
            )

    def _extracted(self, partition: Partition, cells: Sequence[Sequence[IntArray]]) -> Submodels:
        """The submodels of cells that hold these neurons, by cell and split layer."""
        submodels = extract_neurons(partition.spec, partition.layers, cells)
        if self.hidden_biases == "local":
            return submodels.keeping([f"{layer.name}.bias" for layer in partition.layers])
        return submodels
