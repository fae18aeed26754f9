"""Submodels: flat parameters, neuron partitions, extraction and merging by coverage."""

from wirelessfl.submodels.extract import Submodels, extract
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.partition import HiddenLayer, Partition, deal_neurons, make_partition

__all__ = [
    "HiddenLayer",
    "ParamSpec",
    "Partition",
    "Submodels",
    "deal_neurons",
    "extract",
    "make_partition",
]
