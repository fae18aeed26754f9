"""Who trains which task in a round of synchronous simultaneous training."""

from wirelessfl.assignment.bandit import BanditAssignment
from wirelessfl.assignment.base import Assignment, RandomAssignment
from wirelessfl.assignment.bayes import BayesAssignment

__all__ = ["Assignment", "BanditAssignment", "BayesAssignment", "RandomAssignment"]
