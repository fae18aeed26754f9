"""Uploads that share the time of an uplink: one after the other, or a share of the time for each.

Each client sends in the whole band, and takes u_i seconds of it from when it is ready, r_i.

- One after the other: the order of readiness is optimal (1 | r_j | C_max in the notation of Graham
  et al., Ann. Discrete Math. 5 (1979)): no order ends before r_i + u_j + ... for the clients j that
  are ready at r_i or later, and in this order the uplink has no pause after the last such r_i.
- Fixed shares s_i of the time: client i ends at r_i + u_i / s_i, so T is feasible if and only if
  F(T) = sum_i u_i / (T - r_i) <= 1. Up to a factor, 1/F is a weighted harmonic mean of linear
  functions, hence concave: Newton's method for 1/F = 1 stays below the root, so that each iterate
  is a lower bound on T.
- Equal slots: n clients with something to send have a share of 1/n each.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.validation import shown
from solvers.arrays import MOST, first, numbers
from solvers.bands.least_time import windows
from solvers.outcome import Outcome, clients, located
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

Access = Literal["sequential", "shares", "slots"]

UPLINK_ACCESS: tuple[str, ...] = get_args(Access)
"""Ways to share the time of an uplink."""

_EPS = float(np.finfo(np.float64).eps)
_MAX_STEPS = 100


class Schedule(NamedTuple):
    """When each client sends: it ends at start_seconds + upload_seconds / shares.

    Args:
        start_seconds: [..., clients], from when it may send; a client with nothing to send "starts"
            when it is ready.
        shares: [..., clients], of the time from then on; 0 for clients with nothing to send.
    """

    start_seconds: Any
    shares: Any


def schedule_uplink(
    ready_seconds: ArrayLike | Tensor,
    upload_seconds: ArrayLike | Tensor,
    access: Access = "sequential",
) -> Solution[Schedule]:
    """Find the schedule with which the last of the uploads ends as soon as possible.

    Args:
        ready_seconds: when each client is ready to send, in seconds, >= 0 and finite.
        upload_seconds: seconds that each upload takes with the uplink to itself, >= 0: bits / rate
            in the whole band. Infinite for a client that cannot send.
        access: "sequential", one client at a time (1 | r_j | C_max); "shares", each client has a
            fixed share of the time, chosen to minimise the end; "slots", equal shares. Shares are
            taken as continuous: slots are short compared with an upload.

    Arrays [..., clients] are broadcast; leading axes are a batch. Array-like, or torch tensors on
    any device.

    Returns:
        A :class:`Schedule` with the array type and device of ``ready_seconds``. The objective is
        the end of the last upload in seconds; the bound equals it ("shares": to rounding errors).
        With the gap they are [...] float64, or floats for a single problem. A problem with an
        infinite upload is infeasible: the value is None (-1 in a batch), the objective infinite,
        and the message names the client.

    Raises:
        ValueError: an argument is negative, NaN, finite and above 1e60, or (``ready_seconds``)
            infinite, shapes differ, or ``access`` is unknown.
    """
    start = time.perf_counter()
    if access not in UPLINK_ACCESS:
        names = ", ".join(repr(name) for name in UPLINK_ACCESS)
        raise ValueError(f"access is {shown(access)}: give one of {names}.")
    ready, upload = _read(ready_seconds, upload_seconds)
    shape = ready.shape[:-1]
    ready, upload = (array.reshape(-1, array.shape[-1]) for array in (ready, upload))
    stuck = np.isinf(upload)
    feasible: BoolArray = np.asarray(~stuck.any(-1))
    method = {"sequential": _sequential, "shares": _shares, "slots": _slots}[access]
    found = method(ready[feasible], upload[feasible])
    message = ""
    if not feasible.all():
        names = clients(np.flatnonzero(stuck[int((~feasible).argmax())]))
        message = located(f"{names} cannot send: upload_seconds is infinite", ~feasible, shape)
    backend = {"sequential": "readiness", "shares": "newton", "slots": "closed form"}[access]
    return found.solution(
        feasible, shape, ready_seconds, backend=backend, start=start, message=message
    )


def _sequential(ready: FloatArray, upload: FloatArray) -> Outcome:
    starts = ready.copy()
    rows, free = np.arange(len(ready)), np.zeros(len(ready))
    for client in np.argsort(ready, axis=-1, kind="stable").T:
        send = upload[rows, client] > 0
        begin = np.where(send, np.maximum(ready[rows, client], free), ready[rows, client])
        starts[rows, client] = begin
        free = np.where(send, begin + upload[rows, client], free)
    end = np.maximum(free, ready.max(-1))
    return Outcome(Schedule(starts, (upload > 0).astype(np.float64)), end, end)


def _slots(ready: FloatArray, upload: FloatArray) -> Outcome:
    send = upload > 0
    count = np.count_nonzero(send, axis=-1)[:, None]
    end = (ready + count * upload).max(-1)
    return Outcome(Schedule(ready, np.where(send, 1 / np.maximum(count, 1), 0.0)), end, end)


def _shares(ready: FloatArray, upload: FloatArray) -> Outcome:
    send = upload > 0
    bound = (ready + upload).max(-1)  # each alone
    sends = send.any(-1)
    for _ in range(_MAX_STEPS):
        # An upload may be shorter than the rounding errors of the time at which it ends.
        window = np.where(send, windows(bound, ready), 1.0)
        shares = upload / window
        total, slope = shares.sum(-1), (shares / window).sum(-1)
        # Newton for 1/F = 1.
        step = np.where(sends, (total - 1) * total / np.where(sends, slope, 1.0), 0.0)
        if (step <= _EPS * bound).all():
            break
        bound = bound + np.maximum(step, 0.0)
    shares = shares / np.maximum(total, 1e-300)[:, None]
    end = (ready + np.divide(upload, shares, np.zeros_like(upload), where=send)).max(-1)
    return Outcome(Schedule(ready, shares), end, np.minimum(bound, end))


def _read(ready_seconds: Any, upload_seconds: Any) -> tuple[FloatArray, FloatArray]:
    """Both arguments, broadcast to [..., clients].

    Raises:
        ValueError: an argument is out of range, or the shapes do not fit.
    """
    arrays = []
    for name, values in (("ready_seconds", ready_seconds), ("upload_seconds", upload_seconds)):
        array = numbers(name, values)
        limited = name == "ready_seconds"
        good = (array >= 0) & ((array < np.inf) | (not limited))
        if not good.all():
            index, value = first(good, array)
            wanted = "a finite number" if limited else "a number"
            raise ValueError(f"{name}{index} is {value}: give {wanted} >= 0, in seconds.")
        usual = (array <= MOST) | np.isinf(array)
        if not usual.all():
            index, value = first(usual, array)
            raise ValueError(f"{name}{index} is {value}: give at most {MOST:g} seconds.")
        arrays.append(array)
    try:
        ready, upload = np.broadcast_arrays(*arrays)
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise ValueError(
            f"ready_seconds and upload_seconds have shapes {shapes}: give [..., clients] in both."
        ) from None
    if not ready.ndim or ready.shape[-1] == 0:
        raise ValueError(
            f"ready_seconds has shape {ready.shape}: give [..., clients], with at least one."
        )
    return ready, upload
