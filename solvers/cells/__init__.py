"""Which cell each client uploads to, so that the slowest cell ends as soon as possible."""

from solvers.cells.assign import assign_cells

__all__ = ["assign_cells"]
