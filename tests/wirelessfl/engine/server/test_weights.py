"""Weights of clients and nodes equal reference sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.engine.server.weights import Weights


@st.composite
def cases(draw):
    """Weights, samples per client, present clients, participants, and which of those send."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    node_of = np.repeat(np.arange(len(sizes)), sizes)
    count = len(node_of)
    samples = draw(st.lists(st.integers(1, 50), min_size=count, max_size=count))
    weighted = draw(st.booleans())
    there, part, sends = (np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
                          for _ in range(3))  # fmt: skip
    clients = np.flatnonzero(there & part)
    weights = Weights(node_of, np.array(samples, dtype=float) if weighted else None)
    return weights, samples if weighted else [1] * count, there, clients, sends[clients]


@given(cases())
def test_weights_are_sums_over_clients(case):
    """Checks weights within nodes, weights of nodes, and the share of participants and senders."""
    weights, each, there, clients, sends = case
    nodes = [np.flatnonzero(weights.node_of == node) for node in range(weights.nodes)]
    in_means = dict(zip(clients.tolist(), weights.in_means(clients), strict=True))
    present = weights.sums(np.flatnonzero(there))
    share, part_share = (weights.share(some, present) for some in (clients, clients[sends]))
    sending = {client for client, does in zip(clients.tolist(), sends, strict=True) if does}
    for node, members in enumerate(nodes):
        here = [client for client in members.tolist() if client in in_means]
        total = sum(each[client] for client in here)
        whole = sum(each[client] for client in members.tolist() if there[client])
        assert [in_means[client] for client in here] == [each[client] / total for client in here]
        expected = float(total > 0) if weights.samples is None else total
        assert weights.at_nodes(clients)[node] == expected
        assert share[node] == pytest.approx(total / whole if whole else 0)
        some = sum(each[client] for client in here if client in sending)
        assert part_share[node] == pytest.approx(some / whole if whole else 0)


def test_a_client_may_occur_twice():
    """Two updates of a client in one merge both count."""
    weights = Weights(np.zeros(4, dtype=int), np.array([1.0, 2.0, 3.0, 4.0]))
    clients = np.array([1, 3, 1])
    assert weights.in_means(clients).tolist() == [0.25, 0.5, 0.25]
    assert weights.share(clients, weights.sums(np.arange(4))).tolist() == [0.8]
