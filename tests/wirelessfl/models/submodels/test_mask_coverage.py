"""Insufficient coverage raises an error that names the neurons concerned."""

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.base.errors import ConfigError
from wirelessfl.models.submodels import Dealing, check_coverage, deal_masks
from wirelessfl.models.submodels.neurons import Neurons


def refusal(held):
    """Error of ``check_coverage`` for a layer of 300 neurons; ``held`` lists clients' neurons."""
    layers = [Neurons("layers.0", 2, ()), Neurons("layers.1", 300, ())]
    chosen = [[np.arange(2), np.array(sorted(mine), np.int64)] for mine in held]
    with pytest.raises(ConfigError) as caught:
        check_coverage(chosen, layers, 2, clients=3, number=1)
    return str(caught.value)


def test_insufficient_coverage_is_refused_with_ranges_of_neurons():
    all_but = set(range(300)) - set(range(150, 200)) - {203}
    assert refusal([all_but, set(range(150)), all_but]) == (
        "neurons 150 to 199 and 203 of layer 'layers.1' are covered by none of the 3 clients of "
        "round 1, but min_coverage is 2. Increase capacities or the number of clients per round, "
        'or choose masks "covered", which have the most even coverage.'
    )
    everything = set(range(300))
    only = refusal([everything, everything - {4, 9, 10}])
    assert only.startswith("neurons 4 and 9 to 10 of layer 'layers.1' are covered by only 1 of the")
    assert refusal([everything, everything - {7}]).startswith("neuron 7 of layer 'layers.1' is ")
    gaps = refusal([set(range(0, 300, 2))] * 2)
    assert gaps.startswith("neurons 1, 3, 5, 7, 9, 11, 13, 15 and 142 more of layer")


def test_enough_coverage_passes():
    """``covered`` masks with twice the layer's width in total cover every neuron twice."""
    layers = [Neurons("a", 10, ()), Neurons("b", 6, (), 3)]
    counts = np.array([[5, 3], [7, 6], [8, 3]])
    clients = np.arange(3)
    deal = Dealing(0, clients, Stream(0).child("round", 0), Stream(0))
    chosen = deal_masks("covered", layers, counts, deal)
    check_coverage(chosen, layers, 2, clients=3, number=0)
    with pytest.raises(ConfigError, match="only 2 of the 3 clients"):
        check_coverage(chosen, layers, 3, clients=3, number=0)
    check_coverage([], [], 1, clients=0, number=0)
