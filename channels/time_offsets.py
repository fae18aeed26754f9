"""Clients that are late by a part of a symbol: a received symbol has a part of the previous one.

The server integrates over symbols of its own clock, which is the matched filter of a rectangular
pulse. From a client that is late by the fraction tau_i of a symbol it receives
(1 - tau_i) x_i[n] + tau_i x_i[n - 1]: its element with less than its weight, and the client's
previous element as interference between symbols (the model of Shao, Gunduz, Liew, IEEE TWC 2022,
arXiv:2102.13604, sampled once per symbol). The elements of a vector follow each other in time, and
nothing precedes the first one. The difference of the two parts,
tau_i d_i[n] with d_i[n] = x_i[n - 1] - x_i[n], is the error of the client.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from channels.validation import is_tensor


def check_time_offset(time_offset: float) -> None:
    """Raise unless it is one number from 0 to 1."""
    if np.ndim(time_offset) or not 0 <= time_offset <= 1:
        raise ValueError(
            f"time_offset is {time_offset}: give one number from 0 to 1, a part of a symbol."
        )


def delays(stream: Stream | None, clients: IntArray, time_offset: float) -> FloatArray:
    """Delays tau [clients], uniform from 0 to ``time_offset`` symbols, by client index."""
    if not time_offset:
        return np.zeros(len(clients))
    if stream is None:
        raise ValueError("stream is None: give a Stream from which to draw the time offsets.")
    return np.asarray(time_offset * stream.child("delay").uniforms(0, clients, 1)[:, 0])


def steps(updates: Any, per_symbol: int = 1) -> Any:
    """Differences d [..., elements] from each element to that of the previous symbol.

    Args:
        updates: x [..., elements], NumPy or torch.
        per_symbol: elements per symbol, 1 or 2.
    """
    previous = updates.clone() if is_tensor(updates) else updates.copy()
    previous[..., per_symbol:] = updates[..., :-per_symbol]
    previous[..., :per_symbol] = 0
    return previous - updates
