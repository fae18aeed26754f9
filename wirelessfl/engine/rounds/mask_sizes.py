"""Mask-size problem (19) for a model, its clients and their uplink, solved in neurons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from channels import ChannelDraw, Load
from channels.arguments import checked
from channels.arrays import FloatArray, IntArray
from solvers import Solution, optimize_sizes_by_time
from wirelessfl.air.uplinks import UPLINKS
from wirelessfl.air.uplinks.checked import checked_access
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import ParamSpec, make_partition
from wirelessfl.models.submodels.partition import Partition, Scheme, share_out

SecondsOfSizes = Callable[[IntArray], FloatArray]


@dataclass(frozen=True)
class MaskSizing:
    """Problem (19) for a model with shared layers, in neurons of the widest partitioned layer.

    Args:
        seconds: seconds of a global round [sizes, cells] of cells with submodels of these sizes
            [sizes, cells]; nondecreasing in a cell's own size, and independent of the others'.
        cells: number of cells.
        total: number of neurons to assign.
        cap: maximum number of neurons of one cell, (19c).
        granularity: sizes are multiples of this number of neurons, chosen so that all partitioned
            layers divide exactly. If that is too coarse for the cells or the cap, it is 1; then
            narrower layers are rounded, and the latencies are approximate.
        partition: partition of the model's neurons.
    """

    seconds: SecondsOfSizes
    cells: int
    total: int
    cap: int
    granularity: int
    partition: Partition

    def solve(self) -> Solution[NDArray[np.int64]]:
        """Minimise the latency; each cell gets at least ``granularity`` neurons."""
        return optimize_sizes_by_time(
            self.seconds,
            self.total,
            cells=self.cells,
            cap=self.cap,
            lower=self.granularity,
            granularity=self.granularity,
        )

    def neurons(self, sizes: Sequence[int]) -> dict[str, list[int]]:
        """Number of neurons of each cell in each partitioned layer, by the layer's name."""
        return {layer.name: share_out(sizes, layer.width) for layer in self.partition.layers}


@checked(ConfigError)
def model_mask_sizes(
    module: torch.nn.Module,
    draw: ChannelDraw,
    *,
    uplink: str = "tdma",
    local_steps: int = 20,
    edge_rounds: int = 5,
    size_cap: float = 1.5,
    layers: Sequence[str] | None = None,
    scheme: Scheme = "alternate",
) -> MaskSizing:
    """Create the mask-size problem of a model that a network's clients train.

    Elements take 32 bits; in a run with ``uplink_compression``, its planner counts those sent.

    >>> import channels
    >>> import wirelessfl
    >>> network = channels.section_vi_c(cells=4, clients=8, stream=channels.Stream(1))
    >>> draw = network.draw(channels.Stream(1, ("channel",)))
    >>> model = wirelessfl.models.FCNN((1, 8, 8), classes=10)
    >>> problem = wirelessfl.model_mask_sizes(model, draw)
    >>> int(problem.solve().value.sum()) == problem.total
    True

    Args:
        module: the model.
        draw: channel draw of a network with N cells, h [clients, antennas].
        uplink: name of the uplink.
        local_steps: H, local steps per edge round.
        edge_rounds: E, edge rounds per global round.
        size_cap: cap (19c) in units of total/cells.
        layers: fully connected layers in order; default: the module's own ``fully_connected``.
        scheme: layers that are partitioned, see ``Partition``.

    Raises:
        ConfigError: the model's layers cannot be partitioned, or the uplink is unknown.
    """
    spec = ParamSpec.of(module)
    access, network = checked_access(UPLINKS.find(uplink)()), draw.network
    partition = make_partition(module, spec, scheme, chain=layers)

    def seconds(sizes: IntArray) -> FloatArray:
        length = partition.lengths(sizes)[:, network.cell_of]
        load = Load(local_steps * network.cycles_per_step * (length / spec.size), length)
        return edge_rounds * network.over_cells(np.maximum, access.seconds(load, draw))

    return mask_size_problem(partition, seconds, network.cells, size_cap=size_cap)


def mask_size_problem(
    partition: Partition, seconds: SecondsOfSizes, cells: int, *, size_cap: float
) -> MaskSizing:
    """Create the mask-size problem of a partitioned model, given the seconds of cells by size.

    Args:
        partition: partition of the neurons.
        seconds: see ``MaskSizing``.
        cells: number of cells.
        size_cap: cap in units of total/cells, i.e. eps_th / (6 delta_1^2) in (19c).
    """
    step = partition.width // math.gcd(*(layer.width for layer in partition.layers))
    cap = math.floor(min(size_cap, cells) * partition.width / cells)  # at most the whole width
    if step * cells > partition.width or cap // step * step * cells < partition.width:
        step = 1  # too coarse for the cells or the cap: round the other layers instead
    return MaskSizing(seconds, cells, partition.width, cap, step, partition)
