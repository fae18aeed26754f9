"""Submodels: flat parameters, neuron partitions, extraction and merging by coverage."""

from wirelessfl.submodels.extract import Submodels, extract
from wirelessfl.submodels.flat import ParamSpec
from wirelessfl.submodels.neurons import NeuronMap, Neurons, Slot
from wirelessfl.submodels.partition import HiddenLayer, Partition, deal_neurons, make_partition
from wirelessfl.submodels.tracing import find_neurons

__all__ = [
    "HiddenLayer",
    "NeuronMap",
    "Neurons",
    "ParamSpec",
    "Partition",
    "Slot",
    "Submodels",
    "deal_neurons",
    "extract",
    "find_neurons",
    "make_partition",
]
