"""Named streams: equal names give equal draws; different names give different draws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.streams import Generators, Stream, Streams

LETTERS = "ab é\0"  # of all letters, Hypothesis would first make a table
names = st.lists(st.one_of(st.integers(-5, 5), st.text(LETTERS, max_size=3)), max_size=4).map(tuple)


@given(st.integers(0, 2**63), names, st.integers(0, 2**40))
def test_a_stream_is_reproducible(seed, path, index):
    first = Stream(seed, path).generator(index).random(8)
    assert np.array_equal(first, Stream(seed).child(*path).generator(index).random(8))
    assert not np.array_equal(first, Stream(seed, path).generator(index + 1).random(8))
    assert not np.array_equal(first, Stream(seed + 1, path).generator(index).random(8))
    assert not np.array_equal(first, Stream(seed, (*path, "x")).generator(index).random(8))
    assert Stream(seed, path).key(index) != Stream(seed, path).key(index + 1)


@given(st.integers(0, 2**63), names, st.integers(0, 2**64 - 1))
def test_reused_generators_give_the_numbers_of_new_ones(seed, path, index):
    generators, stream = Generators(), Stream(seed, path)
    generators.at(Stream(5).philox_key(), 3).integers(7, size=3, dtype=np.uint32)
    found, new = generators.at(stream.philox_key(), index), stream.generator(index)
    assert np.array_equal(found.permutation(9), new.permutation(9))
    assert np.array_equal(
        found.integers(9, size=5, dtype=np.uint32), new.integers(9, size=5, dtype=np.uint32)
    )
    assert np.array_equal(found.standard_normal(3), new.standard_normal(3))


@given(st.integers(0, 2**63), names, st.integers(0, 2**40), st.integers(0, 4), st.integers(0, 9))
def test_permutations_are_those_of_consecutive_events(seed, path, first, count, size):
    stream = Stream(seed, path)
    found = Generators().permutations(stream.philox_key(), first, count, size)
    alone = [stream.generator(first + i).permutation(size) for i in range(count)]
    assert [order.tolist() for order in found] == [order.tolist() for order in alone]


def test_names_of_different_types_or_lengths_differ():
    draws = [Stream(1, path).key() for path in [(1, 2), (12,), ("1", 2), ("1", "2"), ("12",)]]
    assert len(set(draws)) == len(draws)
    assert Stream(np.int64(1), (np.int32(3),)).key() == Stream(1, (3,)).key()
    assert Stream(1, (np.str_("a"),)).key() == Stream(1, ("a",)).key()
    assert Stream(1).child(np.str_("a")) == Stream(1, ("a",))


@pytest.mark.parametrize(
    ("stream", "index", "key", "key_of_minus_index", "draws"),
    [
        (
            Stream(1),
            0,
            7995354590128249630,
            7995354590128249630,
            [2253057159833851626, 6102665423993579518],
        ),
        (
            Stream(np.int64(7), ("round", np.int32(3), "client", np.uint8(17))),
            np.int64(5),
            1491583241199243333,
            6226373486656126097,
            [4085127377937111127, 2239557928091906312],
        ),
        (
            Stream(2**70, (-1, "")),
            2**64 - 1,
            15027009134138332156,
            4791846129688202695,
            [7295292932213508757, 5810398007724556749],
        ),
    ],
)
def test_draws_do_not_change_between_versions(stream, index, key, key_of_minus_index, draws):
    """Keys and draws equal stored values of the first version."""
    assert stream.key(index) == key
    assert stream.key(-index) == key_of_minus_index
    assert stream.generator(index).integers(0, 2**63, 2).tolist() == draws


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stream(1).child(None), r"names\[0\] is None"),
        (lambda: Stream(1).key(0.5), "index is 0.5"),
        (lambda: Stream(1).generator(2.0), "index is 2.0"),
    ],
)
def test_names_and_indices_of_other_types_are_rejected(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize("index", [-1, 2**64])
def test_generator_indices_are_below_2_to_the_64(index):
    """Larger indices would repeat the draws of smaller ones and are refused; keys may be larger."""
    with pytest.raises(ValueError, match=f"index is {index}: give an integer from 0 to 2"):
        Stream(1).generator(index)
    assert Stream(1).key(index) != Stream(1).key(index % 2**64)


def test_draws_are_uniform():
    """10^5 numbers from 1000 indices have mean and variance of U(0, 1); standard error 9e-4."""
    draws = np.concatenate([Stream(0, ("u",)).generator(i).random(100) for i in range(1000)])
    assert abs(draws.mean() - 0.5) < 4e-3
    assert abs(draws.var() - 1 / 12) < 2e-3


@pytest.mark.parametrize("width", [0, 1, 2, 4, 5, 9])
@pytest.mark.parametrize("index", [0, 7, 2**64 - 1])
def test_streams_that_are_drawn_together_have_their_own_numbers(width, index):
    """In blocks, and with rows in any order."""
    streams = [Stream(seed, ("a", seed)) for seed in range(-1, 400)]
    together, rows = Streams(streams, 6).child("x", 2), np.arange(6)
    for kind in ("uniforms", "normals"):
        drawn = getattr(together, kind)(index, np.arange(6 * len(streams)), width)
        alone = [getattr(one.child("x", 2), kind)(index, rows, width) for one in streams]
        assert np.array_equal(drawn, np.concatenate(alone))
        some = np.array([2400, 3, 3, 800])
        assert np.array_equal(getattr(together, kind)(index, some, width), drawn[some])
