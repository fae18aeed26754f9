"""Submodels: flat parameters, neuron partitions, masks, extraction and merging by coverage."""

from wirelessfl.submodels.budgets import Budget, Levels, dealt_capacities, levels_of
from wirelessfl.submodels.extract import Submodels, extract
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.masks import (
    Dealing,
    Masks,
    best_coverage,
    check_coverage,
    coverage,
    deal_masks,
)
from wirelessfl.submodels.partition import HiddenLayer, Partition, deal_neurons, make_partition

__all__ = [
    "Budget",
    "Dealing",
    "HiddenLayer",
    "Levels",
    "Masks",
    "ParamSpec",
    "Partition",
    "Submodels",
    "best_coverage",
    "check_coverage",
    "coverage",
    "deal_masks",
    "deal_neurons",
    "dealt_capacities",
    "extract",
    "levels_of",
    "make_partition",
]
