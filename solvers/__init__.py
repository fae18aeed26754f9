"""Optimisation: solvers that take a problem and return a Solution with a certificate.

>>> import solvers
>>> solution = solvers.optimize_mask_sizes([1.0, 2.0, 4.0], total=70)
>>> solution.value.tolist(), solution.objective, solution.status.name
([40, 20, 10], 40.0, 'OPTIMAL')

What they return:
    Solution          value, objective, bound, gap, status, backend, seconds
    Status            optimal, feasible, infeasible, ...
    SolverUnavailableError        a backend is missing, or cannot solve this problem

Bands, order and clients of an uplink:
    allocate_bandwidth            the last client ends as soon as possible
    allocate_bands_in_time        the same with bands that vary in time
    BandsInTime       what it returns
    schedule_uplink   when each client sends
    Schedule          what it returns
    UPLINK_ACCESS     its ways of sharing the band
    select_clients    the clients that let a round end soonest
    Selection         what it returns
    assign_resource_blocks        the blocks in which the fewest samples are lost
    BlockAssignment   what it returns
    assign_cells      the cell of each client with which the slowest cell ends soonest
    water_filling     powers of subcarriers with the largest rate

Energy:
    allocate_energy   bands, windows, powers and clocks of least energy within a deadline
    EnergyAllocation  what it returns

Submodel sizes of cells:
    optimize_mask_sizes           least latency of the slowest cell
    optimize_sizes_by_time        the same for any law of time
    available_backends            exact, HiGHS, Gurobi, cvxpy: what is installed

Submodel widths of clients:
    fastest_widths    the shortest round with a minimum coverage
    coverage_frontier             its seconds for every coverage
    widths_by_deadline            the largest widths within a deadline
    optimize_widths_by_time       the same for any access

Joint designs:
    optimize_masks_and_bands      sizes and bands of least seconds
    MasksAndBands     what it returns
    optimize_masks_and_energy     sizes, bands, powers and clocks of least cost
    MasksAndEnergy    what it returns
    optimize_widths_and_bands     widths and bands that train the most within a deadline
    WidthsAndBands    what it returns
    optimize_rounds   local steps, edge rounds, sizes, bands, powers and clocks of a training
    TrainingRounds    what it returns
    TrainingProblem   its cells and channel draws
    evaluate_rounds   the costs of a design on other draws
    RoundCosts        what it returns

Over the air:
    optimize_beamformer           maximises the weakest client's gain
    BEAMFORMER_BACKENDS           its methods
    align_transmitters            least mean squared error of a sum
    Alignment         what it returns

Requests:
    allocate_requests             in proportion to weights of tasks

Accesses: how a round's loads are served where a solver decides
    OptimalBands      bands, for the least time
    WaterFilled       turns, with powers of subcarriers by water-filling
    EnergyWithinDeadline          bands, powers and clocks, for the least energy
    LeastTimeAndEnergy            both, weighted
    OverTheAir        beamformers, and the powers of precoders
    DeadlineCheck     whether all can meet the deadline
    DeadlineMissedError           a cell cannot

Packages with the backends, to compare or vary them: ``solvers.mask_sizes``,
``solvers.beamforming``.
"""

from solvers.access import (
    DeadlineCheck,
    DeadlineMissedError,
    EnergyWithinDeadline,
    LeastTimeAndEnergy,
    OptimalBands,
    OverTheAir,
    WaterFilled,
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
from solvers.cells import assign_cells
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
from solvers.water_filling import water_filling
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
    "WaterFilled",
    "WidthsAndBands",
    "align_transmitters",
    "allocate_bands_in_time",
    "allocate_bandwidth",
    "allocate_energy",
    "allocate_requests",
    "assign_cells",
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
    "water_filling",
    "widths_by_deadline",
]
