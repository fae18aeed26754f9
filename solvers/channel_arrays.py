"""Reads complex channels for the solvers of beamformers and over-the-air sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from channels.validation import as_array, check_readable, is_tensor


def read_channels(h: Any) -> torch.Tensor:
    """``h`` as a complex tensor on its device, without its gradient; may share its memory."""
    check_readable("h", h)
    channels = h.detach() if is_tensor(h) else _tensor(h)
    if not channels.is_complex():
        raise ValueError(_dtype_error(channels.dtype, "h.to(torch.complex64)"))
    finite = torch.isfinite(channels.real) & torch.isfinite(channels.imag)
    if not finite.all():
        index = first_index(~finite)
        raise ValueError(
            f"h{index} is {complex(channels[tuple(index)])}: give finite channels. Is a path gain "
            "missing, or a unit wrong?"
        )
    return channels


def clients_shape(channels: torch.Tensor, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape [..., clients] to which the clients of the channels and ``shapes`` broadcast.

    () if they do not, or to another number of clients.
    """
    clients = tuple(channels.shape[:-1])
    try:
        shape = np.broadcast_shapes(clients, *shapes)
    except ValueError:
        return ()
    return shape if shape[-1:] == clients[-1:] else ()


def first_index(wrong: torch.Tensor) -> list[int]:
    """Index of the first entry that is True."""
    return [int(i) for i in wrong.nonzero()[0]]


def _tensor(h: Any) -> torch.Tensor:
    array = as_array("h", h)
    if array.dtype.kind != "c":
        raise ValueError(_dtype_error(array.dtype, "h.astype(complex)"))
    single = array.dtype.itemsize == np.dtype(np.complex64).itemsize
    array = array.astype(np.complex64 if single else np.complex128, order="C", copy=False)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _dtype_error(dtype: Any, remedy: str) -> str:
    return f"h has dtype {dtype}: give complex64 or complex128, e.g. {remedy}."
