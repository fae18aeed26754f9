"""How clients share the air where a solver decides: accesses with bands, energy or beamformers."""

from solvers.access.least_energy import EnergyWithinDeadline
from solvers.access.optimal_bands import OptimalBands
from solvers.access.over_the_air import OverTheAir

__all__ = ["EnergyWithinDeadline", "OptimalBands", "OverTheAir"]
