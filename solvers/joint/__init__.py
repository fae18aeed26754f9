"""Joint design of submodels and bands: which share of the model and of the band each gets."""

from solvers.joint.masks_and_bands import MasksAndBands, optimize_masks_and_bands
from solvers.joint.masks_and_energy import MasksAndEnergy, optimize_masks_and_energy
from solvers.joint.widths_and_bands import WidthsAndBands, optimize_widths_and_bands

__all__ = [
    "MasksAndBands",
    "MasksAndEnergy",
    "WidthsAndBands",
    "optimize_masks_and_bands",
    "optimize_masks_and_energy",
    "optimize_widths_and_bands",
]
