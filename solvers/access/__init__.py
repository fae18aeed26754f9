"""How clients share the air where a solver decides: accesses with bands, energy or beamformers."""

from solvers.access.deadlines import DeadlineMissedError
from solvers.access.least_energy import DeadlineCheck, EnergyWithinDeadline
from solvers.access.optimal_bands import OptimalBands
from solvers.access.over_the_air import OverTheAir
from solvers.access.time_and_energy import LeastTimeAndEnergy
from solvers.access.water_filled import WaterFilled

__all__ = [
    "DeadlineCheck",
    "DeadlineMissedError",
    "EnergyWithinDeadline",
    "LeastTimeAndEnergy",
    "OptimalBands",
    "OverTheAir",
    "WaterFilled",
]
