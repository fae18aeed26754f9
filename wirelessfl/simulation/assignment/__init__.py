"""Who trains which task in a round of synchronous simultaneous training."""

from wirelessfl.simulation.assignment.bandit import BanditAssignment
from wirelessfl.simulation.assignment.base import Assignment, RandomAssignment
from wirelessfl.simulation.assignment.bayes import BayesAssignment

__all__ = ["Assignment", "BanditAssignment", "BayesAssignment", "RandomAssignment"]
