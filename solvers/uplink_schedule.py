"""Uploads that share the time of an uplink: one after the other, or a share of the time for each.

Each client sends in the whole band, and takes u_i seconds of it from when it is ready, r_i.

- One after the other: the order of readiness is optimal (1 | r_j | C_max in the notation of Graham
  et al., Ann. Discrete Math. 5 (1979)): no order ends before r_i + u_j + ... for the clients j that
  are ready at r_i or later, and in this order the uplink has no pause after the last such r_i.
- Fixed shares s_i of the time: client i ends at r_i + u_i / s_i, so T is feasible if and only if
  F(T) = sum_i u_i / (T - r_i) <= 1. Up to a factor, 1/F is a weighted harmonic mean of linear
  functions, hence concave: Newton's method for 1/F = 1 stays below the root, so that each iterate
  is a lower bound on T. Its variable is not T but T - max_i r_i, because rounding errors of T may
  be longer than the uploads.
- Equal slots: n clients with something to send have a share of 1/n each.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from channels.arrays import BoolArray, FloatArray
from channels.validation import MOST, shown
from solvers.arrays import first, numbers
from solvers.outcome import Outcome, clients, located
from solvers.solution import Solution

if TYPE_CHECKING:
    from torch import Tensor

Access = Literal["sequential", "shares", "slots"]

UPLINK_ACCESS: tuple[str, ...] = get_args(Access)
"""Ways to share the time of an uplink."""

_MAX_STEPS = 100
_FEW = 16
"""Number of problems up to which lists are faster than arrays of one number per problem."""


class Schedule(NamedTuple):
    """When each client sends: it ends at start_seconds + upload_seconds / shares.

    >>> import solvers
    >>> plan = solvers.schedule_uplink([0.0, 2.0], [1.0, 1.0], access="slots").value
    >>> plan.shares.tolist()
    [0.5, 0.5]

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

    >>> import solvers
    >>> plan = solvers.schedule_uplink([0.0, 2.0], [1.0, 1.0])
    >>> plan.value.start_seconds.tolist(), float(plan.objective)
    ([0.0, 2.0], 3.0)

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
    # The order of a sum depends on the layout of the array.
    outcome = method(*(np.ascontiguousarray(array[feasible]) for array in (ready, upload)))
    message = ""
    if not feasible.all():
        names = clients(np.flatnonzero(stuck[int((~feasible).argmax())]))
        message = located(f"{names} cannot send: upload_seconds is infinite", ~feasible, shape)
    backend = {"sequential": "readiness", "shares": "newton", "slots": "closed form"}[access]
    return outcome.solution(
        feasible, shape, ready_seconds, backend=backend, start=start, message=message
    )


def _sequential(ready: FloatArray, upload: FloatArray) -> Outcome:
    order = np.argsort(ready, axis=-1, kind="stable")
    soonest, sent = (np.take_along_axis(array, order, -1) for array in (ready, upload))
    waits = np.where(sent > 0, soonest, 0.0)  # a client without bits delays no other
    if len(ready) > _FEW:
        begin = np.array(_turns(waits.T, sent.T, np.maximum)).T
    else:
        uploads = zip(waits.tolist(), sent.tolist(), strict=True)
        begin = np.array([_turns(*one, max) for one in uploads]).reshape(ready.shape)
    starts = np.empty_like(ready)
    np.put_along_axis(starts, order, np.where(sent > 0, begin, soonest), -1)
    end = (starts + upload).max(-1)
    return Outcome(Schedule(starts, (upload > 0).astype(np.float64)), end, end)


def _turns(ready: Any, upload: Any, later: Callable[[Any, Any], Any]) -> list[Any]:
    """When each client begins, in order of readiness; clients are numbers, or one per problem."""
    turns: list[Any] = []
    free = 0.0
    for soonest, seconds in zip(ready, upload, strict=True):
        turns.append(later(soonest, free))
        free = turns[-1] + seconds
    return turns


def _slots(ready: FloatArray, upload: FloatArray) -> Outcome:
    send = upload > 0
    count = np.count_nonzero(send, axis=-1)[:, None]
    end = (ready + count * upload).max(-1)
    return Outcome(Schedule(ready, np.where(send, 1 / np.maximum(count, 1), 0.0)), end, end)


def _shares(ready: FloatArray, upload: FloatArray) -> Outcome:
    send = upload > 0
    latest = ready.max(-1, where=send, initial=0.0)
    ahead = np.maximum(latest[:, None] - ready, 0.0)
    more = (upload - ahead).max(-1)  # T - max_i r_i if each were alone
    rows = np.flatnonzero(send.any(-1))
    shares = np.zeros_like(upload)
    for _ in range(_MAX_STEPS):
        if not rows.size:
            break
        window = ahead[rows] + more[rows, None]
        part = upload[rows] / window
        total = part.sum(-1)
        shares[rows] = part / total[:, None]
        # Newton for 1/F = 1, relative to the variable.
        step = (total - 1) * total / (part * (more[rows, None] / window)).sum(-1)
        moved = more[rows] * (1 + step)
        on = moved > more[rows]
        rows = rows[on]
        more[rows] = moved[on]
    end = (ready + np.divide(upload, shares, np.zeros_like(upload), where=send)).max(-1)
    bound = np.maximum(latest + more, ready.max(-1))
    return Outcome(Schedule(ready, shares), end, np.minimum(bound, end))


def _read(ready_seconds: Any, upload_seconds: Any) -> tuple[FloatArray, FloatArray]:
    """Both arguments, broadcast to [..., clients]."""
    arrays = []
    for name, values in (("ready_seconds", ready_seconds), ("upload_seconds", upload_seconds)):
        array = numbers(name, values)
        limited = name == "ready_seconds"
        good = (array >= 0) & ((array < np.inf) | (not limited))
        if not good.all():
            index, value = first(good, array)
            kind = "a finite number" if limited else "a number"
            raise ValueError(f"{name}{index} is {value}: give {kind} >= 0, in seconds.")
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
