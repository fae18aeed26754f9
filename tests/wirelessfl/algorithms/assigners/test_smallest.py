"""Smallest: the weakest client's submodel for all, in training and in tests."""

import pytest

from tests.wirelessfl.algorithms.assigners.contexts import context
from tests.wirelessfl.algorithms.assigners.test_narrow import affordable
from wirelessfl.algorithms.assigners.ordered import Smallest


@pytest.mark.parametrize(
    ("budget", "capacities"),
    [
        ("width", (0.5, 0.9, 1.0)),
        ("width", (0.01,)),
        ("bytes", (0.6, 4.0 * 40)),
        ("flops", (2.0 * 42, 200.0)),
    ],
)
def test_all_clients_train_what_the_weakest_can_afford(budget, capacities):
    """The first neurons of each layer; which client is the weakest does not matter."""
    assigner = Smallest(capacities=capacities, budget=budget)
    whole = context([0, 1, 0, 1], senders=[4, 0, 9, 3], clients=12)
    found = assigner.client_submodels(whole)
    counts = affordable(min(capacities), budget)
    expected = [list(range(count)) for count in counts]
    assert [[m.tolist() for m in mine] for mine in found.chosen] == 4 * [expected]
    tested = assigner.tested(whole.neurons)
    assert [[m.tolist() for m in mine] for mine in tested.chosen] == [expected]
    assert tested.lengths[0] == found.lengths[0]
    assert len(set(assigner.levels(whole))) == 1
