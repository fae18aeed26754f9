"""Redesigns: decisions, made while a run trains, about how its next rounds train and send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wirelessfl.air.links import Links
from wirelessfl.algorithms import rule_of
from wirelessfl.algorithms.algorithm import check_participation
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.guard import calling, title_of, wrong_result
from wirelessfl.base.wording import shown
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.training.steps import MOST_STEPS
from wirelessfl.training.workers.shards import Shards

DRAWS = 8  # over which the cost of a round is averaged


@dataclass(frozen=True)
class RoundSettings:
    """What a redesign decides: how the clients train and send in a global round.

    >>> from wirelessfl import RoundSettings
    >>> RoundSettings(local_steps=20, uplink={"allocation": "optimal"}).edge_rounds
    1

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


class Cost(NamedTuple):
    """Mean seconds of a global round, and joules, mean over all clients of the network."""

    seconds: float
    joules: float


@dataclass(frozen=True, eq=False)
class SoFar:
    """What a redesign may know: it is the same in an interrupted and in an uninterrupted run.

    Args:
        rounds: number of complete global rounds.
        rows: all rows so far, without wall-clock seconds.
        decisions: numbers of complete rounds, and the settings decided then; first those of the
            configuration.
        cost: returns the mean cost of a global round with these settings, over channels and
            participants that no round of the run has; infinite if the uplink cannot serve them.
    """

    rounds: int
    rows: Sequence[Mapping[str, Any]]
    decisions: Sequence[tuple[int, RoundSettings]]
    cost: Callable[[RoundSettings], Cost]

    @property
    def settings(self) -> RoundSettings:
        """The current settings."""
        return self.decisions[-1][1]


class Redesign(ABC):
    """Decides every ``every`` global rounds how the next ones train and send.

    ``decide`` must depend on its argument alone, so that a resumed run makes the same decisions.
    ``reads`` has the fields of rows without which it cannot decide.

    >>> import wirelessfl
    >>> from dataclasses import replace
    >>> class Halved(wirelessfl.Redesign):
    ...     every = 1
    ...     def decide(self, run):
    ...         return replace(run.settings, local_steps=run.settings.local_steps // 2)
    >>> few = {"clients": 4, "local_steps": 8, "rounds": 3, "out": "redesigned-run"}
    >>> result = wirelessfl.run(wirelessfl.Config.from_flags("fedavg", **few), redesign=Halved())
    >>> [row["local_steps"] for row in result.rows]
    [8, 8, 4, 2]
    """

    every: int
    reads: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def decide(self, run: SoFar) -> RoundSettings:
        """The settings of the next rounds, from what the run has shown so far."""

    @property
    def title(self) -> str:
        """Its name in settings and messages."""
        return f"{type(self).__name__} every {getattr(self, 'every', None)}"


@dataclass(eq=False)
class Redesigns:
    """Asks a redesign when it is due, keeps its decisions, and plans rounds by them.

    The first of ``shards`` decides, from its ``rows`` of the run. ``links_of`` returns the links of
    the ``configured`` planner with changed settings of the uplink.
    """

    redesign: Redesign
    configured: Planner
    links_of: Callable[[Mapping[str, Any]], Links]
    shards: Shards
    rows: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        first = self.configured.settings
        self.decisions = [(0, RoundSettings(first.local_steps, first.edge_rounds))]

    def of_round(self, number: int) -> RoundSettings:
        """The settings of round ``number``, from 0."""
        return [settings for first, settings in self.decisions if first <= max(number, 0)][-1]

    def settle(self, number: int) -> None:
        """Decide about round ``number``, from 0, unless this has been done or is not due."""
        if number % self.redesign.every == 0 and self.decisions[-1][0] < number:
            self.decisions.append(self.shards.by_first(lambda: self._decided(number)))

    def _decided(self, number: int) -> tuple[int, RoundSettings]:
        rows = [{name: v for name, v in row.items() if name != "wall_seconds"} for row in self.rows]
        with calling(f"redesign {title_of(self.redesign)!r}, decide"):
            run = SoFar(number, rows, tuple(self.decisions), self._cost)
            settings: object = self.redesign.decide(run)
        if not isinstance(settings, RoundSettings):
            result = shown(settings)
            raise wrong_result("redesign", self.redesign, "decide", result, "RoundSettings")
        self.planner_of(settings)  # refuses wrong values
        return number, settings

    def _cost(self, settings: RoundSettings) -> Cost:
        planner = self.planner_of(settings)
        planner = planner.sampling(planner.stream.child("redesign"), len(self.rows) + DRAWS)
        try:  # with equal losses, as there is no model
            plans = [planner.plan(i, losses=lambda c, _: np.zeros(len(c))) for i in range(DRAWS)]
        except ConfigError:  # such as a missed deadline
            return Cost(np.inf, np.inf)
        seconds = np.mean([plan.price.seconds.max() for plan in plans])
        return Cost(float(seconds), float(np.mean([plan.price.joules for plan in plans])))

    def planner(self) -> Planner:
        """The planner of the current settings; channel blocks follow those of earlier ones."""
        first, blocks = 0, 0
        for (_, settings), (number, _) in pairwise(self.decisions):
            blocks += (number - first) * settings.edge_rounds
            first = number
        return replace(self.planner_of(self.decisions[-1][1]), first_block=(first, blocks))

    def planner_of(self, settings: RoundSettings) -> Planner:
        """The planner of rounds with these settings; wrong ones raise a ``ConfigError``."""
        planner, sampled = self.configured, settings.clients_per_round
        _check_numbers(settings, planner)
        participation, network = planner.participation, planner.network
        if sampled is not None:
            algorithm = planner.algorithm
            sizes = network.clients, network.cells, sampled, participation.tracking
            check_participation(rule_of(algorithm), algorithm.title, *sizes)
            participation = replace(participation, per_round=sampled)
        links = self.links_of(settings.uplink) if settings.uplink else planner.links
        steps, edges = settings.local_steps, settings.edge_rounds
        trained = replace(planner.settings, local_steps=steps, edge_rounds=edges)
        return replace(planner, settings=trained, links=links, participation=participation)

    def snapshot(self) -> list[dict[str, Any]]:
        """The decisions, for a checkpoint."""
        return [{"round": at, "settings": asdict(settings)} for at, settings in self.decisions]

    def restore(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Continue with the decisions of a checkpoint."""
        self.decisions = [(entry["round"], RoundSettings(**entry["settings"])) for entry in entries]


def _check_numbers(settings: RoundSettings, planner: Planner) -> None:
    edges = MOST_STEPS if planner.hierarchical else 1  # a star has no edge rounds
    most = {"local_steps": MOST_STEPS, "edge_rounds": edges, "clients_per_round": MOST_STEPS}
    for name, limit in most.items():
        value = getattr(settings, name)
        integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
        default = value is None and name == "clients_per_round"
        if not default and not (integer and 1 <= value <= limit):
            where = "" if limit > 1 else f", as algorithm {planner.algorithm.title!r} has no cells"
            raise ConfigError(
                f"the redesign has chosen {name}={shown(value)}: choose an integer from 1 to "
                f"{limit:g}{where}."
            )
