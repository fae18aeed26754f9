"""Named streams: equal names give equal draws, other names other draws, in any order."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Stream

names = st.lists(st.one_of(st.integers(-5, 5), st.text(max_size=3)), max_size=4).map(tuple)


@given(st.integers(0, 2**63), names, st.integers(0, 2**40))
def test_a_stream_repeats(seed, path, index):
    first = Stream(seed, path).generator(index).random(8)
    assert np.array_equal(first, Stream(seed).child(*path).generator(index).random(8))
    assert not np.array_equal(first, Stream(seed, path).generator(index + 1).random(8))
    assert not np.array_equal(first, Stream(seed + 1, path).generator(index).random(8))
    assert not np.array_equal(first, Stream(seed, (*path, "x")).generator(index).random(8))
    assert Stream(seed, path).key(index) != Stream(seed, path).key(index + 1)


def test_a_name_is_not_its_spelling():
    draws = [Stream(1, path).key() for path in [(1, 2), (12,), ("1", 2), ("1", "2"), ("12",)]]
    assert len(set(draws)) == len(draws)
    assert Stream(np.int64(1), (np.int32(3),)).key() == Stream(1, (3,)).key()


def test_draws_are_uniform():
    """Mean of 10^5 uniforms from 1000 events: standard error 9e-4."""
    draws = np.concatenate([Stream(0, ("u",)).generator(i).random(100) for i in range(1000)])
    assert abs(draws.mean() - 0.5) < 4e-3
    assert abs(draws.var() - 1 / 12) < 2e-3
