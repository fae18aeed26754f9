"""Mask sizes: how many units (neurons) each cell trains, chosen to minimise round latency."""

from solvers.mask_sizes.backend import Found, MaskSizeBackend
from solvers.mask_sizes.by_time import optimize_sizes_by_time
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
    "optimize_sizes_by_time",
]
