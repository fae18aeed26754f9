"""Energy of a round: bands, windows, powers and CPU frequencies for the fewest joules."""

from solvers.energy.allocate import EnergyAllocation, allocate_energy

__all__ = ["EnergyAllocation", "allocate_energy"]
