"""Submodel widths: the fraction of the model that each client of a round trains."""

from solvers.widths.optimize import coverage_frontier, fastest_widths, widths_by_deadline
from solvers.widths.widths_by_time import optimize_widths_by_time

__all__ = ["coverage_frontier", "fastest_widths", "optimize_widths_by_time", "widths_by_deadline"]
