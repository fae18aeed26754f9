"""Mask sizes: number of units (neurons) that each cell trains, for the shortest rounds."""

from solvers.mask_sizes.backend import Found, MaskSizeBackend
from solvers.mask_sizes.cvxpy import Cvxpy
from solvers.mask_sizes.exact import Exact
from solvers.mask_sizes.gurobi import Gurobi
from solvers.mask_sizes.highs import Highs
from solvers.mask_sizes.optimize import available_backends, optimize_mask_sizes
from solvers.mask_sizes.problem import Problem

__all__ = [
    "Cvxpy",
    "Exact",
    "Found",
    "Gurobi",
    "Highs",
    "MaskSizeBackend",
    "Problem",
    "available_backends",
    "optimize_mask_sizes",
]
