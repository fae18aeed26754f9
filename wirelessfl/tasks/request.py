"""A training request: one model sent to one client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Request:
    """A training request at a client.

    Args:
        number: of all requests of the run, from 0.
        task: index of the model that is trained.
        client: the client that trains it.
        version: merges of the model up to the moment when it was issued.
        issued: simulated time of issue, in seconds.
        seconds: duration of training, and of the upload where one draw covers both.
        share: parameters that the client trains, over those of the whole model.
        lost_after: seconds of training after which the client drops out; None: it does not.
        begun: simulated time at which training began; None while it waits in the client's queue.
        dropped: whether the request was cancelled, as its task has ended.
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
