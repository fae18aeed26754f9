"""Submodel widths: the fraction of the model that each client of a round trains."""

from solvers.widths.optimize import coverage_frontier, fastest_widths, widths_by_deadline

__all__ = ["coverage_frontier", "fastest_widths", "widths_by_deadline"]
