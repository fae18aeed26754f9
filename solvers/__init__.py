"""Optimisation: a problem in, a Solution with a certificate out."""

from solvers.mask_sizes import optimize_mask_sizes
from solvers.mask_sizes_milp import available_backends
from solvers.solution import Solution, SolverUnavailableError, Status

__all__ = [
    "Solution",
    "SolverUnavailableError",
    "Status",
    "available_backends",
    "optimize_mask_sizes",
]
