"""Optimisation: solvers that take a problem and return a Solution with a certificate."""

from solvers.access import (
    DeadlineCheck,
    DeadlineMissedError,
    EnergyWithinDeadline,
    LeastTimeAndEnergy,
    OptimalBands,
    OverTheAir,
)
from solvers.alignment import Alignment, align_transmitters
from solvers.allocation import allocate_requests
from solvers.bands import (
    BandsInTime,
    Selection,
    allocate_bands_in_time,
    allocate_bandwidth,
    select_clients,
)
from solvers.beamforming import BEAMFORMER_BACKENDS, optimize_beamformer
from solvers.energy import EnergyAllocation, allocate_energy
from solvers.joint import (
    MasksAndBands,
    MasksAndEnergy,
    WidthsAndBands,
    optimize_masks_and_bands,
    optimize_masks_and_energy,
    optimize_widths_and_bands,
)
from solvers.mask_sizes import (
    available_backends,
    optimize_mask_sizes,
    optimize_sizes_by_time,
)
from solvers.resource_blocks import BlockAssignment, assign_resource_blocks
from solvers.solution import Solution, SolverUnavailableError, Status
from solvers.training_rounds import (
    RoundCosts,
    TrainingProblem,
    TrainingRounds,
    evaluate_rounds,
    optimize_rounds,
)
from solvers.uplink_schedule import UPLINK_ACCESS, Schedule, schedule_uplink
from solvers.widths import (
    coverage_frontier,
    fastest_widths,
    optimize_widths_by_time,
    widths_by_deadline,
)

__all__ = [
    "BEAMFORMER_BACKENDS",
    "UPLINK_ACCESS",
    "Alignment",
    "BandsInTime",
    "BlockAssignment",
    "DeadlineCheck",
    "DeadlineMissedError",
    "EnergyAllocation",
    "EnergyWithinDeadline",
    "LeastTimeAndEnergy",
    "MasksAndBands",
    "MasksAndEnergy",
    "OptimalBands",
    "OverTheAir",
    "RoundCosts",
    "Schedule",
    "Selection",
    "Solution",
    "SolverUnavailableError",
    "Status",
    "TrainingProblem",
    "TrainingRounds",
    "WidthsAndBands",
    "align_transmitters",
    "allocate_bands_in_time",
    "allocate_bandwidth",
    "allocate_energy",
    "allocate_requests",
    "assign_resource_blocks",
    "available_backends",
    "coverage_frontier",
    "evaluate_rounds",
    "fastest_widths",
    "optimize_beamformer",
    "optimize_mask_sizes",
    "optimize_masks_and_bands",
    "optimize_masks_and_energy",
    "optimize_rounds",
    "optimize_sizes_by_time",
    "optimize_widths_and_bands",
    "optimize_widths_by_time",
    "schedule_uplink",
    "select_clients",
    "widths_by_deadline",
]
