"""Sizes of the nodes' submodels in neurons, and the largest, on which learning curves depend."""

from __future__ import annotations

from wirelessfl.submodels.extract import Submodels


def sizes_of(submodels: Submodels) -> list[int]:
    """Number of neurons of each node in the widest partitioned layer; empty for full models."""
    if submodels.neurons is None or not submodels.layers:
        return []
    widest = max(range(len(submodels.layers)), key=lambda i: submodels.layers[i].width)
    return [len(numbers[widest]) for numbers in submodels.neurons]


def largest_part(submodels: Submodels) -> float:
    """The largest submodel of N nodes relative to equal ones, m = N max_j p_j / sum_j p_j.

    It is 1 for full models and for equal sizes, whether submodels overlap or not, as in a pilot
    with these settings. Sizes that differ by one neuron, because neurons are not a multiple of
    nodes, are equal ones.
    """
    sizes = sizes_of(submodels)
    if not sizes or max(sizes) - min(sizes) <= 1:
        return 1.0
    return max(sizes) * len(sizes) / sum(sizes)
