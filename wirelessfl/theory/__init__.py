"""Convergence bounds of the five papers, and estimates of the constants that they require.

- HIST: Theorem 1 ``theorem_1``, its (13) ``step_size_limit``; Theorem 2 ``theorem_2``; Corollary 1
  ``corollary_1_step_size``, ``smallest_rounds``; (19c) ``mask_size_cap``; Assumptions 2 and 4 to 6
  ``estimate_constants``.
- FAdamGC: Theorem 5.4 ``fadamgc_bound``; 5.4 and C.2 ``fadamgc_step_sizes``; 5.2 and C.3
  ``fadamgc_momentum``; Table 1 ``fadamgc_rate``.
- FedAST: Theorem 1 ``fedast_theorem_1``; Theorem 2 ``fedast_theorem_2``; Corollary 1.1
  ``fedast_corollary_1``; Section 4, durations ``buffer_seconds``, ``synchronous_round_seconds``,
  ``arrival_seconds``; Appendix C.6, delays ``ShiftedExponential``.
- Dynamic clients: Theorem 1 ``gradient_norm_bound``, ``largest_step_size``.
- RA-Fed: A.1 ``ra_fed_bound``; RAM-Fed: A.2 ``ram_fed_bound``.
"""

from wirelessfl.theory.constants import estimate_constants, sgd_path
from wirelessfl.theory.dynamic_clients import (
    GradientNormBound,
    LargestStepSize,
    RoundConstants,
    data_deviation,
    gradient_norm_bound,
    largest_step_size,
)
from wirelessfl.theory.fadamgc import (
    AdaptiveRun,
    AdaptiveStepSizes,
    FAdamGCBound,
    fadamgc_bound,
    fadamgc_momentum,
    fadamgc_rate,
    fadamgc_step_sizes,
)
from wirelessfl.theory.fedast import (
    ShiftedExponential,
    arrival_seconds,
    buffer_seconds,
    synchronous_round_seconds,
)
from wirelessfl.theory.fedast_bounds import (
    BufferedRun,
    Corollary1,
    FedASTBound,
    FedASTStepSizes,
    fedast_corollary_1,
    fedast_theorem_1,
    fedast_theorem_2,
)
from wirelessfl.theory.hist import (
    Constants,
    StepSizeLimit,
    Theorem1,
    Theorem2,
    corollary_1_step_size,
    mask_size_cap,
    smallest_rounds,
    step_size_limit,
    theorem_1,
    theorem_2,
)
from wirelessfl.theory.ra_fed import (
    RAFedBound,
    RAMFedBound,
    SubmodelRun,
    minimum_coverage,
    ra_fed_bound,
    ram_fed_bound,
    relative_error,
    submodel_noise,
)

__all__ = [
    "AdaptiveRun",
    "AdaptiveStepSizes",
    "BufferedRun",
    "Constants",
    "Corollary1",
    "FAdamGCBound",
    "FedASTBound",
    "FedASTStepSizes",
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
    "fadamgc_bound",
    "fadamgc_momentum",
    "fadamgc_rate",
    "fadamgc_step_sizes",
    "fedast_corollary_1",
    "fedast_theorem_1",
    "fedast_theorem_2",
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
