"""The problem of a whole training: work, channels and submodels of the cells."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

from numpy.typing import ArrayLike

from channels.loads import Load
from channels.network import ChannelDraw
from solvers.load_rows import load_arrays

Bands = Literal["optimal", "equal"]
"""How clients of a cell share its band: as suits them best, or equally at full power and speed."""


@dataclass(frozen=True, eq=False)
class TrainingProblem:
    """Cells that train together, in a sample of channel draws.

    A global round is E edge rounds, and what follows them, e.g. the backhaul. An edge round is a
    start, e.g. the download, and a local phase of H local steps. Arrays are broadcast;
    [cells, clients] is one draw. Solvers validate them.

    >>> import channels, solvers
    >>> problem = solvers.TrainingProblem(
    ...     bits_per_unit=1e4,
    ...     cycles_per_unit=1e6,
    ...     gain_per_noise=[[1e9, 1e9], [1e8, 1e8]],
    ...     max_power_watts=0.1,
    ...     max_cpu_hz=1e9,
    ...     kappa=1e-28,
    ...     bandwidth_hz=[1e6, 1e6],
    ...     total=10,
    ... )
    >>> network = channels.section_vi_c(2, 4, stream=channels.Stream(1))
    >>> draw, neuron = network.draw(channels.Stream(1)), channels.Load(1e6, 1e4)
    >>> solvers.TrainingProblem.of_load(neuron, draw, 10).gain_per_noise.shape
    (2, 2)

    Args:
        bits_per_unit: [draws, cells, clients], bits that a client sends per unit (neuron) of its
            cell's submodel; 0, with 0 cycles, for clients that a smaller cell lacks.
        cycles_per_unit: [draws, cells, clients], CPU cycles per unit and local step.
        gain_per_noise: [draws, cells, clients], power gain / noise density in Hz/W.
        max_power_watts, max_cpu_hz, kappa: [draws, cells, clients], as for ``allocate_energy``.
        bandwidth_hz: [draws, cells], the band of each cell in Hz.
        total: number of units to allocate; None if all cells train the whole model, which is one
            unit.
        cap, lower, granularity: bounds of the sizes, as for ``optimize_mask_sizes``; with equal
            ``cap`` and ``lower`` the masks are fixed.
        offset_bits, offset_cycles: [draws, cells, clients], of layers that all cells share, cycles
            per local step.
        extra_seconds, extra_seconds_per_unit: [draws, cells], seconds of a global round besides its
            edge rounds, and those per unit of the cell's submodel.
        start_seconds, start_seconds_per_unit: [draws, cells], seconds of an edge round before the
            clients of the cell compute, and those per unit. Clients that start at different times
            count as if they started at the latest of these.
        bands: "optimal"; or "equal", at full power and speed, for comparison.
    """

    bits_per_unit: ArrayLike
    cycles_per_unit: ArrayLike
    gain_per_noise: ArrayLike
    max_power_watts: ArrayLike
    max_cpu_hz: ArrayLike
    kappa: ArrayLike
    bandwidth_hz: ArrayLike
    total: int | None
    _: KW_ONLY
    cap: ArrayLike | None = None
    lower: ArrayLike = 0
    granularity: int = 1
    offset_bits: ArrayLike = 0.0
    offset_cycles: ArrayLike = 0.0
    extra_seconds: ArrayLike = 0.0
    extra_seconds_per_unit: ArrayLike = 0.0
    start_seconds: ArrayLike = 0.0
    start_seconds_per_unit: ArrayLike = 0.0
    bands: Bands = "optimal"

    @classmethod
    def of_load(
        cls, load: Load, draw: ChannelDraw, total: int | None, **others: Any
    ) -> TrainingProblem:
        """The problem of a load and of the channels of its clients, by cell.

        Clients are in the order of ``Network.by_cell``.

        Args:
            load: per unit and, for cycles, per local step.
            draw: one channel draw or several.
            total, others: as for arrays.

        Raises:
            ValueError: the load is not one of these clients, or has start or deadline seconds.
        """
        arrays = load_arrays([f.name for f in fields(cls)], load, draw)
        return cls(total=total, **arrays, **others)
