"""Redesign: decisions, made while a run trains, about how its next rounds train and send."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from wirelessfl.rounds.planner import Planner

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RoundSettings:
    """What a redesign decides: how the clients train and send in a global round.

    >>> from wirelessfl.rounds.redesign import RoundSettings
    >>> RoundSettings(local_steps=20, edge_rounds=2, uplink={"allocation": "optimal"})
    RoundSettings(H=20, E=2, uplink={'allocation': 'optimal'})

    Args:
        local_steps: H, local steps per edge round.
        edge_rounds: E, edge rounds per global round.
        clients_per_round: number of participants; None for that of the configuration.
        uplink: settings of the uplink that differ from the configuration, such as ``allocation``.
    """

    local_steps: int
    edge_rounds: int = 1
    clients_per_round: int | None = None
    uplink: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line, without what the configuration determines."""
        parts = [f"H={self.local_steps}", f"E={self.edge_rounds}"]
        if self.clients_per_round is not None:
            parts.append(f"clients_per_round={self.clients_per_round}")
        if self.uplink:
            parts.append(f"uplink={dict(self.uplink)}")
        return f"RoundSettings({', '.join(parts)})"

    @property
    def key(self) -> str:
        """The same settings as text, to compare and to look up."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Cost:
    """Mean cost of a global round over channel draws that no round of the run has.

    >>> from wirelessfl.rounds.redesign import Cost
    >>> Cost(seconds=2.0, joules=0.5).weighted((1.0, 10.0))
    7.0

    Args:
        seconds: duration.
        joules: energy, mean over all clients of the network.
        largest: m, largest submodel of a cell relative to equal ones, or mean of 1/width where each
            client has a width; 1 for full models.
    """

    seconds: float
    joules: float
    largest: float = 1.0

    def weighted(self, weights: tuple[float, float]) -> float:
        """w_T seconds + w_E joules; a weight of 0 leaves its cost out, even if it is infinite."""
        costs = zip(weights, (self.seconds, self.joules), strict=True)
        return sum((weight * cost for weight, cost in costs if weight), 0.0)


@dataclass(frozen=True)
class Decision:
    """Settings from a round on, and what the redesign expects of them.

    Args:
        round: number of rounds that were complete when it was made; 0 for the configuration.
        settings: settings of the next rounds.
        expected: expectations by name, such as ``seconds`` until the target.
    """

    round: int
    settings: RoundSettings
    expected: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """The decision in an entry of a checkpoint, see ``asdict``."""
        return cls(entry["round"], RoundSettings(**entry["settings"]), entry["expected"])


@dataclass(frozen=True, eq=False)
class SoFar:
    """What a redesign may know: it is the same in an interrupted and in an uninterrupted run.

    Args:
        rounds: number of complete global rounds.
        rows: all rows so far, without wall-clock seconds.
        decisions: the decisions so far; the first has the settings of the configuration.
        participants: number of participants of a round with the current settings.
        hierarchical: whether there are cells, so that E can be chosen.
        cost: returns the mean cost of a global round with these settings; infinite if the uplink
            cannot serve them. Clients and submodels are those of the run's algorithm.
        planner: returns a planner of rounds with these settings, with channels and participants
            that no round of the run has.
        memo: keeps what follows from the configuration alone, such as costs, from one redesign to
            the next; it is empty when a run resumes.
    """

    rounds: int
    rows: Sequence[Row]
    decisions: Sequence[Decision]
    participants: int
    hierarchical: bool
    cost: Callable[[RoundSettings], Cost]
    planner: Callable[[RoundSettings], Planner]
    memo: dict[Any, Any]

    @property
    def settings(self) -> RoundSettings:
        """The current settings."""
        return self.decisions[-1].settings


class Redesign(ABC):
    """Decides every ``every`` global rounds how the next ones train and send.

    ``decide`` must depend on its argument alone, so that a resumed run makes the same decisions.

    >>> import wirelessfl
    >>> from dataclasses import dataclass, replace
    >>> @dataclass(frozen=True)
    ... class Halved(wirelessfl.Redesign):
    ...     # Half as many local steps from each redesign on
    ...     every: int = 1
    ...     def decide(self, run):
    ...         now = run.settings
    ...         return replace(now, local_steps=max(1, now.local_steps // 2))
    >>> settings = wirelessfl.Config.from_flags(
    ...     "fedavg", clients=4, local_steps=8, rounds=3, out="redesigned-run"
    ... )
    >>> result = wirelessfl.run(settings, redesign=Halved())
    >>> [row["local_steps"] for row in result.rows]
    [8, 8, 4, 2]
    """

    every: int
    """R, global rounds between two redesigns, >= 1."""
    reads: ClassVar[tuple[str, ...]] = ()
    """Fields of rows without which it cannot decide."""

    @abstractmethod
    def decide(self, run: SoFar) -> RoundSettings | Decision:
        """The settings of the next rounds.

        Args:
            run: what the run has shown so far.

        Returns:
            The settings; or a decision, with what it expects of them.
        """

    def stored(self) -> dict[str, Any] | None:
        """What the run's folder keeps, as JSON, so that ``resume`` needs no object; None if not."""
        return None

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> Self:
        """The redesign that ``stored`` describes."""
        return cls(**stored)

    @property
    def title(self) -> str:
        """Its name in settings and messages: class, period and, if it is stored, a hash."""
        name, kept = f"{type(self).__name__} every {self.every}", self.stored()
        if kept is None:
            return name
        text = json.dumps(kept, sort_keys=True)
        return f"{name} ({hashlib.sha256(text.encode()).hexdigest()[:8]})"
