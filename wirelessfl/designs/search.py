"""Compares all designs of a space: costs by simulation, rounds by learning curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from channels import Access
from channels.arrays import FloatArray
from wirelessfl.air.uplinks import Uplink
from wirelessfl.designs.certified import Proof, applies, certified
from wirelessfl.designs.choices import (
    EQUAL_MASKS,
    FIXED,
    OPTIMIZED,
    Alternatives,
    DesignChoice,
    Family,
    Shares,
    noise_of,
    order_of,
)
from wirelessfl.designs.goals import Curve, Goal
from wirelessfl.designs.prediction import quantiles
from wirelessfl.designs.sampled_rounds import Costs, SampledRounds
from wirelessfl.designs.spaces import Space
from wirelessfl.designs.ways import DEADLINE, WEIGHED, Way
from wirelessfl.engine.rounds.contexts import RoundDurations, round_context
from wirelessfl.models.submodels import sizes_of

WEIGHTS = tuple(10.0**power for power in np.arange(-2.0, 3.1, 1.0))
"""Weights of energy that are tried, relative to that at which seconds and joules weigh the same."""
FEW = 4
"""Draws with which sizes of masks are chosen and weights of energy are compared at first."""
SEVERAL = 2
"""Designs, with the best weights by few draws, whose weights are refined with all draws."""
TOLERANCE = 0.01
"""Relative accuracy of the best weight."""


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
        """All designs of the space."""
        alternatives: list[Alternatives] = []
        for family in families:
            for clients in self.space.clients:
                alternatives += self._of(family, clients)
        return alternatives

    def _of(self, family: Family, clients: int | None) -> list[Alternatives]:
        costs = family.sample(clients, self.draws)
        sizes = costs.planner.assigner.design_sizes
        even = sizes.fixed(None)
        if even != sizes.assigner:
            costs = costs.with_assigner(even)
        masks = EQUAL_MASKS if sizes.of == "cells" else ""
        none: tuple[Shares, ...] = (None,) * len(self.space.local_steps)
        alternatives = [self._made(family, clients, masks, way, none, costs) for way in self.ways]
        alternatives += self._weighed(family, clients, masks, none, costs, alternatives)
        if family.sizes:
            alternatives += self._with_sizes(family, clients, costs, alternatives)
        return alternatives

    def _with_sizes(
        self,
        family: Family,
        clients: int | None,
        costs: SampledRounds,
        equal: Sequence[Alternatives],
    ) -> list[Alternatives]:
        """The designs with fixed masks of other sizes."""
        alternatives: list[Alternatives] = []
        by_access: dict[Access, tuple[Shares, ...]] = {}
        sized = []
        for way in self.ways:
            sizing = (way.ending(1.0) if way.deadline else way).uplink.sizing
            if sizing not in by_access:
                by_access[sizing] = self._sized(costs, way)
            sized.append(by_access[sizing])
        for way, shares in zip(self.ways, sized, strict=True):
            alternatives.append(self._made(family, clients, FIXED, way, shares, costs))
        with_bands = [shares for way, shares in zip(self.ways, sized, strict=True) if way.saves]
        if with_bands:
            alternatives += self._weighed(family, clients, FIXED, with_bands[0], costs, equal)
        return alternatives

    def _weighed(
        self,
        family: Family,
        clients: int | None,
        masks: str,
        shares: tuple[Shares, ...],
        costs: SampledRounds,
        equal: Sequence[Alternatives],
    ) -> list[Alternatives]:
        """The same with powers and clocks at weights of energy.

        If the goal has no weight of its own, several are tried with few draws, and those of the
        best designs are refined.
        """
        saving = [way for way in self.ways if way.saves]
        if not saving or not self.goal.saves_energy:
            return []
        stated = self._stated_weight(costs)
        if stated is not None:
            way = saving[0].weighing(stated)
            return [self._made(family, clients, masks, way, shares, costs)]
        few = costs.first(FEW)
        first = equal[0]
        even = float((first.seconds / first.joules).mean()) / costs.planner.network.clients
        ways = [saving[0].weighing(even * weight) for weight in WEIGHTS]
        tried = [self._made(family, clients, masks, way, shares, few) for way in ways]
        best: dict[tuple[int, int], DesignChoice] = {}
        for choice in sorted(
            (c for alternatives in tried for c in alternatives.choices()), key=order_of
        ):
            best.setdefault((choice.local_steps, choice.edge_rounds), choice)
        return [
            alone for choice in [*best.values()][:SEVERAL] for alone in self.finer(choice, costs)
        ]

    def _stated_weight(self, costs: SampledRounds) -> float | None:
        """The weight W of energy that the goal states, in seconds per joule of all clients."""
        time, energy = self.goal.weights
        if time == 0 or self.goal.limits:
            return None
        return energy / (time * costs.planner.network.clients)

    def _sized(self, costs: SampledRounds, way: Way) -> tuple[Shares, ...]:
        """Shares [H] of the cells for an uplink."""
        edges = self.space.edge_rounds
        middle = edges[len(edges) // 2]
        uplink = way.uplink if not way.deadline else way.ending(1.0).uplink
        few = costs.first(FEW)
        return tuple(fixed_shares(few, uplink, steps, middle) for steps in self.space.local_steps)

    def _made(
        self,
        family: Family,
        clients: int | None,
        masks: str,
        way: Way,
        shares: tuple[Shares, ...],
        costs: SampledRounds,
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
        costs: SampledRounds,
    ) -> Alternatives:
        """Designs with their costs and scores; arguments as in ``Alternatives``.

        Args:
            costs: the sample of rounds.
        """
        where = self._where(costs, clients, local_steps, edge_rounds) | noise_of(way)
        parts = []
        for h, sizes in _runs(shares):
            of = costs
            if sizes is not None:
                of = costs.with_assigner(costs.planner.assigner.design_sizes.fixed(sizes))
            point = {**where, "local_steps": np.array(local_steps[h])[:, None]}
            parts.append(self._costs(family.curve, way, of, local_steps[h], edge_rounds, point))
        seconds, joules, largest = (np.concatenate(part) for part in zip(*parts, strict=True))
        with np.errstate(invalid="ignore"):
            rounds = self.goal.rounds(family.curve, seconds, joules, largest=largest, **where)
            score, tie = self.goal.rated(
                family.curve, rounds, seconds, joules, largest=largest, **where
            )
        return Alternatives(
            family, clients, masks, way, local_steps, edge_rounds, shares,
            seconds, joules, largest, rounds, score, tie,
        )  # fmt: skip

    def certified(self, families: Sequence[Family]) -> Proof:
        """The best designs over OFDMA with a proven bound on the costs of all of them.

        Returns:
            Designs for each algorithm and number of clients, and the bounds; NaN if there is none
            for one of them.
        """
        ways = [way for way in self.ways if way.saves]
        if not ways or not applies(self.goal):
            return Proof([])
        energy = self.goal.weights[1]
        alternatives = []
        bounds: list[float] = []
        free: list[float] = []
        for family in families:
            edges = family.edges(self.space)
            for clients in self.space.clients:
                costs = family.sample(clients, self.draws)
                sizes = costs.planner.assigner.design_sizes
                if sizes.of == "cells":
                    costs = costs.with_assigner(sizes.fixed(None))
                where = self._where(costs, clients, self.space.local_steps, edges)
                assert self.goal.target is not None
                rounds = partial(self.goal.rounds_to, self.goal.target, family.curve, **where)
                space = replace(self.space, edge_rounds=edges)
                designs = certified(costs, self.goal, space, rounds, vary=family.sizes)
                by_deadline = {np.isnan(design.per_second): design.bound for design in designs}
                free.append(by_deadline.get(False, np.nan))
                bounds.append(by_deadline.get(True, free[-1]))
                number = costs.planner.network.clients
                masks = EQUAL_MASKS if sizes.of == "cells" else ""
                for best in designs:
                    way = DEADLINE
                    if not np.isnan(best.per_second):
                        way = ways[0].weighing(energy / (best.per_second * number))
                    alternatives.append(
                        self.priced(
                            family,
                            clients,
                            masks if best.shares is None else FIXED,
                            way,
                            (best.local_steps,),
                            (best.edge_rounds,),
                            (best.shares,),
                            costs,
                        )
                    )
        return Proof(alternatives, float(np.min(bounds)), float(np.min(free)))

    @staticmethod
    def _where(
        costs: SampledRounds, clients: int | None, steps: tuple[int, ...], edges: tuple[int, ...]
    ) -> dict[str, Any]:
        """Arguments [H, E] of a learning curve."""
        return {
            "local_steps": np.array(steps)[:, None],
            "edge_rounds": np.array(edges)[None, :],
            "clients": costs.planner.network.clients if clients is None else clients,
        }

    def finer(self, best: DesignChoice, costs: SampledRounds) -> list[Alternatives]:
        """The design with the best of the tried weights of energy, with weights between them."""
        weight = float(best.way.settings["energy_weight"])
        step = WEIGHTS[1] / WEIGHTS[0]
        tried_at: dict[float, Alternatives] = {}

        def at(weight: float) -> Alternatives:
            if weight not in tried_at:
                tried_at[weight] = self.alone(best, costs, best.way.weighing(weight))
            return tried_at[weight]

        while step > 1 + TOLERANCE:
            step **= 0.5
            tried = (weight / step, weight, weight * step)
            weight = min(tried, key=lambda candidate: float(at(candidate).score[0, 0]))
        return [at(weight)]

    def optimized(self, best: DesignChoice) -> list[Alternatives]:
        """The best design with masks that are optimized in each round, if seconds alone count."""
        if not self.goal.seconds_only or not best.family.sizes:
            return []
        costs = best.family.sample(best.clients, self.draws)
        costs = costs.with_assigner(best.family.planner.assigner.design_sizes.optimized())
        return [self.alone(best, costs, best.way, OPTIMIZED)]

    def traded(self, best: DesignChoice) -> list[Alternatives]:
        """The best design with other weights of energy, for seconds against joules."""
        if not any(way.saves for way in self.ways) or best.masks == OPTIMIZED:
            return []
        costs = best.family.sample(best.clients, self.draws)
        even = best.seconds / (best.joules * costs.planner.network.clients)
        ways = [WEIGHED.weighing(even * weight) for weight in WEIGHTS[1:]]
        return [self.alone(best, costs, way) for way in ways]

    def alone(
        self, best: DesignChoice, costs: SampledRounds, way: Way, masks: str | None = None
    ) -> Alternatives:
        """One design as alternatives, with another uplink or other masks."""
        steps, edges = (best.local_steps,), (best.edge_rounds,)
        shares = best.shares if masks is None else None
        masks = best.masks if masks is None else masks
        return self.priced(best.family, best.clients, masks, way, steps, edges, (shares,), costs)

    def _costs(
        self,
        curve: Curve,
        way: Way,
        costs: SampledRounds,
        steps: tuple[int, ...],
        edges: tuple[int, ...],
        where: Mapping[str, Any],
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Seconds and joules of a round, and m, [H, E] each."""
        goal, uplink, limits = self.goal, way.uplink, None
        shape = len(steps), len(edges)
        if way.deadline:  # with which the run ends at its limit
            assert goal.max_seconds is not None
            limits = goal.max_seconds / self._rounds(curve, costs.largest, shape, where)
            limits = np.asarray(np.where(limits > 0, limits, 1e-9))
            uplink = way.ending(float(limits.max())).uplink
        sampled: Costs = costs.of(uplink, steps, edges, deadline=limits)
        if goal.quantile is None:
            return *sampled.means, sampled.largest
        rounds = self._rounds(curve, sampled.largest, shape, where)
        stream = costs.planner.stream.child("runs")
        with np.errstate(invalid="ignore"):
            seconds, joules = (
                quantiles(rounds, costs_of_rounds, goal.quantile, stream) / rounds
                for costs_of_rounds in (sampled.seconds, sampled.joules)
            )
        return seconds, joules, sampled.largest

    def _rounds(
        self, curve: Curve, largest: FloatArray | float, shape: tuple[int, int], where: Any
    ) -> FloatArray:
        """Rounds [H, E] to the target."""
        assert self.goal.target is not None
        rounds = self.goal.rounds_to(self.goal.target, curve, largest=largest, **where)
        return np.broadcast_to(rounds, shape)


MANY = 8
"""Number of samples of participants for which sizes are chosen; their mean is taken."""


def fixed_shares(
    costs: SampledRounds, uplink: Uplink, local_steps: int, edge_rounds: int
) -> tuple[float, ...]:
    """Shares [cells] with which the slowest cell's mean seconds over the sample are least.

    Args:
        costs: the sample; its assigner divides the model between the cells.
        uplink: how updates cross the air.
        local_steps, edge_rounds: H and E.
    """
    planner = costs.planner
    sizing = planner.assigner.design_sizes.optimized()
    settings = replace(planner.settings, local_steps=local_steps, edge_rounds=edge_rounds)
    links = replace(planner.links, uplink=uplink)
    planner = replace(planner, chosen=sizing, settings=settings, links=links)
    stream = planner.stream.child("round", 0)
    sizes = []
    for who, draws in costs.rounds[:MANY]:
        durations = RoundDurations.of(planner.pricing, draws, who, 0)
        context = round_context(planner.model, stream, stream, durations)
        sizes.append(sizes_of(sizing.submodels(context)))
    mean = np.mean(sizes, axis=0)
    return tuple(float(share) for share in mean / mean.sum())


def _runs(shares: tuple[Shares, ...]) -> Iterator[tuple[slice, Shares]]:
    """Consecutive local steps with the same shares."""
    start = 0
    for h in range(1, len(shares) + 1):
        if h == len(shares) or shares[h] != shares[start]:
            yield slice(start, h), shares[start]
            start = h
