"""Compares all designs of a space: their costs by simulation, their rounds by the learning curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from channels.arrays import FloatArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.algorithms.hist import Hist
from wirelessfl.codesign.goals import Curve, Goal
from wirelessfl.codesign.masks import SIZE_CAP, divides, fixed_shares, with_shares
from wirelessfl.codesign.round_costs import Costs, RoundCosts
from wirelessfl.codesign.spaces import Space
from wirelessfl.codesign.ways import Way
from wirelessfl.config import Config
from wirelessfl.rounds.planner import Planner

Shares = tuple[float, ...] | None
EQUAL_MASKS, FIXED, OPTIMIZED = "equal", "fixed", "optimized each round"
WEIGHTS = tuple(10.0**power for power in np.arange(-2.0, 3.1, 0.5))
"""Weights of energy that are tried, relative to that at which seconds and joules weigh the same."""
FINER = 4
"""Number of parts into which the interval around the best weight is divided, again and again."""
TOLERANCE = 0.002
"""Relative accuracy of the best weight."""


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

    def edges(self, space: Space) -> tuple[int, ...]:
        """The numbers of edge rounds of a space; with one server there are no edge rounds."""
        return space.edge_rounds if self.planner.hierarchical else (1,)

    def sample(self, clients: int | None, draws: int, name: str = "design") -> RoundCosts:
        """A sample of its rounds, from a stream of its own.

        Args:
            clients: number of clients per round; None for all.
            draws: number of rounds.
            name: name of the stream; other names give other draws.
        """
        stream = Stream(self.config.run.seed).child(name)
        participation = replace(self.planner.participation, per_round=clients)
        planner = replace(self.planner, stream=stream, participation=participation)
        return RoundCosts(planner, draws)


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Designs that differ in local steps and edge rounds only.

    Args:
        family: algorithm and learning curve.
        clients: number of clients per round; None for all.
        masks: how the sizes of the cells' submodels are chosen; empty for full models.
        way: the uplink; with a deadline of rounds, each design has its own.
        local_steps, edge_rounds: H and E.
        shares: [H] shares of the cells; None for equal ones.
        seconds, joules: [H, E], costs of a global round, sample averages.
        largest: [H, E], largest submodel over an equal one.
        rounds: [H, E], global rounds.
        score: [H, E], what is minimised; inf where the goal is not met.
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

    def choice(self, h: int, e: int) -> Choice:
        """One of the designs, by its place in the arrays."""
        place = h, e
        way = self.way
        if way.deadline:
            way = way.ending(float(self.seconds[place]))
        return Choice(
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
        )

    def choices(self) -> Iterator[Choice]:
        """All designs that meet the goal."""
        for h, e in np.argwhere(np.isfinite(self.score)):
            yield self.choice(int(h), int(e))

    def best(self) -> Choice | None:
        """The best design; None if none meets the goal."""
        if not np.isfinite(self.score).any():
            return None
        h, e = np.unravel_index(int(self.score.argmin()), self.score.shape)
        return self.choice(int(h), int(e))


@dataclass(frozen=True, eq=False)
class Choice:
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

    @property
    def title(self) -> str:
        """What has been chosen, in one line."""
        some = "all clients" if self.clients is None else f"{self.clients} clients per round"
        parts = [self.family.algorithm, f"H = {self.local_steps}", f"E = {self.edge_rounds}", some]
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
        }

    def algorithm(self) -> Algorithm:
        """The algorithm with the chosen mask sizes."""
        own = self.family.planner.algorithm
        if not isinstance(own, Hist):
            return own
        if self.masks == OPTIMIZED:
            return replace(own, mask_sizes="optimized", mask_shares=None)
        return with_shares(own, self.shares)

    def costs(self, costs: RoundCosts) -> Costs:
        """What its global rounds cost.

        Args:
            costs: a sample of the rounds of its family with its number of clients.
        """
        of = costs.with_algorithm(self.algorithm())
        return of.of(self.way.uplink, [self.local_steps], [self.edge_rounds])

    @property
    def order(self) -> tuple[float, float, float]:
        """Compares designs: costs that differ by rounding errors are equal, and fewer joules win."""
        digits = f"{self.score:.9g}"
        return float(digits), self.rounds * self.joules, self.score


def best_of(found: Sequence[Choice]) -> Choice | None:
    """The best of some designs; None without any."""
    return min(found, key=lambda choice: choice.order, default=None)


@dataclass(frozen=True, eq=False)
class Search:
    """The designs of a space.

    Args:
        goal: what is minimised, and within which limits.
        space: numbers of local steps, edge rounds and clients.
        ways: uplinks.
        draws: number of rounds in the sample.
    """

    goal: Goal
    space: Space
    ways: Sequence[Way]
    draws: int

    def alternatives(self, families: Sequence[Family]) -> list[Alternatives]:
        """All designs of the space.

        Raises:
            ConfigError: a round has no price.
        """
        found: list[Alternatives] = []
        for family in families:
            for clients in self.space.clients:
                found += self._of(family, clients)
        return found

    def _of(self, family: Family, clients: int | None) -> list[Alternatives]:
        costs = family.sample(clients, self.draws)
        algorithm, cells = costs.planner.algorithm, costs.planner.network.cells
        split = divides(algorithm, cells)
        if isinstance(algorithm, Hist) and algorithm.mask_sizes != "uniform":
            algorithm = with_shares(algorithm, None)
            costs = costs.with_algorithm(algorithm)
        masks = EQUAL_MASKS if isinstance(algorithm, Hist) else ""
        none: tuple[Shares, ...] = (None,) * len(self.space.local_steps)
        found = [self._made(family, clients, masks, way, none, costs) for way in self.ways]
        found += self._weighed(family, clients, masks, none, costs, found)
        if not split:
            return found
        sized = [self._sized(costs, way) for way in self.ways]
        for way, shares in zip(self.ways, sized, strict=True):
            found.append(self._made(family, clients, FIXED, way, shares, costs))
        with_bands = [shares for way, shares in zip(self.ways, sized, strict=True) if way.saves]
        if with_bands:
            found += self._weighed(family, clients, FIXED, with_bands[0], costs, found)
        return found

    def _weighed(
        self,
        family: Family,
        clients: int | None,
        masks: str,
        shares: tuple[Shares, ...],
        costs: RoundCosts,
        found: Sequence[Alternatives],
    ) -> list[Alternatives]:
        """The same with powers and clocks at several weights of energy."""
        saving = [way for way in self.ways if way.saves]
        if not saving or not self.goal.saves_energy:
            return []
        return [
            self._made(family, clients, masks, saving[0].weighing(weight), shares, costs)
            for weight in self.weights(found, costs)
        ]

    def weights(self, found: Sequence[Alternatives], costs: RoundCosts) -> list[float]:
        """Weights W of energy to try, in seconds per joule of all clients."""
        clients, (time, energy) = costs.planner.network.clients, self.goal.weights
        if time > 0 and self.goal.max_seconds is None and self.goal.max_client_joules is None:
            return [energy / (time * clients)]
        first = found[0]
        even = float((first.seconds / first.joules).mean()) / clients
        return [even * weight for weight in WEIGHTS]

    def _sized(self, costs: RoundCosts, way: Way) -> tuple[Shares, ...]:
        """Shares [H] of the cells for an uplink."""
        algorithm, edges = costs.planner.algorithm, self.space.edge_rounds
        assert isinstance(algorithm, Hist)
        middle = edges[len(edges) // 2]
        uplink = way.uplink if not way.deadline else way.ending(1.0).uplink
        cap = algorithm.size_cap or SIZE_CAP
        return tuple(
            fixed_shares(costs, uplink, steps, middle, cap) for steps in self.space.local_steps
        )

    def _made(
        self,
        family: Family,
        clients: int | None,
        masks: str,
        way: Way,
        shares: tuple[Shares, ...],
        costs: RoundCosts,
    ) -> Alternatives:
        space = self.space
        edges = family.edges(space)
        return self.priced(family, clients, masks, way, space.local_steps, edges, shares, costs)

    def priced(
        self,
        family: Family,
        clients: int | None,
        masks: str,
        way: Way,
        local_steps: tuple[int, ...],
        edge_rounds: tuple[int, ...],
        shares: tuple[Shares, ...],
        costs: RoundCosts,
    ) -> Alternatives:
        """Designs with their costs and scores; arguments as in ``Alternatives``.

        Args:
            costs: the sample of rounds.

        Raises:
            ConfigError: a round has no price.
        """
        where: dict[str, Any] = {
            "local_steps": np.array(local_steps)[:, None],
            "edge_rounds": np.array(edge_rounds)[None, :],
            "clients": costs.planner.network.clients if clients is None else clients,
        }
        parts = []
        for h, some in _runs(shares):
            of = costs
            if some is not None:
                algorithm = costs.planner.algorithm
                assert isinstance(algorithm, Hist)
                of = costs.with_algorithm(with_shares(algorithm, some))
            steps = local_steps[h]
            limits = None
            if way.deadline:
                limits = self._deadlines(family.curve, of, steps, edge_rounds, where)
            parts.append(self._costs(way, of, steps, edge_rounds, limits))
        seconds, joules, largest = (np.concatenate(part) for part in zip(*parts, strict=True))
        with np.errstate(invalid="ignore"):
            rounds = self.goal.rounds(family.curve, seconds, joules, largest=largest, **where)
            score = self.goal.score(family.curve, rounds, seconds, joules, largest=largest, **where)
        return Alternatives(
            family, clients, masks, way, local_steps, edge_rounds, shares,
            seconds, joules, largest, rounds, score,
        )  # fmt: skip

    def finer(self, best: Choice) -> list[Alternatives]:
        """The best design with weights of energy between those that have been tried."""
        costs = best.family.sample(best.clients, self.draws)
        weight = float(best.way.settings["energy_weight"])
        factor = WEIGHTS[1] / WEIGHTS[0]
        found: list[Alternatives] = []
        while weight > 0 and factor > 1 + TOLERANCE:
            factor = factor ** (1 / FINER)
            powers = np.arange(1 - FINER, FINER)
            tried = [
                self.alone(best, costs, best.way.weighing(float(weight * factor**power)))
                for power in powers
            ]
            at = min(range(len(tried)), key=lambda i: float(tried[i].score[0, 0]))
            found.append(tried[at])
            weight *= factor ** float(powers[at])
        return found

    def optimized(self, best: Choice) -> list[Alternatives]:
        """The best design with masks that are optimized in each round, if seconds alone count."""
        own = best.family.planner.algorithm
        if not self.goal.seconds_only or not divides(own, best.family.planner.network.cells):
            return []
        assert isinstance(own, Hist)
        costs = best.family.sample(best.clients, self.draws)
        costs = costs.with_algorithm(replace(own, mask_sizes="optimized", mask_shares=None))
        return [self.alone(best, costs, best.way, OPTIMIZED)]

    def alone(
        self, best: Choice, costs: RoundCosts, way: Way, masks: str | None = None
    ) -> Alternatives:
        """One design as alternatives, with another uplink or other masks."""
        steps, edges = (best.local_steps,), (best.edge_rounds,)
        shares = best.shares if masks is None else None
        masks = best.masks if masks is None else masks
        return self.priced(best.family, best.clients, masks, way, steps, edges, (shares,), costs)

    def _deadlines(
        self,
        curve: Curve,
        costs: RoundCosts,
        steps: tuple[int, ...],
        edges: tuple[int, ...],
        where: Mapping[str, Any],
    ) -> FloatArray:
        """The deadline [H, E] of a global round with which the run ends at its limit."""
        assert self.goal.target is not None
        assert self.goal.max_seconds is not None
        some = {**where, "local_steps": np.array(steps)[:, None]}
        rounds = curve.rounds(self.goal.target, largest=costs.largest, **some)
        limits = self.goal.max_seconds / np.broadcast_to(rounds, (len(steps), len(edges)))
        return np.asarray(np.where(limits > 0, limits, 1e-9))

    @staticmethod
    def _costs(
        way: Way,
        costs: RoundCosts,
        steps: tuple[int, ...],
        edges: tuple[int, ...],
        limits: FloatArray | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        uplink = way.uplink if limits is None else way.ending(float(limits.max())).uplink
        found: Costs = costs.of(uplink, steps, edges, deadline=limits)
        seconds, joules = found.means
        return seconds, joules, found.largest


def _runs(shares: tuple[Shares, ...]) -> Iterator[tuple[slice, Shares]]:
    """Consecutive local steps with the same shares."""
    start = 0
    for h in range(1, len(shares) + 1):
        if h == len(shares) or shares[h] != shares[start]:
            yield slice(start, h), shares[start]
            start = h
