"""Assignment rules: which clients train which task in rounds of several tasks.

Files in this folder are discovered automatically.
"""

from wirelessfl.base.needs import ONE_SERVER, TASK_ROUNDS
from wirelessfl.base.registry import Kind
from wirelessfl.engine.assignment.assignment_rule import Assignment, AssignmentRule
from wirelessfl.engine.assignment.bayes import BayesAssignment
from wirelessfl.engine.assignment.built_in import BanditAssignment, RandomAssignment

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
