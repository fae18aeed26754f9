"""Events and decisions. A schedule maps events to decisions, and never sees gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from wirelessfl.base.guard import returns
from wirelessfl.engine.scheduler_checks import decisions, state


@dataclass(frozen=True)
class Started:
    """The run starts, or resumes from a checkpoint without work in progress."""


@dataclass(frozen=True)
class Arrived:
    """All updates of round ``number`` have arrived; ``trial`` as for ``Give``."""

    number: int
    trial: bool = False


@dataclass(slots=True)
class Returned:
    """The update of a training request has arrived.

    Args:
        request: number of the request.
        task: task whose model was trained.
        version: number of merges of that model when the request was issued.
    """

    request: int
    task: int
    version: int


@dataclass(slots=True)
class Ready:
    """The client of a training request has trained and holds its update until a transmission.

    Args:
        request: number of the request.
        task: task whose model was trained.
    """

    request: int
    task: int


@dataclass(slots=True)
class Transmitted:
    """A transmission has ended: the updates of these requests have arrived.

    Args:
        task: task whose model was trained.
        requests: numbers of the requests, in the order of their clients.
        versions: by request, number of merges of that model when it was issued.
    """

    task: int
    requests: list[int]
    versions: list[int]


@dataclass(frozen=True)
class Lost:
    """There is no update: a client dropped out of a request, has left, or missed the cut-off.

    Args:
        task: task of the request.
        late: number of the request that missed the cut-off; None if none has.
        left: number of the request whose client has left; None if none has.
    """

    task: int
    late: int | None = None
    left: int | None = None


@dataclass(frozen=True)
class Measured:
    """The answer to ``Measure``: the spread of the latest updates of each task.

    Args:
        spread: sigma_m by task; None for tasks with too few updates.
    """

    spread: tuple[float | None, ...]


@dataclass(frozen=True)
class Reached:
    """The model of ``task`` has reached its target, and ends."""

    task: int


@dataclass(frozen=True)
class Present:
    """The answer to ``Open``, and in sessions to ``Merge``.

    Args:
        clients: number of the session's clients that are present now.
    """

    clients: int


@dataclass(frozen=True)
class Joined:
    """A client has joined."""


@dataclass(frozen=True)
class Tick:
    """The time of ``Wake(number)`` is reached."""

    number: int


@dataclass(frozen=True)
class Exhausted:
    """No client takes part any more: none has energy left, or none is available.

    In sessions, none that is present has energy left.
    """


@dataclass(frozen=True)
class Deadline:
    """The limit of simulated time is reached."""


Event = (
    Started
    | Arrived
    | Returned
    | Ready
    | Transmitted
    | Lost
    | Measured
    | Reached
    | Present
    | Joined
    | Tick
    | Exhausted
    | Deadline
)


@dataclass(frozen=True)
class Give:
    """Start round ``number`` after all events at this time.

    Clients train the model, or the models of all active tasks, in their state at that point.

    Args:
        number: round number from 0; trial rounds have their own numbers.
        trial: whether this is a trial round, which trains the warm start's trial model on a copy of
            all state.
    """

    number: int
    trial: bool = False


@dataclass(frozen=True)
class Merge:
    """Merge round ``number`` into the cloud's model or models, or into the trial's copy."""

    number: int
    trial: bool = False


@dataclass(frozen=True)
class Open:
    """Open ``session`` with the clients present now; ``Present`` answers immediately."""

    session: int


@dataclass(frozen=True)
class Begin:
    """Set the initial model of ``session``."""

    session: int


@dataclass(frozen=True)
class Close:
    """End ``session``, and store what later sessions need."""

    session: int


@dataclass(slots=True)
class Ask:
    """Issue ``count`` training requests of ``task`` to random clients.

    They are issued after all events at this time, with the model at that point.
    """

    task: int
    count: int


@dataclass(slots=True)
class Transmit:
    """Let the clients of these requests of ``task`` transmit together when the channel is free.

    ``Transmitted`` follows at the end. Transmissions run in the order of these decisions.
    """

    task: int
    requests: list[int]


@dataclass(slots=True)
class Aggregate:
    """Merge the updates of these requests into the model of ``task``.

    Args:
        task: task of the model.
        requests: numbers of the requests in order of arrival, or in the order of their clients if
            the updates arrived together.
        staleness: by request, merges of the model since it was issued.
    """

    task: int
    requests: list[int]
    staleness: list[int]


@dataclass(slots=True)
class Drop:
    """Do not merge the update of ``request`` of ``task``: an answer to its ``Returned``."""

    task: int
    request: int


@dataclass(frozen=True)
class Cancel:
    """End ``task``: clients drop its requests and get no new ones."""

    task: int


@dataclass(frozen=True)
class Measure:
    """Measure the spread of the latest updates of these tasks.

    The reply, ``Measured``, follows immediately.
    """

    tasks: tuple[int, ...]


@dataclass(frozen=True)
class Wake:
    """Send ``Tick`` at ``number`` times the seconds between evaluations."""

    number: int


@dataclass(frozen=True)
class Report:
    """Evaluate a model and write a row.

    Args:
        round: number of completed global rounds; for several tasks, merges of this task's model.
        task: task of the model; None for runs with one model.
        status: values of the schedule for the row.
    """

    round: int
    task: int | None = None
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Save:
    """Allow a checkpoint after all decisions at this time have been carried out."""


@dataclass(frozen=True)
class Stop:
    """End the run."""


Decision = (
    Give
    | Merge
    | Open
    | Begin
    | Close
    | Ask
    | Transmit
    | Aggregate
    | Drop
    | Cancel
    | Measure
    | Wake
    | Report
    | Save
    | Stop
)


class Scheduler(Protocol):
    """Decides WHEN things happen. ``snapshot`` and ``restore`` save and load its state."""

    @returns(decisions(Decision))
    def decide(self, event: Event) -> list[Decision]:
        """Return the decisions on ``event``, which depend only on it and the scheduler's state."""

    @returns(state)
    def snapshot(self) -> dict[str, Any]:
        """The state as plain numbers, lists and strings."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
