"""From a model, its clients and a link to a mask-size problem, and back to neurons."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from solvers import Solution, optimize_mask_sizes
from wirelessfl.submodels.partition import Partition

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MaskSizeProblem:
    """Problem (19) for a network with shared layers, in neurons of the widest split layer.

    Args:
        seconds_per_unit: [cells], seconds that one more neuron costs cell j in a global round.
        offset_seconds: [cells], what it spends on the shared layers.
        total: neurons to hand out.
        cap: largest number for one cell, (19c).
        granularity: neurons in a step, such that all split layers divide without rest.
    """

    seconds_per_unit: FloatArray
    offset_seconds: FloatArray
    total: int
    cap: int
    granularity: int

    def solve(self, backend: str = "exact") -> Solution[NDArray[np.int64]]:
        """The sizes of least latency; every cell gets at least one step of neurons."""
        return optimize_mask_sizes(
            self.seconds_per_unit,
            self.total,
            offset_seconds=self.offset_seconds,
            cap=self.cap,
            lower=self.granularity,
            granularity=self.granularity,
            backend=backend,
        )


def mask_size_problem(
    partition: Partition, seconds_per_parameter: FloatArray, *, size_cap: float
) -> MaskSizeProblem:
    """The mask-size problem of a model over a network.

    Latency is linear in what a cell trains and sends: a_j (g p_j + s), with a_j the seconds a
    parameter costs in a global round, g parameters a neuron and s shared parameters.

    Args:
        partition: which neurons are split (scheme ``alternate``).
        seconds_per_parameter: [cells], a_j; E times ``channels.seconds_per_parameter``.
        size_cap: cap in units of total/cells, i.e. eps_th / (6 delta_1^2) in (19c).
    """
    round_seconds = np.asarray(seconds_per_parameter, dtype=np.float64)
    step = partition.width // math.gcd(*(layer.width for layer in partition.layers))
    if step * len(round_seconds) > partition.width:
        step = 1  # too coarse to give every cell some: let the other layers round instead
    return MaskSizeProblem(
        seconds_per_unit=round_seconds * partition.parameters_per_neuron,
        offset_seconds=round_seconds * partition.shared_parameters,
        total=partition.width,
        cap=math.floor(size_cap * partition.width / len(round_seconds)),
        granularity=step,
    )
