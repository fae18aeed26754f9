"""What a design is compared with: what its choices bought, the runner-up, and the front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.base.figures.curves import COLOURS, new_figure, style
from wirelessfl.base.terminal import narrow
from wirelessfl.designs.choices import (
    EQUAL_MASKS,
    OPTIMIZED,
    Alternatives,
    DesignChoice,
    Family,
    best_of,
)
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.search import Search
from wirelessfl.designs.ways import EQUAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLAIN = ("", EQUAL_MASKS)
"""Masks that are not chosen."""
WIDE = 20.0
"""Ratio of the ends of an axis from which it is logarithmic."""


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
        alternatives: all designs.
        best: the best one.
    """

    search: Search
    alternatives: Sequence[Alternatives]
    best: DesignChoice

    @property
    def goal(self) -> Goal:
        """What the designs are for."""
        return self.search.goal

    @property
    def family(self) -> Family:
        """The algorithm of the best design."""
        return self.best.family

    @cached_property
    def bought(self) -> list[Bought]:
        """What each choice bought, with the algorithm of the best design."""
        config, space = self.family.config, self.search.space
        steps = _nearest(space.local_steps, config.training.local_steps)
        edges = _nearest(self.family.edges(space), config.training.edge_rounds or 1)
        relatives = [designs for designs in self.alternatives if designs.family is self.family]
        first = space.clients[-1]
        equal = EQUAL if any(a.way.title == EQUAL for a in relatives) else relatives[0].way.title
        fixed = (
            lambda c: (c.local_steps, c.edge_rounds) == (steps, edges),
            lambda c: c.way.title == equal,
            lambda c: c.masks in PLAIN,
            lambda c: c.clients == first,
        )
        rows = [("all equal", ()), ("bands", (1,))]
        if self.best.masks and any(a.masks not in PLAIN for a in relatives):
            rows.append(("masks", (2,)))
        rows.append(("H and E", (0,)))
        if len(space.clients) > 1:
            rows.append(("clients per round", (3,)))
        choices = [choice for designs in relatives for choice in designs.choices()]
        bought: list[Bought] = []
        for title, free in rows:
            tests = [test for place, test in enumerate(fixed) if place not in free]
            bought.append(Bought(title, _best(choices, tests)))
        return [*bought, Bought("all", self.best)]

    @cached_property
    def runners_up(self) -> list[tuple[str, DesignChoice]]:
        """The best designs that differ in one thing from the best one, with that thing."""
        best = self.best
        tests: dict[str, Callable[[DesignChoice], bool]] = {
            "algorithm": lambda c: c.family is not best.family,
            "uplink": lambda c: c.family is best.family and _kind(c) != _kind(best),
            "H or E": lambda c: (
                c.family is best.family
                and (c.local_steps, c.edge_rounds) != (best.local_steps, best.edge_rounds)
            ),
            "masks": lambda c: c.family is best.family and c.masks != best.masks,
            "clients": lambda c: c.family is best.family and c.clients != best.clients,
        }
        choices = [choice for designs in self.alternatives for choice in designs.choices()]
        rivals = [(name, _best(choices, [test])) for name, test in tests.items()]
        kept = [(name, choice) for name, choice in rivals if choice is not None]
        return sorted(kept, key=lambda entry: entry[1].order)

    @cached_property
    def heat(self) -> tuple[tuple[int, ...], tuple[int, ...], FloatArray]:
        """H, E, and the best score [H, E] of the algorithm; inf where the goal is not met."""
        space, family = self.search.space, self.family
        edges = family.edges(space)
        shape = len(space.local_steps), len(edges)
        relatives = [designs for designs in self.alternatives if designs.family is family]
        least = np.min(
            [designs.score for designs in relatives if designs.score.shape == shape], axis=0
        )
        for designs in relatives:
            if designs.score.shape == (1, 1):
                place = (
                    space.local_steps.index(designs.local_steps[0]),
                    edges.index(designs.edge_rounds[0]),
                )
                least[place] = min(least[place], designs.score[0, 0])
        return space.local_steps, edges, least

    @cached_property
    def front(self) -> list[DesignChoice]:
        """Designs of which no other takes both fewer seconds and fewer joules, by seconds.

        Empty without a target.
        """
        if self.goal.target is None:
            return []
        points = []
        for designs in [*self.alternatives, *self.search.traded(self.best)]:
            with np.errstate(invalid="ignore"):
                time, energy = designs.rounds * designs.seconds, designs.rounds * designs.joules
            for h, e in np.argwhere(np.isfinite(time) & np.isfinite(energy)):
                points.append((float(time[h, e]), float(energy[h, e]), designs, int(h), int(e)))
        points.sort(key=lambda point: point[:2])
        front: list[DesignChoice] = []
        least = np.inf
        for _, joules, designs, h, e in points:
            if joules < least * (1 - 1e-6):
                front.append(designs.choice(h, e))
                least = joules
        return front

    def bought_table(self) -> str:
        """What bands, masks, and H and E each buy, as text."""
        reference = self.bought[0].choice
        rows = [[title, *self._cells(choice, reference)] for title, choice in self.bought]
        return f"what each choice bought\n{narrow(self._head('chosen'), rows)}"

    def runners_up_table(self) -> str:
        """The best designs with another choice, as text."""
        if not self.runners_up:
            return "no other design meets the goal"
        rows = [[name, *self._cells(choice, self.best)] for name, choice in self.runners_up]
        change = self._change(self.runners_up[0][1], self.best)
        title = f"best with another choice; runner-up: {change}"
        return f"{title}\n{narrow(self._head('other'), rows)}"

    def front_table(self) -> str:
        """Seconds against joules, as text."""
        columns = self._columns
        rows = [
            [*_costs(choice), *(cell(choice) for cell in columns.values())] for choice in self.front
        ]
        return f"seconds against joules\n{narrow(['seconds', 'J/client', *columns], rows)}"

    def _head(self, first: str) -> list[str]:
        names = ["seconds", "J/client", "change"]
        names = ["accuracy", *names[:2]] if self.goal.target is None else names
        return [first, *names, *self._columns]

    def _cells(self, choice: DesignChoice | None, reference: DesignChoice | None) -> list[str]:
        if choice is None:
            return ["not met", *[""] * (2 + len(self._columns))]
        if self.goal.target is None:
            costs = [f"{-choice.score:.4f}", *_costs(choice)]
        else:
            costs = [*_costs(choice), self._change(choice, reference)]
        return [*costs, *(cell(choice) for cell in self._columns.values())]

    @cached_property
    def _columns(self) -> dict[str, Callable[[DesignChoice], str]]:
        """Columns of what has been chosen; those in which all designs are equal are left out."""
        columns: dict[str, Callable[[DesignChoice], str]] = {}
        if len({designs.family.algorithm for designs in self.alternatives}) > 1:
            columns["algorithm"] = lambda choice: choice.family.algorithm
        columns["H"] = lambda choice: str(choice.local_steps)
        columns["E"] = lambda choice: str(choice.edge_rounds)
        if len(self.search.space.clients) > 1:
            columns["K"] = lambda choice: "all" if choice.clients is None else str(choice.clients)
        if any(designs.masks for designs in self.alternatives):
            columns["masks"] = _masks
        columns["uplink"] = lambda choice: choice.way.title
        return columns

    def _change(self, choice: DesignChoice, reference: DesignChoice | None) -> str:
        """The difference of two designs in the objective: in percent, or of accuracies as it is."""
        if reference is None:
            return ""
        if self.goal.target is None:
            return f"{reference.score - choice.score:+.4f}"
        return f"{100 * (choice.score / reference.score - 1):+.1f} %"

    def plot(self) -> Figure:
        """A heat map over local steps and edge rounds, and seconds against joules."""
        from matplotlib import rc_context

        with rc_context(style().rc):
            figure, axes = new_figure(2 if self.front else 1, height=2.8)
            self._draw_heat(figure, axes[0])
            if self.front:
                self._draw_front(axes[1])
        return figure

    def _draw_heat(self, figure: Figure, axes: Axes) -> None:
        steps, edges, scores = self.heat
        accuracy = self.goal.target is None
        values = np.where(np.isfinite(scores), -scores if accuracy else scores, np.nan)
        axes.grid(visible=False)
        image = axes.imshow(
            values.T, origin="lower", aspect="auto", cmap="viridis" if accuracy else "viridis_r"
        )
        axes.set_xticks(range(len(steps)), [str(number) for number in steps])
        axes.set_yticks(range(len(edges)), [str(number) for number in edges])
        axes.set_xlabel("H, local steps")
        axes.set_ylabel("E, edge rounds")
        place = steps.index(self.best.local_steps), edges.index(self.best.edge_rounds)
        axes.plot(*place, "*", color=COLOURS[1], markersize=9)
        axes.set_title(f"{self.family.algorithm}: {self.goal.title}")
        unit = "accuracy" if accuracy else "s" if self.goal.seconds_only else "objective"
        figure.colorbar(image, ax=axes, label=unit)

    def _draw_front(self, axes: Axes) -> None:
        points = [(c.rounds * c.seconds, c.rounds * c.joules) for c in self.front]
        columns = list(zip(*points, strict=True))
        axes.plot(*columns, marker="o", color=COLOURS[0])
        best = self.best
        axes.plot(
            best.rounds * best.seconds, best.rounds * best.joules, "*", color=COLOURS[1],
            linestyle="none", label="design", markersize=10,
        )  # fmt: skip
        for scale, values in zip((axes.set_xscale, axes.set_yscale), columns, strict=True):
            if max(values) > WIDE * min(values):
                scale("log")
        axes.set_xlabel("simulated seconds")
        axes.set_ylabel("joules per client")
        axes.set_title("seconds against joules")
        axes.legend()


def _costs(choice: DesignChoice) -> list[str]:
    return [f"{choice.rounds * cost:.4g}" for cost in (choice.seconds, choice.joules)]


def _masks(choice: DesignChoice) -> str:
    if choice.shares is None:
        return choice.masks.replace(OPTIMIZED, "optimized") or "-"
    return f"{100 * min(choice.shares):.2g} to {100 * max(choice.shares):.2g} %"


def _kind(choice: DesignChoice) -> tuple[str, bool, bool, str]:
    """The uplink without its numbers."""
    way = choice.way
    return way.name, way.saves, way.deadline, "" if way.saves or way.deadline else way.title


def _best(
    choices: Sequence[DesignChoice], tests: Sequence[Callable[[DesignChoice], bool]]
) -> DesignChoice | None:
    return best_of([choice for choice in choices if all(test(choice) for test in tests)])


def _nearest(numbers: Sequence[int], configured: int) -> int:
    return min(numbers, key=lambda number: (abs(number - configured), number))
