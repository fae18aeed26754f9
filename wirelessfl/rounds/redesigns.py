"""The redesigns of a run: when they are due, what they have decided, and their planners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from channels.arrays import FloatArray, IntArray
from wirelessfl.errors import ConfigError
from wirelessfl.guard import calling, title_of, wrong_result
from wirelessfl.rounds.planner import Planner
from wirelessfl.rounds.redesign import Cost, Decision, Redesign, RoundSettings, Row, SoFar
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.submodels import largest_part
from wirelessfl.training.shards import Shards
from wirelessfl.wording import shown

DRAWS = 8
"""Number of channel draws over which the cost of a round is averaged."""
WALL = "wall_seconds"
"""Field of rows that differs between equal runs."""


class Redesigns:
    """Asks a redesign when it is due, and keeps its decisions.

    Args:
        redesign: makes the decisions.
        first: settings of the configuration.
        planner_of: returns the planner of rounds with given settings.
        shards: the processes that share the clients; the first decides.

    Raises:
        ConfigError: from ``planner_of``, see ``wirelessfl.setup.redesigns``.
    """

    def __init__(
        self,
        redesign: Redesign,
        first: RoundSettings,
        planner_of: Callable[[RoundSettings], Planner],
        shards: Shards,
    ) -> None:
        self.redesign, self.planner_of, self.shards = redesign, planner_of, shards
        self.decisions = [Decision(0, first)]
        self.rows: Sequence[Row] = ()
        """The run's rows, in the process that decides."""
        self._costs: dict[str, Cost] = {}
        self._memo: dict[Any, Any] = {}

    def of_round(self, number: int) -> RoundSettings:
        """The settings of round ``number``, from 0."""
        made = [each for each in self.decisions if each.round <= max(number, 0)]
        return made[-1].settings

    def settle(self, number: int) -> None:
        """Decide about round ``number``, from 0, unless this has been done or is not due."""
        if number == 0 or number % self.redesign.every or self.decisions[-1].round >= number:
            return
        self.decisions.append(self.shards.by_first(lambda: self._decided(number)))

    def _decided(self, number: int) -> Decision:
        title = title_of(self.redesign)
        now = self.decisions[-1].settings
        planner = self.planner_of(now)
        run = SoFar(
            rounds=number,
            rows=[{name: v for name, v in row.items() if name != WALL} for row in self.rows],
            decisions=tuple(self.decisions),
            participants=planner.participation.per_round or planner.network.clients,
            hierarchical=planner.hierarchical,
            cost=self.cost,
            planner=self.other_planner,
            memo=self._memo,
        )
        with calling(f"redesign {title!r}, decide"):
            found = self.redesign.decide(run)
        decision = found if isinstance(found, Decision) else Decision(number, found)
        settings: object = decision.settings
        if not isinstance(settings, RoundSettings):
            remedy = "RoundSettings, or a Decision that has them"
            raise wrong_result("redesign", self.redesign, "decide", shown(found), remedy)
        self.planner_of(settings)  # refuses wrong values
        return replace(decision, round=number)

    def cost(self, settings: RoundSettings) -> Cost:
        """Mean cost of a global round, over channels and participants that no round of it has."""
        key = settings.key
        if key not in self._costs:
            self._costs[key] = _cost(self.other_planner(settings))
        return self._costs[key]

    def other_planner(self, settings: RoundSettings) -> Planner:
        """A planner of rounds with these settings that the run does not have."""
        planner = self.planner_of(settings)
        return replace(
            planner,
            stream=planner.stream.child("redesign"),
            run_stream=planner.run_stream or planner.stream,
            first_block=(0, 0),
        )

    def snapshot(self) -> list[dict[str, Any]]:
        """The decisions, for a checkpoint."""
        return [asdict(decision) for decision in self.decisions]

    def restore(self, decisions: Sequence[dict[str, Any]]) -> None:
        """Continue with the decisions of a checkpoint."""
        self.decisions = [Decision.of(entry) for entry in decisions]

    def planner(self) -> Planner:
        """The planner of the current settings.

        The channel blocks of its rounds follow those of earlier settings, so that rounds have
        channels of their own if each edge round has one.
        """
        first, blocks = 0, 0
        for before, after in zip(self.decisions, self.decisions[1:], strict=False):
            blocks += (after.round - first) * before.settings.edge_rounds
            first = after.round
        return replace(self.planner_of(self.decisions[-1].settings), first_block=(first, blocks))


def applied(training: RoundTraining, planner: Planner) -> None:
    """Let rounds be trained as ``planner`` plans them."""
    training.settings = replace(planner.settings, padding=training.settings.padding)
    training.server.uplink = planner.links.uplink


def _cost(planner: Planner) -> Cost:
    """Mean cost of some rounds; infinite if one cannot be planned."""
    try:
        plans = [planner.plan(draw, losses=_equal) for draw in range(DRAWS)]
    except ConfigError:  # such as a missed deadline
        return Cost(np.inf, np.inf)
    return Cost(
        seconds=float(np.mean([plan.price.seconds.max() for plan in plans])),
        joules=float(np.mean([plan.price.joules for plan in plans])),
        largest=max(
            float(np.mean([largest_part(plan.submodels) for plan in plans])),
            planner.assigner.reciprocal_width(planner.network.clients),
        ),
    )


def _equal(clients: IntArray, samples: int | None) -> FloatArray:
    """Losses of 0: costs are estimated without a model."""
    return np.zeros(len(clients))
