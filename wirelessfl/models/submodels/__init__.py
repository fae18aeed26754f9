"""Submodels: flat parameters, neurons, partitions, masks, extraction and merging by coverage."""

from typing import TYPE_CHECKING, Any

from wirelessfl.models.submodels.budgets import (
    Budget,
    Levels,
    dealt_capacities,
    levels_of,
    mean_reciprocal,
)
from wirelessfl.models.submodels.client_submodels import (
    ClientSubmodels,
    check_weight_coverage,
    weight_coverage_bound,
)
from wirelessfl.models.submodels.extract import (
    Submodels,
    extract,
    extract_neurons,
    largest_part,
    sizes_of,
)
from wirelessfl.models.submodels.flat import ParamSpec
from wirelessfl.models.submodels.masks import Dealing, Masks, check_coverage, coverage, deal_masks
from wirelessfl.models.submodels.neurons import NeuronMap, Neurons, Slot
from wirelessfl.models.submodels.partition import Partition, make_partition
from wirelessfl.models.submodels.picture import draw_masks

if TYPE_CHECKING:
    from wirelessfl.models.submodels.removable import find_neurons

__all__ = [
    "Budget",
    "ClientSubmodels",
    "Dealing",
    "Levels",
    "Masks",
    "NeuronMap",
    "Neurons",
    "ParamSpec",
    "Partition",
    "Slot",
    "Submodels",
    "check_coverage",
    "check_weight_coverage",
    "coverage",
    "deal_masks",
    "dealt_capacities",
    "draw_masks",
    "extract",
    "extract_neurons",
    "find_neurons",
    "largest_part",
    "levels_of",
    "make_partition",
    "mean_reciprocal",
    "sizes_of",
    "weight_coverage_bound",
]


def __getattr__(name: str) -> Any:
    """Import ``find_neurons`` on first use, because its file loads PyTorch."""
    if name != "find_neurons":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from wirelessfl.models.submodels.removable import find_neurons

    return find_neurons
