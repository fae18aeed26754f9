"""Stays end in order of their ends and clients."""

import heapq
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from channels import Stream
from wirelessfl.engine.sessions import processes as stays
from wirelessfl.engine.sessions.processes import Stays


@given(st.integers(1, 9), st.lists(st.none() | st.integers(0, 30), max_size=60))
def test_stays_end_in_the_order_of_a_heap(soon, steps):
    """None removes the earliest stay; a number adds one with that end, or a later one."""
    found, expected = Stays(), []
    before, stays.SOON = stays.SOON, soon
    try:
        for client, step in enumerate(steps):
            if step is not None:
                found.add(float(step), client)
                heapq.heappush(expected, (float(step), client))
            elif expected:
                assert found.first == heapq.heappop(expected)
                found.remove_first()
            if client % 3:
                assert found.first == (expected[0] if expected else None)
    finally:
        stays.SOON = before


def test_most_stays_take_few_bytes():
    ends = Stream(1, ("ends",)).generator().exponential(size=50_000)
    tracemalloc.start()
    try:
        found = Stays()
        for client in range(len(ends)):
            found.add(float(ends[client]), client)
            earliest = found.first  # from the start, when few stays are known
        assert earliest == (ends.min(), ends.argmin())
        held = tracemalloc.get_traced_memory()[0]
        assert held < 18 * len(ends)
    finally:
        tracemalloc.stop()
