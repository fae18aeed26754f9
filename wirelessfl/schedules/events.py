"""Events and decisions: a schedule turns one into the other, and knows no gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Started:
    """The run begins, or resumes from a checkpoint at which nothing was in progress."""


@dataclass(frozen=True)
class Arrived:
    """All that was given out as round ``number`` has come back; ``trial`` as for ``Give``."""

    number: int
    trial: bool = False


@dataclass(slots=True)
class Returned:
    """The update of training request ``request`` is in.

    Args:
        request: its number.
        task: whose model was trained.
        version: merges of that model that had been made when the request was issued.
    """

    request: int
    task: int
    version: int


@dataclass(slots=True)
class Ready:
    """The client of a training request has trained, and holds its update for a transmission.

    Args:
        request: its number.
        task: whose model was trained.
    """

    request: int
    task: int


@dataclass(slots=True)
class Transmitted:
    """The updates of these requests are in: a transmission has ended.

    Args:
        task: whose model was trained.
        requests: their numbers, in the order of their clients.
        versions: by request, merges of that model that had been made when it was issued.
    """

    task: int
    requests: list[int]
    versions: list[int]


@dataclass(frozen=True)
class Lost:
    """A client has dropped out in the middle of a training of ``task``; there is no update."""

    task: int


@dataclass(frozen=True)
class Measured:
    """The answer to ``Measure``: how far the latest updates of each task lie apart.

    Args:
        spread: sigma_m by task; None where there are too few updates yet.
    """

    spread: tuple[float | None, ...]


@dataclass(frozen=True)
class Reached:
    """The model of ``task`` has reached its target."""

    task: int


@dataclass(frozen=True)
class Present:
    """The answer to ``Open``, and in sessions to ``Merge``: number of the session's clients that
    are present now."""

    clients: int


@dataclass(frozen=True)
class Joined:
    """A client has joined."""


@dataclass(frozen=True)
class Tick:
    """The time of a ``Wake`` has come."""

    number: int


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
    | Deadline
)


@dataclass(frozen=True)
class Give:
    """Give out round ``number``, at the end of this instant: clients train the model, or the models
    of all active tasks, as they are then.

    Args:
        number: of the round, from 0; trial rounds are counted apart.
        trial: whether a copy of everything is trained, from the warm start's trial model.
    """

    number: int
    trial: bool = False


@dataclass(frozen=True)
class Merge:
    """Merge round ``number`` into the cloud's model, or models, or into the trial's copy."""

    number: int
    trial: bool = False


@dataclass(frozen=True)
class Open:
    """Start ``session`` with the clients present now; ``Present`` follows at once."""

    session: int


@dataclass(frozen=True)
class Begin:
    """Give ``session`` the model that it begins with."""

    session: int


@dataclass(frozen=True)
class Close:
    """``session`` is over: store what later sessions need."""

    session: int


@dataclass(slots=True)
class Ask:
    """Send ``count`` training requests of ``task`` to random clients, at the end of this instant.

    They carry the model as it is then.
    """

    task: int
    count: int


@dataclass(slots=True)
class Transmit:
    """The clients of these ready requests of ``task`` send at once, when the channel is free.

    ``Transmitted`` follows at the end. Transmissions take place in the order of these decisions.
    """

    task: int
    requests: list[int]


@dataclass(slots=True)
class Aggregate:
    """Merge the updates of these requests into the model of ``task``.

    Args:
        task: which model.
        requests: numbers, in the order in which they came back, or of their clients where they
            came back at once.
        staleness: merges between each one's issue and now.
    """

    task: int
    requests: list[int]
    staleness: list[int]


@dataclass(frozen=True)
class Cancel:
    """``task`` has ended: clients drop its requests, and take no new ones."""

    task: int


@dataclass(frozen=True)
class Measure:
    """Say how far the latest updates of these tasks lie apart; ``Measured`` follows at once."""

    tasks: tuple[int, ...]


@dataclass(frozen=True)
class Wake:
    """Say ``Tick`` at ``number`` times the seconds between evaluations."""

    number: int


@dataclass(frozen=True)
class Report:
    """Evaluate a model and write a row.

    Args:
        round: global rounds done; of several tasks, merges of this task's model.
        task: which model, where there are several.
        status: what the schedule has to say; it goes into the row.
    """

    round: int
    task: int | None = None
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Save:
    """The state may be saved here, once all decisions of this instant are carried out."""


@dataclass(frozen=True)
class Stop:
    """The run is over."""


Decision = (
    Give
    | Merge
    | Open
    | Begin
    | Close
    | Ask
    | Transmit
    | Aggregate
    | Cancel
    | Measure
    | Wake
    | Report
    | Save
    | Stop
)


class Scheduler(Protocol):
    """WHEN things happen. Its state is covered by ``snapshot`` and ``restore``."""

    def decide(self, event: Event) -> list[Decision]:
        """What follows from ``event``; depends on the schedule's state and the event alone."""

    def snapshot(self) -> dict[str, Any]:
        """The state as plain numbers, lists and texts."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a snapshot."""
