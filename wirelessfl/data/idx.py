"""The IDX format of MNIST and similar data sets: a big-endian header, then unsigned bytes.

Source: "The IDX file format" on the MNIST page of LeCun, Cortes and Burges.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from wirelessfl.errors import DataError

_UBYTE = 0x08


def parse_idx(content: bytes, dims: int, name: str = "IDX data") -> NDArray[np.uint8]:
    """Parse an IDX file of unsigned bytes.

    Args:
        content: the whole file, decompressed.
        dims: required number of dimensions: 3 for images, 1 for labels.
        name: name of the file in messages.

    Returns:
        A read-only view [size_1, ..., size_dims] of ``content``.

    Raises:
        DataError: the magic number is wrong, or the number of bytes differs from the header's.
    """
    magic = bytes([0, 0, _UBYTE, dims])
    header = len(magic) + 4 * dims
    if content[:4] != magic:
        raise DataError(
            f"{name}: starts with bytes {content[:4].hex() or 'none'}, expected {magic.hex()} "
            f"(IDX, unsigned bytes, {dims} dimensions). Check that the file has the right name."
        )
    if len(content) < header:
        raise DataError(f"{name}: ends within its header of {header} bytes. Download it again.")
    shape = struct.unpack_from(f">{dims}I", content, len(magic))
    expected = header + math.prod(shape)
    if len(content) != expected:
        fault = "is truncated" if len(content) < expected else "has trailing bytes"
        raise DataError(
            f"{name}: {fault}: {len(content)} bytes, expected {expected} for shape "
            f"{list(shape)}. Download it again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
