"""Present clients: ranks against sorted numbers, and departures against a new set."""

import numpy as np
import pytest

from channels.streams import Stream
from wirelessfl.air.participants import BLOCK, ConsecutiveClients, PresentClients
from wirelessfl.engine.server.weights import Weights

CLIENTS = 3 * BLOCK + 100
BOUNDS = [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 7, CLIENTS - 1, CLIENTS]


def check_ranks(found, members):
    """Ranks and numbers are those of the sorted list of clients."""
    assert found.below(BOUNDS).tolist() == [int((members < bound).sum()) for bound in BOUNDS]
    ranks = np.arange(len(members))
    for some in (ranks, ranks[:0], ranks[::97], ranks[-1:]):
        assert np.array_equal(found.at(some), members[some])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.6, 1.0])
def test_ranks_after_departures(share):
    draw = Stream(3, ("present",)).generator()
    mask = draw.random(CLIENTS) < share
    mask[BLOCK : 2 * BLOCK] &= share == 1.0  # a block without clients
    given, present = mask.copy(), PresentClients(mask)
    for _ in range(3):
        members = np.flatnonzero(mask)
        check_ranks(present, members)
        assert len(present) == len(members)
        assert all((client in present) == mask[client] for client in range(CLIENTS))
        for client in (-1, 0, BLOCK - 1, BLOCK, CLIENTS - 1):
            assert list(present.after(client)) == members[members > client].tolist()
        assert np.array_equal(present.mask, mask)
        gone = draw.choice(members, len(members) // 3, replace=False)
        mask = mask.copy()
        mask[gone] = False
        for client in gone.tolist():
            present.remove(client)
    assert given[gone].all(), "the argument does not change"
    with pytest.raises(ValueError, match="read-only"):
        present.mask[0] = True


@pytest.mark.parametrize(("first", "count"), [(0, 5), (BLOCK - 3, 2000), (CLIENTS - 4, 4)])
def test_consecutive_clients_are_ranked_like_any_set(first, count):
    check_ranks(ConsecutiveClients(first, count), np.arange(first, first + count))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_chosen_clients_do_not_depend_on_blocks(weighted, monkeypatch):
    monkeypatch.setattr("wirelessfl.engine.server.weights.BLOCK", 7)
    draw = Stream(4).generator()
    samples = draw.integers(1, 50, 40).astype(float) if weighted else None
    weights, chosen = Weights(np.repeat([0, 1, 2], [9, 30, 1]), samples), draw.random(40) < 0.5
    chosen[-1] = False
    expected = weights.sums(np.flatnonzero(chosen))
    assert expected[2] == 0
    assert np.array_equal(weights.sums_where(chosen), expected)
