"""Mask sizes: how many units (neurons) each cell trains, chosen to minimise round latency."""

from solvers.mask_sizes.cvxpy import Cvxpy
from solvers.mask_sizes.exact import Exact
from solvers.mask_sizes.gurobi import Gurobi
from solvers.mask_sizes.highs import Highs
from solvers.mask_sizes.mask_size_backend import FoundSizes, MaskSizeBackend
from solvers.mask_sizes.mask_size_problem import MaskSizeProblem
from solvers.mask_sizes.optimize import available_backends, optimize_mask_sizes
from solvers.mask_sizes.sizes_by_time import optimize_sizes_by_time

__all__ = [
    "Cvxpy",
    "Exact",
    "FoundSizes",
    "Gurobi",
    "Highs",
    "MaskSizeBackend",
    "MaskSizeProblem",
    "available_backends",
    "optimize_mask_sizes",
    "optimize_sizes_by_time",
]
