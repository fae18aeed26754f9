"""Convergence bounds as functions, and estimates of the constants that they need."""

from wirelessfl.theory.aircomp import Theorem2, theorem_2
from wirelessfl.theory.constants import estimate_constants, sgd_path
from wirelessfl.theory.dynamic_clients import (
    GradientNormBound,
    LargestStepSize,
    RoundConstants,
    data_deviation,
    gradient_norm_bound,
    largest_step_size,
)
from wirelessfl.theory.fedast import (
    Corollary1,
    ShiftedExponential,
    arrival_seconds,
    buffer_seconds,
    fedast_corollary_1,
    synchronous_round_seconds,
)
from wirelessfl.theory.hist import (
    Constants,
    StepSizeLimit,
    Theorem1,
    corollary_1_step_size,
    mask_size_cap,
    smallest_rounds,
    step_size_limit,
    theorem_1,
)

__all__ = [
    "Constants",
    "Corollary1",
    "GradientNormBound",
    "LargestStepSize",
    "RoundConstants",
    "ShiftedExponential",
    "StepSizeLimit",
    "Theorem1",
    "Theorem2",
    "arrival_seconds",
    "buffer_seconds",
    "corollary_1_step_size",
    "data_deviation",
    "estimate_constants",
    "fedast_corollary_1",
    "gradient_norm_bound",
    "largest_step_size",
    "mask_size_cap",
    "sgd_path",
    "smallest_rounds",
    "step_size_limit",
    "synchronous_round_seconds",
    "theorem_1",
    "theorem_2",
]
