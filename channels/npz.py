"""Reads files of NumPy, without pickle."""

from __future__ import annotations

import zipfile
from os import PathLike
from typing import Any

import numpy as np


def read_npz(path: str | PathLike[str]) -> dict[str, Any]:
    """Arrays of a ``.npz`` file, by name.

    Args:
        path: the file.

    Raises:
        OSError: the file is missing or cannot be read.
        ValueError: an array has Python objects, or the file is damaged.
        zipfile.BadZipFile: it is no such file.
    """
    with zipfile.ZipFile(path) as members:
        return {name.removesuffix(".npy"): _array(members, name) for name in members.namelist()}


def _array(members: zipfile.ZipFile, name: str) -> Any:
    with members.open(name) as member:
        return np.lib.format.read_array(member, allow_pickle=False)
