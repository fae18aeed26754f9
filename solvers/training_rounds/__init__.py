"""Local steps, edge rounds, mask sizes, bands, powers and clocks of a whole training together."""

from solvers.training_rounds.evaluate import RoundCosts, evaluate_rounds
from solvers.training_rounds.optimize import TrainingRounds, optimize_rounds
from solvers.training_rounds.training_problem import TrainingProblem

__all__ = [
    "RoundCosts",
    "TrainingProblem",
    "TrainingRounds",
    "evaluate_rounds",
    "optimize_rounds",
]
