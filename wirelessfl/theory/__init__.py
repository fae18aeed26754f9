"""Convergence bounds, and estimates of the constants that they require."""

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
from wirelessfl.theory.ra_fed import (
    RAFedBound,
    RAMFedBound,
    SubmodelRun,
    ra_fed_bound,
    ram_fed_bound,
)
from wirelessfl.theory.submodels import minimum_coverage, relative_error, submodel_noise

__all__ = [
    "Constants",
    "Corollary1",
    "GradientNormBound",
    "LargestStepSize",
    "RAFedBound",
    "RAMFedBound",
    "RoundConstants",
    "ShiftedExponential",
    "StepSizeLimit",
    "SubmodelRun",
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
    "minimum_coverage",
    "ra_fed_bound",
    "ram_fed_bound",
    "relative_error",
    "sgd_path",
    "smallest_rounds",
    "step_size_limit",
    "submodel_noise",
    "synchronous_round_seconds",
    "theorem_1",
    "theorem_2",
]
