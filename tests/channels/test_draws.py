"""Drawing selected rows gives rows of the full draw, with the correct distribution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels import Stream

STREAM = Stream(8, ("rows",))
WHOLE = 9000  # rows in a full draw; more than one block
WIDTHS = (1, 2, 7, 8, 9, 20, 33)
ALL = {
    kind: {width: getattr(STREAM, kind)(3, np.arange(WHOLE), width) for width in WIDTHS}
    for kind in ("normals", "uniforms")
}
SAMPLES = 200_000


def by_hand(row, width, index, kind):
    """Compute row ``row`` word by word with a separate generator."""
    words_of_row = math.ceil(width / 2) if kind == "normals" else width
    counters = math.ceil(words_of_row / 4)
    key = STREAM.generator(index).bit_generator.state["state"]["key"]
    counter = np.array([row * counters, 0, 1, index], dtype=np.uint64)
    philox = np.random.Philox(key=key, counter=counter)
    numbers = []
    for word in philox.random_raw(words_of_row).tolist():
        if kind == "uniforms":
            numbers.append((word >> 11) / 2**53)
            continue
        radius = math.sqrt(-2 * math.log(((word >> 32) + 0.5) / 2**32))
        angle = 2 * math.pi * (word % 2**32) / 2**32
        numbers += [radius * math.cos(angle), radius * math.sin(angle)]
    return numbers[:width]


@pytest.mark.parametrize("kind", ["normals", "uniforms"])
@given(st.data())
def test_any_rows_equal_those_of_a_full_draw(kind, data):
    """Consecutive, spaced, repeated and unsorted rows are bit-identical to the full draw's."""
    width = data.draw(st.sampled_from(WIDTHS))
    start = data.draw(st.integers(0, WHOLE - 1))
    gap = data.draw(st.integers(1, 700))
    rows = np.concatenate(
        [
            np.arange(start, min(WHOLE, start + data.draw(st.integers(0, 3000)))),
            np.arange(start, WHOLE, gap),
            np.array(data.draw(st.lists(st.integers(0, WHOLE - 1), max_size=20)), dtype=np.int64),
        ]
    )
    if data.draw(st.booleans()):
        rows = np.unique(rows)
    found = getattr(STREAM, kind)(3, rows, width)
    assert found.shape == (len(rows), width)
    assert np.array_equal(found, ALL[kind][width][rows])


@pytest.mark.parametrize("kind", ["normals", "uniforms"])
@given(st.sampled_from(WIDTHS), st.integers(0, 2**48 - 1), st.integers(0, 2**64 - 1))
def test_a_row_comes_from_its_own_counter_range(kind, width, row, index):
    """A row equals the output of a separate Philox generator that starts at the row's counter."""
    rows = np.array([max(row - 1, 0), row])
    found = getattr(STREAM, kind)(index, rows, width)
    wanted = [by_hand(one, width, index, kind) for one in rows.tolist()]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=4e-6)


def test_normals_are_normal():
    """Moments and tails are standard normal; neighbouring rows and columns are uncorrelated.

    For 4e5 numbers the standard errors are 0.0016 (mean), 0.0022 (variance) and 0.0155 (fourth
    moment); for the mean of 2e5 products it is 0.0022.
    """
    pairs = STREAM.normals(0, np.arange(SAMPLES), 2).astype(float)
    assert pairs.shape == (SAMPLES, 2)
    assert abs(pairs.mean()) < 0.0064
    assert abs(pairs.var() - 1) < 0.009
    assert abs((pairs**4).mean() - 3) < 0.062
    for x in (0.5, 1.0, 2.0, 3.0):
        beyond, share = math.erfc(x / math.sqrt(2)), (np.abs(pairs) > x).mean()
        assert abs(share - beyond) < 4 * math.sqrt(beyond * (1 - beyond) / pairs.size)
    one, two = pairs.T
    for left, right in ((one, two), (one[1:], one[:-1]), (one[1:], two[:-1])):
        assert abs((left * right).mean()) < 0.009
        # Squares have variance 2, so their product has standard error 2 / sqrt(2e5).
        assert abs(((left**2 - 1) * (right**2 - 1)).mean()) < 0.018
    assert np.isfinite(pairs).all()
    assert pairs.all(), "no channel is zero"


def test_uniforms_are_uniform():
    """Mean, variance and histogram are those of U(0, 1).

    For 2e5 numbers the standard errors are 0.00065 (mean), 0.00017 (variance) and 0.0007 (fraction
    in a tenth of the interval).
    """
    found = STREAM.uniforms(0, np.arange(SAMPLES // 4), 4)
    assert found.dtype == np.float64
    assert 0 <= found.min() <= found.max() < 1
    assert abs(found.mean() - 0.5) < 0.0026
    assert abs(found.var() - 1 / 12) < 0.0007
    shares = np.histogram(found, 10, (0, 1))[0] / found.size
    assert abs(shares - 0.1).max() < 0.0028


def test_rows_of_other_streams_and_indices_and_the_generator_differ():
    rows = np.arange(100)
    own = STREAM.uniforms(0, rows, 4)
    for other in (
        STREAM.uniforms(1, rows, 4),
        STREAM.child("x").uniforms(0, rows, 4),
        STREAM.generator(0).random((100, 4)),
    ):
        assert not np.isin(own, other).any()
    assert len(np.unique(own)) == own.size


def test_draws_without_rows_or_columns_have_the_right_shape():
    assert STREAM.normals(0, [], 5).shape == (0, 5)
    assert STREAM.normals(0, [1, 2], 0).shape == (2, 0)
    assert STREAM.uniforms(0, np.array([7], dtype=np.uint8), 1).shape == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((0, [-1], 2), ValueError, "rows contains -1: give integers >= 0"),
        ((0, [2**48], 2), ValueError, "rows contains 281474976710656: give integers below"),
        ((0, [[1]], 2), ValueError, r"rows has shape \(1, 1\)"),
        ((0, [0.5], 2), ValueError, "dtype float64"),
        ((-1, [0], 2), ValueError, "index is -1"),
        ((0, [0], -1), ValueError, "width is -1"),
        ((0, [0], 2.0), TypeError, "width is 2.0"),
        ((0.5, [0], 2), TypeError, "index is 0.5"),
    ],
)
def test_invalid_blocks_are_rejected(arguments, kind, message):
    for draw in (STREAM.normals, STREAM.uniforms):
        with pytest.raises(kind, match=message):
            draw(*arguments)
