"""Compares designs whose clients train submodels of chosen widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wirelessfl.codesign.design_choices import Alternatives, DesignChoice, Family, Shares, best_of
from wirelessfl.codesign.fixed_widths import (
    BY_CLIENT,
    EQUAL_WIDTHS,
    FULL,
    WHOLE,
    client_widths,
    common_widths,
    groups_of,
    moves,
)
from wirelessfl.codesign.sampled_rounds import SampledRounds
from wirelessfl.codesign.ways import Way

FEW = 4
"""Draws with which widths are improved where powers and clocks are decided, which takes longer."""
PASSES = 3
"""Largest number of times that the widths of all groups of clients are moved."""
GAIN = 1e-4
"""Least improvement for which widths are moved."""


@dataclass(frozen=True, eq=False)
class WidthSearch:
    """Full models, common widths, widths of equal durations, and moves from the best of these.

    Args:
        family: algorithm and learning curve.
        clients: number of clients per round; None for all.
        costs: a sample of rounds.
        local_steps: H.
        ways: uplinks.
        made: returns the designs with an uplink and widths, one for each H.
        weighed: returns the same with powers and clocks.
        alone: returns a single design with other widths.
    """

    family: Family
    clients: int | None
    costs: SampledRounds
    local_steps: tuple[int, ...]
    ways: Sequence[Way]
    made: Callable[..., Alternatives]
    weighed: Callable[..., list[Alternatives]]
    alone: Callable[..., Alternatives]

    def alternatives(self) -> list[Alternatives]:
        """The designs.

        Raises:
            ConfigError: a round has no price.
        """
        found: list[Alternatives] = []
        for widths in common_widths(self.costs, self.family.limits):
            title = FULL if widths == WHOLE else EQUAL_WIDTHS
            # Over the air, uploads take as long as those of full models.
            ways = [way for way in self.ways if title == FULL or not way.noise]
            found += [self._at_all_steps(title, way, widths) for way in ways]
        found += self._of_equal_durations()
        full = [each for each in found if each.masks == FULL]
        found += self._weighed(FULL, (WHOLE,) * len(self.local_steps), full)
        narrow = [each for each in found if each.masks != FULL and each.best() is not None]
        if narrow:
            best = min(narrow, key=lambda each: float(each.score.min()))
            found += self._weighed(best.masks, best.shares, full)
        return found + self._improved(found)

    def _of_equal_durations(self) -> list[Alternatives]:
        """Widths by client, with which all clients take about as long."""
        found = []
        for name in dict.fromkeys(way.name for way in self.ways if not way.noise):
            plain, limits = Way(name, name).uplink, self.family.limits
            each = [client_widths(self.costs, plain, h, limits) for h in self.local_steps]
            for at in range(max(map(len, each))):
                # As many for each H: some are repeated.
                some = tuple(own[min(at, len(own) - 1)] if own else WHOLE for own in each)
                for way in (way for way in self.ways if way.name == name):
                    found.append(self._made(BY_CLIENT, way, some))
        return found

    def _improved(self, found: Sequence[Alternatives]) -> list[Alternatives]:
        """The best design with widths that are better by moves of groups of clients."""
        best = best_of([choice for each in found if (choice := each.best()) is not None])
        if best is None or best.way.noise:
            return []
        first = best.shares or WHOLE
        if len(first) == 1:
            first *= self.costs.planner.network.clients
        own = self._moved(best, first)
        if own == first:
            return []
        return [self._at_all_steps(BY_CLIENT, way, own) for way in self._ways_with(best.way)]

    def _moved(self, best: DesignChoice, own: tuple[float, ...]) -> tuple[float, ...]:
        """Widths [clients] that no move of a group improves, or those after the last pass."""
        costs = self.costs.first(FEW) if best.way.decides else self.costs
        plain = Way(best.way.name, best.way.name).uplink
        groups = groups_of(costs, plain, best.local_steps)

        def score(widths: tuple[float, ...]) -> float:
            moved = replace(best, shares=widths)
            return float(self.alone(moved, costs, best.way).score[0, 0])

        least = score(own)
        for _ in range(PASSES):
            before = own
            for group in groups:
                for widths in moves(costs, own, [group], self.family.limits):
                    value = score(widths)
                    if value < least - GAIN * abs(least):
                        own, least = widths, value
            if own == before:
                break
        return own

    def _ways_with(self, best: Way) -> list[Way]:
        """All uplinks without errors, and that of the best design."""
        ways = [way for way in self.ways if not (way.noise or way == best)]
        # A deadline of rounds is that of each design.
        return ways if best.deadline else [*ways, best]

    def _at_all_steps(self, title: str, way: Way, widths: tuple[float, ...]) -> Alternatives:
        return self._made(title, way, (widths,) * len(self.local_steps))

    def _made(self, title: str, way: Way, shares: tuple[Shares, ...]) -> Alternatives:
        return self.made(self.family, self.clients, title, way, shares, self.costs)

    def _weighed(
        self, title: str, shares: tuple[Shares, ...], full: Sequence[Alternatives]
    ) -> list[Alternatives]:
        return self.weighed(self.family, self.clients, title, shares, self.costs, full)
