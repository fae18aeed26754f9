"""Assignment rules, one per file: which clients train which task in rounds of several tasks.

Files in this folder are discovered automatically.
"""

from wirelessfl.assignment.assignment_rule import Assignment, AssignmentRule
from wirelessfl.assignment.bandit import BanditAssignment
from wirelessfl.assignment.bayes import BayesAssignment
from wirelessfl.assignment.random import RandomAssignment
from wirelessfl.needs import ONE_SERVER, TASK_ROUNDS
from wirelessfl.registry import Kind

ASSIGNMENTS: Kind[AssignmentRule] = Kind(
    "assignment",
    __name__,
    AssignmentRule,
    needs=(ONE_SERVER, TASK_ROUNDS),
    text="assignment of clients to tasks",
    heading="schedule",
)
"""All assignment rules, which choose the clients of each task."""

__all__ = [
    "ASSIGNMENTS",
    "Assignment",
    "AssignmentRule",
    "BanditAssignment",
    "BayesAssignment",
    "RandomAssignment",
]
