"""The band that clients share, as an argument of a solver."""

from __future__ import annotations

from typing import Any

from channels.arrays import FloatArray
from solvers.arrays import finite


def shared_band(bandwidth_hz: Any, arrays: dict[str, FloatArray]) -> FloatArray:
    """``bandwidth_hz`` as a float64 array, one value per cell.

    Args:
        bandwidth_hz: [...], without the axis of the clients.
        arrays: the arguments [..., clients] by name.
    """
    band = finite("bandwidth_hz", bandwidth_hz, "Hz", above=True)
    axes = max(array.ndim for array in arrays.values())
    clients = max((array.shape[-1] for array in arrays.values() if array.ndim), default=1)
    if band.ndim == axes and clients > 1 and band.shape[-1] == clients:
        name = next(name for name, array in arrays.items() if array.ndim == axes)
        raise ValueError(
            f"bandwidth_hz has shape {band.shape}, one value per client, but clients share a band: "
            f"give its width. For a batch of widths, give {name} a leading axis, "
            f"{name}[None]."
        )
    return band
