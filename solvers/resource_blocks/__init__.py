"""Resource blocks of clients whose packets can be lost: which client sends in which block."""

from solvers.resource_blocks.assign import BlockAssignment, assign_resource_blocks

__all__ = ["BlockAssignment", "assign_resource_blocks"]
