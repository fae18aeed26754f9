"""Compares designs with asynchronous cells: merges by simulation, their number by learning curves.

Every combination of H, E, B cells per merge and uplink is simulated. How stale updates are depends
on the order in which cells finish; the learning curve knows it from its pilots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wirelessfl.codesign.certified import Proof
from wirelessfl.codesign.design_choices import (
    EQUAL_MASKS,
    Alternatives,
    DesignChoice,
    Family,
    best_of,
    noise_of,
)
from wirelessfl.codesign.goals import SLACK
from wirelessfl.codesign.merges import MOST, CellCosts, CellRounds
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.codesign.search import WEIGHTS, Search
from wirelessfl.codesign.ways import Way

Points = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class MergeSearch(Search):
    """The designs of a space with asynchronous cells; arguments as those of ``Search``."""

    _samples: dict[str, CellRounds] = field(default_factory=dict)
    _known: dict[tuple[str, str, Points, Points], CellCosts] = field(default_factory=dict)

    def alternatives(self, families: Sequence[Family]) -> list[Alternatives]:
        """All designs of the space.

        Raises:
            ConfigError: a round has no price.
        """
        found: list[Alternatives] = []
        for family in families:
            ways = [way for way in self.ways if not way.deadline]
            own = [each for way in ways for each in self._with(family, way)]
            saving = [way for way in ways if way.saves]
            if saving and self.goal.saves_energy:
                for way in self._weights(family, saving[0]):
                    own += self._with(family, way)
                best = best_of([c for each in own if (c := each.best()) is not None])
                if best is not None and best.way.saves and best.way.settings["energy_weight"] > 0:
                    own += self.finer(best, family.sample(None, self.draws))
            found += own
        return found

    def certified(self, families: Sequence[Family]) -> Proof:
        """No design, and no bound: the order of the merges is not that of common rounds."""
        return Proof([])

    def optimized(self, best: DesignChoice) -> list[Alternatives]:
        """No design: masks have no common round for which their sizes could be optimized."""
        return []

    def traded(self, best: DesignChoice) -> list[Alternatives]:
        """The best design with other weights of energy."""
        saving = [way for way in self.ways if way.saves]
        if not saving:
            return []
        costs = best.family.sample(None, self.draws)
        weights = self._weights(best.family, saving[0])
        return [self.alone(best, costs, way) for way in weights]

    def alone(
        self, best: DesignChoice, costs: SampledRounds, way: Way, masks: str | None = None
    ) -> Alternatives:
        """One design as alternatives, with another uplink."""
        assert best.buffer is not None
        steps, edges = (best.local_steps,), (best.edge_rounds,)
        return self.merged(best.family, best.buffer, way, steps, edges)

    def _with(self, family: Family, way: Way) -> list[Alternatives]:
        steps, edges = self.space.local_steps, self.space.edge_rounds
        return [self.merged(family, buffer, way, steps, edges) for buffer in family.buffers]

    def _weights(self, family: Family, way: Way) -> list[Way]:
        """The uplink with weights of energy about that at which seconds and joules are equal."""
        space = self.space
        seconds, joules = self._priced(family, way, space.local_steps, space.edge_rounds)
        even = float((seconds / joules).mean()) / family.planner.network.clients
        return [way.weighing(even * weight) for weight in WEIGHTS]

    def merged(
        self, family: Family, buffer: int, way: Way, local_steps: Points, edge_rounds: Points
    ) -> Alternatives:
        """Designs with their costs and scores; arguments as in ``Alternatives``.

        Seconds and joules are those of the run, divided by its number of merges.

        Raises:
            ConfigError: a round has no price.
        """
        goal, shape = self.goal, (len(local_steps), len(edge_rounds))
        where: dict[str, Any] = {
            "local_steps": np.array(local_steps)[:, None],
            "edge_rounds": np.array(edge_rounds)[None, :],
            "clients": family.merged_clients(buffer),
            "largest": family.planner.assigner.reciprocal_width(family.planner.network.clients),
            **noise_of(way),
        }
        sample = self.sample(family)
        costs = self._priced(family, way, local_steps, edge_rounds)
        if goal.target is not None:
            rounds = np.broadcast_to(goal.rounds_to(goal.target, family.curve, **where), shape)
            known = rounds[np.isfinite(rounds)]
            merges = sample.merges(costs, buffer, int(np.ceil(known.max(initial=1.0))))
        else:
            merges = sample.merges(costs, buffer, MOST)
            rounds = np.floor(SLACK * merges.within(goal.max_seconds, goal.max_client_joules))
        with np.errstate(invalid="ignore"):
            seconds, joules = (total / rounds for total in merges.totals(rounds))
        seconds = np.where(np.isfinite(seconds), seconds, np.inf)
        score, tie = goal.rated(family.curve, rounds, seconds, joules, **where)
        masks = EQUAL_MASKS if family.planner.assigner.sized == "cells" else ""
        return Alternatives(
            family, None, masks, way, local_steps, edge_rounds, (None,) * len(local_steps),
            seconds, joules, np.full(shape, where["largest"]),
            np.asarray(rounds), score, tie, buffer,
        )  # fmt: skip

    def sample(self, family: Family) -> CellRounds:
        """A sample of the rounds of the cells."""
        if family.algorithm not in self._samples:
            self._samples[family.algorithm] = cell_rounds(family, self.draws)
        return self._samples[family.algorithm]

    def _priced(self, family: Family, way: Way, steps: Points, edges: Points) -> CellCosts:
        key = family.algorithm, repr(way.uplink), steps, edges
        if key not in self._known:
            self._known[key] = self.sample(family).of(way.uplink, steps, edges)
        return self._known[key]


def cell_rounds(family: Family, draws: int, name: str = "design") -> CellRounds:
    """A sample of the rounds of a family's cells, from a stream of its own.

    Args:
        family: the designs.
        draws: number of rounds of each cell.
        name: name of the stream; other names give other draws.
    """
    costs = family.sample(None, draws, name)
    assigner = costs.planner.assigner
    even = assigner.with_sizes(None)
    if even != assigner:
        costs = costs.with_assigner(even)
    return CellRounds(costs.planner, draws)
