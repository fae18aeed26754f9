"""What a design is compared with: what its choices bought, the runner-up, and the front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.designs.choices import EQUAL_MASKS, Alternatives, DesignChoice, best_of
from wirelessfl.designs.search import Search
from wirelessfl.designs.ways import EQUAL

PLAIN = ("", EQUAL_MASKS)
"""Masks that are not chosen."""


class Bought(NamedTuple):
    """The best design if only some things are chosen.

    Args:
        chosen: what is chosen; the rest is equal, or as in the settings.
        choice: the design; None if none meets the goal.
    """

    chosen: str
    choice: DesignChoice | None


@dataclass(frozen=True, eq=False)
class Reports:
    """The designs that have been compared.

    Args:
        search: the search.
        found: all designs.
        best: the best one.
    """

    search: Search
    found: Sequence[Alternatives]
    best: DesignChoice

    @cached_property
    def bought(self) -> list[Bought]:
        """What each choice bought, with the algorithm of the best design."""
        config = self.best.family.config
        steps = _nearest(self.search.space.local_steps, config.training.local_steps)
        edges = _nearest(
            self.best.family.edges(self.search.space), config.training.edge_rounds or 1
        )
        own = [each for each in self.found if each.family is self.best.family]
        first = self.search.space.clients[-1]
        equal = EQUAL if any(each.way.title == EQUAL for each in own) else own[0].way.title
        fixed = (
            lambda c: (c.local_steps, c.edge_rounds) == (steps, edges),
            lambda c: c.way.title == equal,
            lambda c: c.masks in PLAIN,
            lambda c: c.clients == first,
        )
        rows = [("all equal", ()), ("bands", (1,))]
        if self.best.masks and any(each.masks not in PLAIN for each in own):
            rows.append(("masks", (2,)))
        rows.append(("H and E", (0,)))
        if len(self.search.space.clients) > 1:
            rows.append(("clients per round", (3,)))
        choices = [choice for each in own for choice in each.choices()]
        found: list[Bought] = []
        for title, free in rows:
            tests = [test for place, test in enumerate(fixed) if place not in free]
            found.append(Bought(title, _best(choices, tests)))
        return [*found, Bought("all", self.best)]

    @cached_property
    def runners_up(self) -> list[tuple[str, DesignChoice]]:
        """The best designs that differ in one thing from the best one, with that thing."""
        best = self.best
        others: dict[str, Callable[[DesignChoice], bool]] = {
            "algorithm": lambda c: c.family is not best.family,
            "uplink": lambda c: c.family is best.family and _kind(c) != _kind(best),
            "H or E": lambda c: (
                c.family is best.family
                and (c.local_steps, c.edge_rounds) != (best.local_steps, best.edge_rounds)
            ),
            "masks": lambda c: c.family is best.family and c.masks != best.masks,
            "clients": lambda c: c.family is best.family and c.clients != best.clients,
        }
        choices = [choice for each in self.found for choice in each.choices()]
        found = [(name, _best(choices, [test])) for name, test in others.items()]
        kept = [(name, choice) for name, choice in found if choice is not None]
        return sorted(kept, key=lambda entry: entry[1].order)

    @cached_property
    def heat(self) -> tuple[tuple[int, ...], tuple[int, ...], FloatArray]:
        """H, E, and the best score [H, E] of the algorithm; inf where the goal is not met."""
        space, family = self.search.space, self.best.family
        shape = len(space.local_steps), len(family.edges(space))
        own = [e.score for e in self.found if e.family is family and e.score.shape == shape]
        least = np.min(own, axis=0)
        for each in self.found:
            if each.family is family and each.score.shape == (1, 1):
                place = (
                    space.local_steps.index(each.local_steps[0]),
                    family.edges(space).index(each.edge_rounds[0]),
                )
                least[place] = min(least[place], each.score[0, 0])
        return space.local_steps, family.edges(space), least

    @cached_property
    def front(self) -> list[DesignChoice]:
        """Designs of which no other takes both fewer seconds and fewer joules, by seconds.

        Empty without a target.
        """
        if self.search.goal.target is None:
            return []
        every = [*self.found, *self.search.traded(self.best)]
        points = []
        for each in every:
            with np.errstate(invalid="ignore"):
                time, energy = each.rounds * each.seconds, each.rounds * each.joules
            for h, e in np.argwhere(np.isfinite(time) & np.isfinite(energy)):
                points.append((float(time[h, e]), float(energy[h, e]), each, int(h), int(e)))
        points.sort(key=lambda point: point[:2])
        front: list[DesignChoice] = []
        least = np.inf
        for _, spent, each, h, e in points:
            if spent < least * (1 - 1e-6):
                front.append(each.choice(h, e))
                least = spent
        return front


def _kind(choice: DesignChoice) -> tuple[str, bool, bool, str]:
    """The uplink without its numbers."""
    way = choice.way
    return way.name, way.saves, way.deadline, "" if way.saves or way.deadline else way.title


def _best(
    choices: Sequence[DesignChoice], tests: Sequence[Callable[[DesignChoice], bool]]
) -> DesignChoice | None:
    return best_of([choice for choice in choices if all(test(choice) for test in tests)])


def _nearest(numbers: Sequence[int], wanted: int) -> int:
    return min(numbers, key=lambda number: (abs(number - wanted), number))
