"""Labels of present clients: the union over their data, found by looking at few clients."""

from collections import Counter

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.air.participants import PresentClients
from wirelessfl.engine.sessions.session_model import HeldLabels


@pytest.mark.parametrize("seed", range(6))
def test_labels_are_those_of_the_present_clients(seed):
    """After each departure of one or several clients; the labels of the last clients remain."""
    draw = Stream(seed, ("labels",)).generator()
    own = [draw.choice(9, draw.integers(1, 4), replace=False).tolist() for _ in range(60)]
    asked = Counter()

    def labels_of(client):
        asked[client] += 1
        return own[client]

    held = HeldLabels(labels_of, range(12))  # no client has labels 9 to 11
    for possible in (None, range(9), range(10)):
        asked.clear()
        there = np.flatnonzero(draw.random(60) < 0.7).tolist()
        present = PresentClients(np.isin(np.arange(60), there))
        held.opened(present, possible)
        assert set(held.held) == set().union(*(own[client] for client in there))
        while there:
            gone = draw.choice(there, min(len(there), int(draw.integers(1, 5))), replace=False)
            there = [client for client in there if client not in gone]
            for client in gone.tolist():
                present.remove(client)
            before = held.held
            held.left(gone.tolist())
            expected = sorted(set().union(*(own[client] for client in there)))
            assert list(held.held) == (expected if there else list(before))
        assert max(asked.values()) <= 10, "once per label, and once when the session opens"
    held.opened(PresentClients(np.zeros(60, dtype=bool)), None)
    assert held.held == before


def test_few_clients_are_examined_if_labels_are_common():
    """Ten thousand clients, each with two of ten labels; half of them leave."""
    asked = []
    held = HeldLabels(lambda c: asked.append(c) or [c % 10, c % 7], range(10))
    present = PresentClients(np.ones(10_000, dtype=bool))
    held.opened(present, None)
    assert len(asked) <= 10
    for client in Stream(1).generator().permutation(10_000)[:5000].tolist():
        present.remove(client)
        held.left([client])
    assert held.held == tuple(range(10))
    assert len(asked) < 500
