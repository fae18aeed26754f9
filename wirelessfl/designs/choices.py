"""Designs that are compared: their settings, costs, rounds and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.config import Config
from wirelessfl.designs.goals import Curve, Goal
from wirelessfl.designs.sampled_rounds import Costs, SampledRounds
from wirelessfl.designs.spaces import Space
from wirelessfl.designs.ways import Way
from wirelessfl.engine.rounds.planner import Planner

Shares = tuple[float, ...] | None
EQUAL_MASKS, FIXED, OPTIMIZED = "equal", "fixed", "optimized each round"
EQUAL = 1e-9
"""Relative difference of scores that rounding errors explain."""


def divides(assigner: Assigner, cells: int) -> bool:
    """Whether the cells train disjoint submodels whose sizes can be chosen."""
    return assigner.design_sizes.disjoint and cells > 1


@dataclass(frozen=True, eq=False)
class Family:
    """Designs with one algorithm, whose trainings share a learning curve.

    Args:
        algorithm: name of the algorithm.
        config: the settings of a run with it.
        planner: plans its rounds.
        curve: its number of rounds to a target.
    """

    algorithm: str
    config: Config
    planner: Planner
    curve: Curve

    @property
    def sizes(self) -> bool:
        """Whether mask sizes can be chosen: the curve must know how rounds depend on them."""
        varies = "largest" in getattr(self.curve, "varies", ("largest",))
        return varies and divides(self.planner.assigner, self.planner.network.cells)

    def edges(self, space: Space) -> tuple[int, ...]:
        """The numbers of edge rounds of a space; with one server there are no edge rounds."""
        return space.edge_rounds if self.planner.hierarchical else (1,)

    def sample(self, clients: int | None, draws: int, name: str = "design") -> SampledRounds:
        """A sample of its rounds, from a stream of its own.

        Args:
            clients: number of clients per round; None for all.
            draws: number of rounds.
            name: name of the stream; other names give other draws.
        """
        stream = Stream(self.config.run.seed).child(name)
        participation = replace(self.planner.participation, per_round=clients)
        planner = replace(
            self.planner.sampling(stream, self.config.training.rounds), participation=participation
        )
        return SampledRounds(planner, draws)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Designs that differ in local steps and edge rounds only.

    Args:
        family: algorithm and learning curve.
        clients: number of clients per round; None for all.
        masks: how the sizes of the cells' submodels are chosen; empty for those of the settings.
        way: the uplink; with a deadline of rounds, each design has its own.
        local_steps, edge_rounds: H and E.
        shares: [H] shares of the cells, None for equal ones.
        seconds, joules: [H, E], costs of a global round: sample averages, or those of the quantile
            of the run divided by its rounds.
        largest: [H, E], m, see ``Costs``.
        rounds: [H, E], global rounds.
        score: [H, E], what is minimised; inf where the goal is not met.
        tie: [H, E], what is minimised among designs with equal scores.
    """

    family: Family
    clients: int | None
    masks: str
    way: Way
    local_steps: tuple[int, ...]
    edge_rounds: tuple[int, ...]
    shares: tuple[Shares, ...]
    seconds: FloatArray
    joules: FloatArray
    largest: FloatArray
    rounds: FloatArray
    score: FloatArray
    tie: FloatArray

    def choice(self, h: int, e: int) -> DesignChoice:
        """One of the designs, by its place in the arrays."""
        place = h, e
        way = self.way
        if way.deadline:
            # No draw of the sample is late, but a rare one of the run may be.
            way = way.ending(float(self.seconds[place]), lost=True)
        return DesignChoice(
            self.family,
            self.clients,
            self.masks,
            self.shares[h],
            way,
            self.local_steps[h],
            self.edge_rounds[e],
            float(self.seconds[place]),
            float(self.joules[place]),
            float(self.largest[place]),
            float(self.rounds[place]),
            float(self.score[place]),
            float(self.tie[place]),
        )

    def choices(self) -> Iterator[DesignChoice]:
        """All designs that meet the goal."""
        for h, e in np.argwhere(np.isfinite(self.score)):
            yield self.choice(int(h), int(e))

    def best(self) -> DesignChoice | None:
        """The best design; None if none meets the goal."""
        if not np.isfinite(self.score).any():
            return None
        least = self.score.min()
        equal = self.score <= least + EQUAL * abs(least)
        tie = np.where(equal & ~np.isnan(self.tie), self.tie, np.inf)
        place = np.lexsort((self.score.ravel(), tie.ravel(), ~equal.ravel()))[0]
        h, e = np.unravel_index(int(place), self.score.shape)
        return self.choice(int(h), int(e))


@dataclass(frozen=True, eq=False)
class DesignChoice:
    """One design; fields as those of ``Alternatives``."""

    family: Family
    clients: int | None
    masks: str
    shares: Shares
    way: Way
    local_steps: int
    edge_rounds: int
    seconds: float
    joules: float
    largest: float
    rounds: float
    score: float
    tie: float

    @property
    def title(self) -> str:
        """What has been chosen, in one line."""
        clients = "all clients" if self.clients is None else f"{self.clients} clients per round"
        numbers = f"H = {self.local_steps}", f"E = {self.edge_rounds}"
        parts = [self.family.algorithm, *numbers, clients]
        parts += [f"masks {self.mask_text}"] if self.masks else []
        return ", ".join([*parts, self.way.title])

    @property
    def mask_text(self) -> str:
        """The sizes of the masks."""
        if self.shares is None:
            return self.masks
        return " : ".join(f"{share:.3g}" for share in self.shares)

    def where(self, clients: int) -> dict[str, Any]:
        """The arguments of a learning curve.

        Args:
            clients: number of clients of the network.
        """
        return {
            "local_steps": self.local_steps,
            "edge_rounds": self.edge_rounds,
            "clients": clients if self.clients is None else self.clients,
            "largest": self.largest,
            **noise_of(self.way),
        }

    def assigner(self) -> Assigner:
        """Who trains which neurons, with the chosen mask sizes."""
        sizes = self.family.planner.assigner.design_sizes
        return sizes.optimized() if self.masks == OPTIMIZED else sizes.fixed(self.shares)

    def costs(self, costs: SampledRounds) -> Costs:
        """What its global rounds cost.

        Args:
            costs: a sample of the rounds of its family with its number of clients.
        """
        of = costs.with_assigner(self.assigner())
        return of.of(self.way.uplink, [self.local_steps], [self.edge_rounds])

    def of(self, alternatives: Alternatives) -> bool:
        """Whether this is the best one of some designs."""
        best = alternatives.best()
        return best is not None and best.same(self)

    def same(self, choice: DesignChoice) -> bool:
        """Whether two designs are equal."""
        mine, theirs = vars(self) | {"way": None}, vars(choice) | {"way": None}
        return mine == theirs and self.way == choice.way

    @property
    def order(self) -> tuple[float, float, float]:
        """Compares designs; scores that differ by rounding errors are equal, see ``Goal.tie``."""
        digits = f"{self.score:.9g}"
        return float(digits), self.tie, self.score


def order_of(choice: DesignChoice) -> tuple[float, float, float]:
    """Sorts designs, the best first."""
    return choice.order


def best_of(choices: Sequence[DesignChoice]) -> DesignChoice | None:
    """The best of some designs; None without any."""
    return min(choices, key=order_of, default=None)


def noise_of(way: Way) -> dict[str, float]:
    """The argument of a learning curve for sums with errors; none without errors."""
    return {"noise": way.noise} if way.noise else {}


def unreachable(
    goal: Goal, families: Sequence[Family], alternatives: Sequence[Alternatives]
) -> str:
    """Why no design meets the goal."""
    if goal.target is None:
        return f"no design trains a round within {goal.limits}: raise the limit."
    reached = [designs for designs in alternatives if np.isfinite(designs.rounds).any()]
    if reached:
        seconds = min(_least(designs.rounds * designs.seconds) for designs in reached)
        joules = min(_least(designs.rounds * designs.joules) for designs in reached)
        return (
            f"no design reaches {goal.target:g} within {goal.limits}: the soonest takes "
            f"{seconds:.4g} s, and the most frugal {joules:.4g} J per client. Raise the limit, or "
            "lower the target."
        )
    largest = max(_largest(family.curve) for family in families)
    return (
        f"target={goal.target:g} is not reached by any design: the largest accuracy that the "
        f"pilots have reached is {largest:.4g}. Lower target, or train longer pilots."
    )


def _least(values: Any) -> float:
    return float(np.nanmin(np.where(np.isfinite(values), values, np.inf)))


def _largest(curve: Curve) -> float:
    return float(max(getattr(curve, "targets", [0.0])))
