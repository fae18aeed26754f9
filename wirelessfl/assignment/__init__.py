"""Who trains which task in rounds of several tasks, one rule a file.

A file put here is found by being here.
"""

from wirelessfl.assignment.bandit import BanditAssignment
from wirelessfl.assignment.base import Assignment, AssignmentRule
from wirelessfl.assignment.bayes import BayesAssignment
from wirelessfl.assignment.random import RandomAssignment
from wirelessfl.registry import Kind

ASSIGNMENTS: Kind[AssignmentRule] = Kind("assignment", __name__, AssignmentRule)
"""Who can train what."""

__all__ = [
    "ASSIGNMENTS",
    "Assignment",
    "AssignmentRule",
    "BanditAssignment",
    "BayesAssignment",
    "RandomAssignment",
]
