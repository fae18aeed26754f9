"""IDX files: written arrays are read back, and damaged files give clear errors."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wirelessfl.data.idx import parse_idx
from wirelessfl.errors import DataError


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.tobytes()


@given(hnp.arrays(np.uint8, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0)))
def test_round_trip(array):
    np.testing.assert_array_equal(parse_idx(idx_bytes(array), array.ndim), array)


@given(st.data())
def test_any_truncation_and_any_tail_is_an_error(data):
    content = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
    cut = data.draw(st.integers(0, len(content) - 1))
    with pytest.raises(DataError, match=r"images\.idx: (starts|ends|is truncated)"):
        parse_idx(content[:cut], 3, "images.idx")
    with pytest.raises(DataError, match="trailing bytes"):
        parse_idx(content + data.draw(st.binary(min_size=1)), 3)


@pytest.mark.parametrize("magic", [b"\0\0\x08\x01", b"\0\0\x0d\x03", b"\1\0\x08\x03", b"PK\3\4"])
def test_another_magic_number_is_shown(magic):
    content = magic + idx_bytes(np.zeros((2, 2, 2), np.uint8))[4:]
    with pytest.raises(DataError, match=magic.hex()):
        parse_idx(content, 3)
