"""Reads files of NumPy, without pickle."""

from __future__ import annotations

import io
import os
import tokenize
import zipfile
import zlib
from os import PathLike
from typing import IO, Any

import numpy as np

END = 22
"""Size of the record at the end of a file without a comment; it has the number of members."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of compression that NumPy writes; errors of others differ."""
DAMAGE = (
    *(EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, tokenize.TokenError),  # in the header of an array
)
"""Errors of damaged files that are no ``ValueError``."""
LARGE, RATIO = 1 << 30, 100
"""A member that has more bytes than these, and that many per compressed byte, is not unpacked."""


def read_npz(path: str | PathLike[str] | IO[bytes]) -> dict[str, Any]:
    """Arrays of a ``.npz`` file, by name.

    Args:
        path: the file, or an open one.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: an array has Python objects, or the file is damaged, or no such file.
    """
    try:
        file = os.path.expanduser(path) if isinstance(path, str | PathLike) else path
        with zipfile.ZipFile(file) as members:
            _check_whole(members)
            return {
                member.filename.removesuffix(".npy"): _array(members, member)
                for member in members.infolist()
            }
    except DAMAGE as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _check_whole(members: zipfile.ZipFile) -> None:
    """Check that no member is missing, which ``zipfile`` does not notice."""
    file = members.fp
    assert file is not None, "it is open"
    file.seek(-END, os.SEEK_END)
    end = file.read()
    if end[:4] == b"PK\5\6" and int.from_bytes(end[10:12], "little") != len(members.infolist()):
        raise ValueError("its list of arrays is damaged")


def _array(members: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    size = member.file_size
    if member.compress_type not in METHODS:
        raise ValueError(f"{member.filename} is compressed by a method that NumPy does not write")
    if size > LARGE and size > RATIO * member.compress_size:
        raise ValueError(f"{member.filename} would have {size} bytes")
    content = members.read(member)  # whole, so that its checksum is compared
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
