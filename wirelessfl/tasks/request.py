"""A training request: one model sent to one client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Request:
    """A training request at a client.

    Args:
        number: number of the request, from 0; numbers are unique in a run.
        task: index of the task whose model is trained.
        client: client that trains the model.
        version: number of merges of the model when the request was issued.
        issued: simulated time of issue, in seconds.
        seconds: duration of training; includes the upload if one draw covers both.
        share: fraction of the full model's parameters that the client trains.
        lost_after: seconds of training after which the client drops out; None if it does not.
        begun: simulated time at which training started; None while it waits in the client's queue.
        dropped: whether the request was cancelled: its task ended, or it missed the cut-off.
    """

    number: int
    task: int
    client: int
    version: int
    issued: float
    seconds: float
    share: float = 1.0
    lost_after: float | None = None
    begun: float | None = None
    dropped: bool = False
