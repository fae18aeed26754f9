"""A design as text and as JSON.

A design as a figure: a heat map over local steps and edge rounds, and seconds against joules.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wirelessfl.base.figures.curves import COLOURS, new_figure, style
from wirelessfl.base.terminal import narrow, rendered
from wirelessfl.designs.choices import EQUAL, OPTIMIZED, DesignChoice
from wirelessfl.designs.expectations import Designed, Interval, Prediction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def design_table(design: Designed) -> str:
    """See ``Design.table``."""
    parts = [chosen_table(design), _predicted(design)]
    if limit := _limit(design):
        parts.append(limit)
    parts += [bought_table(design), _runners_up(design)]
    front = design.reports.front
    if front:
        parts.append(_front(design, front))
    return "\n".join(parts)


def chosen_table(design: Designed) -> str:
    """What has been chosen."""
    choice, way = design.choice, design.choice.way
    rows = [
        ["algorithm", choice.family.algorithm],
        ["H, local steps", str(choice.local_steps)],
        ["E, edge rounds", str(choice.edge_rounds)],
        ["clients per round", "all" if choice.clients is None else str(choice.clients)],
    ]
    if choice.masks:
        rows.append(["masks", choice.mask_text])
    rows.append(["uplink", way.title])
    goal, limits = design.goal.title, design.goal.limits
    title = f"design: {goal if design.goal.target is None else f'least {goal}'}"
    title += f" within {limits}" if limits else ""
    title += "" if design.goal.quantile is None else f", {design.goal.statistic} over draws"
    return f"{title}\n{rendered(['choice', 'value'], rows)}"


def _predicted(design: Designed) -> str:
    found = design.predicted
    rows = [
        ["global rounds", *_interval(found.rounds), ""],
        ["simulated seconds", *_interval(found.seconds), f"{found.design_seconds:.4g}"],
        ["joules per client", *_interval(found.joules), f"{found.design_joules:.4g}"],
        ["validation accuracy", f"{found.accuracy:.4g}", "", ""],
    ]
    text = rendered(["predicted", "other draws", "90 % interval", "draws of the design"], rows)
    pilots = "no pilot" if not design.trainings else f"{design.trainings} pilots"
    wall = f", {design.wall_seconds:.1f} s of wall-clock time" if design.trainings else ""
    return "\n".join([text, *_draws(found), *map(str, found.dominant), f"{pilots}{wall}"])


def _draws(found: Prediction) -> list[str]:
    """Quantiles of the time to the target over draws of channels, in one line."""
    if found.quantiles[0] == found.quantiles[-1]:
        return []
    low, middle, high = (f"{each:.4g}" for each in found.quantiles)
    return [
        f"seconds over draws of channels, {found.rounds.value:.4g} rounds: "
        f"10 % at most {low}, 50 % {middle}, 90 % {high}"
    ]


def _interval(found: Interval) -> list[str]:
    if found.low == found.high:
        return [f"{found.value:.4g}", ""]
    return [f"{found.value:.4g}", f"{found.low:.4g} to {found.high:.4g}"]


def _limit(design: Designed) -> str:
    """Which target limits the most accuracy within a budget; empty if none does."""
    goal = design.goal
    top = goal.most(design.choice.family.curve)
    if goal.target is not None or top is None or -design.choice.score < top * (1 - EQUAL):
        return ""
    return (
        f"{top:.4g} is the highest accuracy of the learning curve: of the designs that reach it "
        f"within\n{goal.limits}, this one needs the least of that. Longer pilots may tell more."
    )


def bought_table(design: Designed) -> str:
    """What bands, masks, and H and E each buy."""
    rows = []
    reference = design.reports.bought[0].choice
    for title, choice in design.reports.bought:
        rows.append([title, *_cells(design, choice, reference)])
    head = ["chosen", *_heads(design), *_parts(design)]
    return f"what each choice bought\n{narrow(head, rows)}"


def _runners_up(design: Designed) -> str:
    others = design.reports.runners_up
    if not others:
        return "no other design meets the goal"
    rows = [[name, *_cells(design, choice, design.choice)] for name, choice in others]
    by = change(design, others[0][1], design.choice)
    head = ["other", *_heads(design), *_parts(design)]
    return f"best with another choice; runner-up: {by}\n{narrow(head, rows)}"


def _heads(design: Designed) -> list[str]:
    names = ["seconds", "J/client", "change"]
    return ["accuracy", *names[:2]] if design.goal.target is None else names


def _cells(
    design: Designed, choice: DesignChoice | None, reference: DesignChoice | None
) -> list[str]:
    if choice is None:
        return ["not met", *[""] * (len(_heads(design)) + len(_parts(design)) - 1)]
    costs = _costs(choice)
    if design.goal.target is None:
        return [f"{-choice.score:.4f}", *costs, *(cell(choice) for cell in _parts(design).values())]
    return [
        *costs,
        change(design, choice, reference),
        *(cell(choice) for cell in _parts(design).values()),
    ]


def _costs(choice: DesignChoice) -> list[str]:
    return [f"{choice.rounds * each:.4g}" for each in (choice.seconds, choice.joules)]


def _parts(design: Designed) -> dict[str, Callable[[DesignChoice], str]]:
    """Columns of what has been chosen; those in which all designs are equal are left out."""
    found = design.reports.found
    columns: dict[str, Callable[[DesignChoice], str]] = {}
    if len({each.family.algorithm for each in found}) > 1:
        columns["algorithm"] = lambda choice: choice.family.algorithm
    columns["H"] = lambda choice: str(choice.local_steps)
    columns["E"] = lambda choice: str(choice.edge_rounds)
    if len(design.reports.search.space.clients) > 1:
        columns["K"] = lambda choice: "all" if choice.clients is None else str(choice.clients)
    if any(each.masks for each in found):
        columns["masks"] = _masks
    columns["uplink"] = lambda choice: choice.way.title
    return columns


def _masks(choice: DesignChoice) -> str:
    if choice.shares is None:
        return choice.masks.replace(OPTIMIZED, "optimized") or "-"
    return f"{100 * min(choice.shares):.2g} to {100 * max(choice.shares):.2g} %"


def change(design: Designed, choice: DesignChoice, reference: DesignChoice | None) -> str:
    """The difference of two designs in the objective: in percent, or of accuracies as it is."""
    if reference is None:
        return ""
    if design.goal.target is None:
        return f"{reference.score - choice.score:+.4f}"
    return f"{100 * (choice.score / reference.score - 1):+.1f} %"


def _front(design: Designed, front: list[DesignChoice]) -> str:
    rows = [
        [*_costs(choice), *(cell(choice) for cell in _parts(design).values())] for choice in front
    ]
    return f"seconds against joules\n{narrow(['seconds', 'J/client', *_parts(design)], rows)}"


def design_facts(design: Designed) -> dict[str, Any]:
    """See ``Design.facts``."""
    found = design.predicted
    steps, edges, scores = design.reports.heat
    return {
        "goal": design.goal.title,
        "limits": design.goal.limits,
        "statistic": design.goal.statistic,
        "chosen": _facts(design.choice),
        "predicted": {
            "rounds": _number(found.rounds.value),
            "seconds": _number(found.seconds.value),
            "joules": _number(found.joules.value),
            "accuracy": found.accuracy,
            "rounds_interval": [_number(end) for end in found.rounds[1:]],
            "seconds_interval": [_number(end) for end in found.seconds[1:]],
            "joules_interval": [_number(end) for end in found.joules[1:]],
            "seconds_quantiles": [_number(each) for each in found.quantiles],
            "dominant_draws": [each._asdict() for each in found.dominant],
            "seconds_by_design_draws": found.design_seconds,
            "joules_by_design_draws": found.design_joules,
        },
        "pilots": design.trainings,
        "pilot_wall_seconds": design.wall_seconds,
        "bought": {
            title: None if choice is None else _facts(choice)
            for title, choice in design.reports.bought
        },
        "runners_up": {name: _facts(choice) for name, choice in design.reports.runners_up},
        "front": [_facts(choice) for choice in design.reports.front],
        "heat": {
            "local_steps": steps,
            "edge_rounds": edges,
            "objective": [[_number(abs(value)) for value in row] for row in scores],
        },
        "config": design.config.to_toml(),
    }


def _facts(choice: DesignChoice) -> dict[str, Any]:
    return {
        "algorithm": choice.family.algorithm,
        "local_steps": choice.local_steps,
        "edge_rounds": choice.edge_rounds,
        "clients_per_round": choice.clients,
        "masks": choice.masks or None,
        "mask_shares": choice.shares,
        "uplink": {"name": choice.way.name, **choice.way.settings},
        "rounds": _number(choice.rounds),
        "seconds": _number(choice.rounds * choice.seconds),
        "joules": _number(choice.rounds * choice.joules),
        "objective": _number(abs(choice.score)),
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


WIDE = 20.0
"""Ratio of the ends of an axis from which it is logarithmic."""


def design_figure(design: Designed) -> Figure:
    """See ``Design.plot``."""
    from matplotlib import rc_context

    front = design.reports.front
    with rc_context(style().rc):
        figure, axes = new_figure(2 if front else 1, height=2.8)
        _heat(figure, axes[0], design)
        if front:
            _front_points(axes[1], design)
    return figure


def _heat(figure: Figure, axes: Axes, design: Designed) -> None:
    steps, edges, scores = design.reports.heat
    least = design.goal.target is None
    values = np.where(np.isfinite(scores), -scores if least else scores, np.nan)
    axes.grid(visible=False)
    shown = axes.imshow(
        values.T, origin="lower", aspect="auto", cmap="viridis" if least else "viridis_r"
    )
    axes.set_xticks(range(len(steps)), [str(number) for number in steps])
    axes.set_yticks(range(len(edges)), [str(number) for number in edges])
    axes.set_xlabel("H, local steps")
    axes.set_ylabel("E, edge rounds")
    choice = design.choice
    axes.plot(
        steps.index(choice.local_steps),
        edges.index(choice.edge_rounds),
        "*",
        color=COLOURS[1],
        markersize=9,
    )
    axes.set_title(f"{choice.family.algorithm}: {design.goal.title}")
    unit = "accuracy" if least else "s" if design.goal.seconds_only else "objective"
    figure.colorbar(shown, ax=axes, label=unit)


def _front_points(axes: Axes, design: Designed) -> None:
    points = [(c.rounds * c.seconds, c.rounds * c.joules) for c in design.reports.front]
    axes.plot(*zip(*points, strict=True), marker="o", color=COLOURS[0])
    choice = design.choice
    axes.plot(
        choice.rounds * choice.seconds, choice.rounds * choice.joules, "*", color=COLOURS[1],
        linestyle="none", label="design", markersize=10,
    )  # fmt: skip
    for scale, values in zip(
        (axes.set_xscale, axes.set_yscale), zip(*points, strict=True), strict=True
    ):
        if max(values) > WIDE * min(values):
            scale("log")
    axes.set_xlabel("simulated seconds")
    axes.set_ylabel("joules per client")
    axes.set_title("seconds against joules")
    axes.legend()
