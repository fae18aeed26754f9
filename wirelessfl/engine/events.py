"""Events and decisions. A schedule maps events to decisions, and never sees gradients."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import Any, Protocol

import numpy as np

from wirelessfl.base.guard import Check, UnfitError, described, returns


def decisions(kinds: Any) -> Check:
    """A check for a list of decisions of these classes, whose values are valid on their own."""

    def check(value: Any, scheduler: object, event: object) -> Sequence[Any]:
        expected = "a list of decisions of wirelessfl.extend, empty for none"
        if not isinstance(value, list | tuple):
            raise UnfitError(f"{described(value)} on {event}", expected)
        for decision in value:
            if not isinstance(decision, kinds):
                raise UnfitError(f"the decision {described(decision)} on {event}", expected)
            for entry in fields(decision):
                needed = _needed(entry, decision)
                if needed is not None:
                    raise UnfitError(f"{decision} on {event}", f"{needed} as {entry.name}")
        return value

    return check


def state(value: Any, scheduler: object) -> dict[str, Any]:
    """Check for a state that a checkpoint can store as JSON."""
    if not isinstance(value, dict) or not _is_json(value):
        raise UnfitError(described(value), "a dict of plain numbers, lists and strings by name")
    return value


def _needed(entry: Field[Any], decision: Any) -> str | None:
    """The values that a field of a decision may have, in words; None if it has one of them."""
    value = getattr(decision, entry.name)
    match entry.name:
        case "trial":
            return None if isinstance(value, bool) else "True or False"
        case "status":
            plain = isinstance(value, dict) and _is_json(value)
            return None if plain else "a dict of plain values by name"
        case "requests" | "staleness" | "tasks":
            valid = isinstance(value, list | tuple) and all(map(_is_count, value))
            if entry.name == "requests":
                valid = valid and 0 < len(set(value)) == len(value)
                return None if valid else "integers >= 0, at least one, each once,"
            if entry.name == "staleness":
                valid = valid and len(value) == len(decision.requests)
                return None if valid else "an integer >= 0 per request"
            return None if valid else "integers >= 0"
    if _is_count(value) or (entry.default is None and value is None):
        return None
    return "an integer >= 0"


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


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
    """There is no update: a client dropped out of a request, or missed the cut-off.

    Args:
        task: task of the request.
        late: number of the request that missed the cut-off; None if the client dropped out.
    """

    task: int
    late: int | None = None


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
    """No client has energy left for a further round, or in sessions none that is present."""


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
