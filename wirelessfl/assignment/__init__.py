"""Assignment rules: who trains which task in rounds of several tasks, one rule per file.

Files in this folder are discovered automatically.
"""

from wirelessfl.assignment.bandit import BanditAssignment
from wirelessfl.assignment.base import Assignment, AssignmentRule
from wirelessfl.assignment.bayes import BayesAssignment
from wirelessfl.assignment.random import RandomAssignment
from wirelessfl.registry import Kind

ASSIGNMENTS: Kind[AssignmentRule] = Kind("assignment", __name__, AssignmentRule)
"""All assignment rules: who trains which task."""

__all__ = [
    "ASSIGNMENTS",
    "Assignment",
    "AssignmentRule",
    "BanditAssignment",
    "BayesAssignment",
    "RandomAssignment",
]
