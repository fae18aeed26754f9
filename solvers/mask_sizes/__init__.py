"""Mask sizes: how many units (neurons) of a layer each cell trains, so that rounds end soonest."""

from solvers.mask_sizes.optimize import optimize_mask_sizes
from solvers.mask_sizes.programs import available_backends

__all__ = ["available_backends", "optimize_mask_sizes"]
