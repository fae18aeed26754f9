"""Reads arrays of MATLAB's files: v7 and older by SciPy, v7.3 (HDF5) by h5py."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from channels.npz import LARGE, RATIO

NUMBERS = {b"double", b"single", b"logical"} | {
    f"{sign}int{bits}".encode() for sign in ("", "u") for bits in (8, 16, 32, 64)
}
"""Classes of MATLAB whose arrays are numbers."""


def read_mat(file: Path, names: Collection[str]) -> dict[str, Any]:
    """Arrays of a ``.mat`` file by name, with MATLAB's axes; a struct has its fields' names.

    Args:
        file: the file.
        names: arrays whose values are needed; of v7.3, others have none.

    Raises:
        ModuleNotFoundError: the file is v7.3, and h5py is not installed.
        ValueError: an array is not in the file itself, or implausibly large.
    """
    from scipy.io import loadmat  # SciPy loads slowly

    try:
        loaded = loadmat(file)
    except NotImplementedError:  # v7.3
        return _read_hdf5(file, names)
    return {name: array for name, array in loaded.items() if not name.startswith("__")}


def _read_hdf5(file: Path, names: Collection[str]) -> dict[str, Any]:
    import h5py

    with h5py.File(file, "r") as members:
        arrays = {}
        for name in members:
            if name.startswith("#"):  # MATLAB's own
                continue
            if not isinstance(members.get(name, getlink=True), h5py.HardLink):
                raise ValueError(f"{name} is in another file")
            arrays[name] = _array(members[name]) if name in names else None
    return arrays


def _array(member: Any) -> Any:
    """A member as MATLAB has it, whose axes are in the reverse order in the file."""
    fields = [(field, object) for field in member] if hasattr(member, "keys") else []
    if fields:
        return np.zeros((), dtype=fields)
    if member.external or member.is_virtual:
        raise ValueError(f"{member.name[1:]} is in another file")
    size = member.nbytes
    if size > LARGE and size > RATIO * member.id.get_storage_size():
        raise ValueError(f"{member.name[1:]} would have {size} bytes")
    kind = member.attrs.get("MATLAB_class", b"none")
    if "MATLAB_empty" in member.attrs:
        return np.empty(0)
    if kind not in NUMBERS:
        return np.full(member.shape, None)
    values = member[()]
    if values.dtype.names == ("real", "imag"):
        complex_values = np.empty(values.shape, np.result_type(values.dtype["real"], np.complex64))
        complex_values.real, complex_values.imag = values["real"], values["imag"]
        values = complex_values
    return values.T
