"""Mask-size problem (19) for a model, its clients and their uplink, solved in neurons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import nn

from channels import ChannelDraw, seconds_per_parameter
from channels.arguments import checked
from channels.arrays import FloatArray
from solvers import Solution, optimize_mask_sizes
from solvers.mask_sizes import MaskSizeBackend
from wirelessfl.errors import ConfigError
from wirelessfl.submodels import ParamSpec, make_partition
from wirelessfl.submodels.partition import Partition, share_out
from wirelessfl.uplinks import UPLINKS


@dataclass(frozen=True)
class MaskSizeProblem:
    """Problem (19) for a model with shared layers, in neurons of the widest partitioned layer.

    Args:
        seconds_per_unit: [cells], seconds per additional neuron of cell j in a global round.
        offset_seconds: [cells], seconds that cell j spends on the shared layers.
        total: number of neurons to assign.
        cap: maximum number of neurons of one cell, (19c).
        granularity: sizes are multiples of this number of neurons, chosen so that all partitioned
            layers divide exactly. If that is too coarse for the cells or the cap, it is 1; then
            narrower layers are rounded, and the latencies are approximate.
        partition: partition of the model's neurons.
    """

    seconds_per_unit: FloatArray
    offset_seconds: FloatArray
    total: int
    cap: int
    granularity: int
    partition: Partition

    def solve(self, backend: str | MaskSizeBackend = "exact") -> Solution[NDArray[np.int64]]:
        """Minimise the latency; each cell gets at least ``granularity`` neurons."""
        return optimize_mask_sizes(
            self.seconds_per_unit,
            self.total,
            offset_seconds=self.offset_seconds,
            cap=self.cap,
            lower=self.granularity,
            granularity=self.granularity,
            backend=backend,
        )

    def neurons(self, sizes: Sequence[int]) -> dict[str, list[int]]:
        """Number of neurons of each cell in each partitioned layer, by the layer's name."""
        return {layer.name: share_out(sizes, layer.width) for layer in self.partition.layers}


@checked(ConfigError)
def model_mask_sizes(
    module: nn.Module,
    draw: ChannelDraw,
    *,
    uplink: str = "tdma",
    local_steps: int = 20,
    edge_rounds: int = 5,
    size_cap: float = 1.5,
    layers: Sequence[str] | None = None,
) -> MaskSizeProblem:
    """Create the mask-size problem of a model that a network's clients train.

    Args:
        module: the model.
        draw: channel draw of a network with N cells.
        uplink: name of the uplink.
        local_steps: H, local steps per edge round.
        edge_rounds: E, edge rounds per global round.
        size_cap: cap (19c) in units of total/cells.
        layers: fully connected layers in order; default: the module's own ``fully_connected``.

    Raises:
        ConfigError: the model's layers cannot be partitioned, or the uplink is unknown.
    """
    spec = ParamSpec.of(module)
    upload = UPLINKS.find(uplink)().seconds_per_bit(draw)
    seconds = seconds_per_parameter(
        draw,
        model_parameters=spec.size,
        local_steps=local_steps,
        seconds_per_bit=upload,
    )
    partition = make_partition(module, spec, chain=layers)
    return mask_size_problem(partition, edge_rounds * seconds, size_cap=size_cap)


def mask_size_problem(
    partition: Partition, seconds_per_parameter: FloatArray, *, size_cap: float
) -> MaskSizeProblem:
    """Create the mask-size problem of a partitioned model, given the seconds per parameter.

    Latency is linear in the number of parameters that a cell trains and sends: a_j (g p_j + s),
    with a_j seconds per parameter in a global round, g parameters per neuron, and s shared
    parameters.

    Args:
        partition: partition of the neurons (scheme ``alternate``).
        seconds_per_parameter: [cells], a_j; E times ``channels.seconds_per_parameter``.
        size_cap: cap in units of total/cells, i.e. eps_th / (6 delta_1^2) in (19c).
    """
    round_seconds = np.asarray(seconds_per_parameter, dtype=np.float64)
    step = partition.width // math.gcd(*(layer.width for layer in partition.layers))
    cells = len(round_seconds)
    cap = math.floor(min(size_cap, cells) * partition.width / cells)  # at most the whole width
    if step * cells > partition.width or cap // step * step * cells < partition.width:
        step = 1  # too coarse for the cells or the cap: round the other layers instead
    return MaskSizeProblem(
        seconds_per_unit=round_seconds * partition.parameters_per_neuron,
        offset_seconds=round_seconds * partition.shared_parameters,
        total=partition.width,
        cap=cap,
        granularity=step,
        partition=partition,
    )
