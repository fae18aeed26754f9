"""A design as text and as JSON."""

from __future__ import annotations

import math
from typing import Any

from wirelessfl.codesign.predicted import Designed, Interval
from wirelessfl.codesign.search import Choice
from wirelessfl.results.text import rendered


def design_table(design: Designed) -> str:
    """See ``Design.table``."""
    parts = [chosen_table(design), _predicted(design), bought_table(design), _runners_up(design)]
    front = design.reports.front
    if front:
        parts.append(_front(front))
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
    return f"{text}\n{pilots}{wall}"


def _interval(found: Interval) -> list[str]:
    if found.low == found.high:
        return [f"{found.value:.4g}", ""]
    return [f"{found.value:.4g}", f"{found.low:.4g} to {found.high:.4g}"]


def bought_table(design: Designed) -> str:
    """What bands, masks, and H and E each buy."""
    rows = []
    reference = design.reports.bought[0].choice
    for title, choice in design.reports.bought:
        rows.append([title, *_cells(design, choice, reference)])
    head = ["chosen", *_heads(design), "change", "design"]
    return f"what each choice bought\n{rendered(head, rows)}"


def _runners_up(design: Designed) -> str:
    rows = [
        [name, *_cells(design, choice, design.choice)] for name, choice in design.reports.runners_up
    ]
    if not rows:
        return "no other design meets the goal"
    head = ["best with another", *_heads(design), "change", "design"]
    return f"runner-up: {rows[0][-2]}\n{rendered(head, rows)}"


def _heads(design: Designed) -> list[str]:
    names = ["seconds", "J per client"]
    return ["accuracy", *names] if design.goal.target is None else names


def _cells(design: Designed, choice: Choice | None, reference: Choice | None) -> list[str]:
    if choice is None:
        return ["not met", *[""] * len(_heads(design)), ""]
    numbers = [choice.rounds * choice.seconds, choice.rounds * choice.joules]
    if design.goal.target is None:
        numbers.insert(0, -choice.score)
    return [*(f"{n:.4g}" for n in numbers), change(design, choice, reference), choice.title]


def change(design: Designed, choice: Choice, reference: Choice | None) -> str:
    """The difference of two designs in the objective: in percent, or of accuracies as it is."""
    if reference is None:
        return ""
    if design.goal.target is None:
        return f"{reference.score - choice.score:+.4f}"
    return f"{100 * (choice.score / reference.score - 1):+.1f} %"


def _front(front: list[Choice]) -> str:
    rows = [[f"{c.rounds * c.seconds:.4g}", f"{c.rounds * c.joules:.4g}", c.title] for c in front]
    return f"seconds against joules\n{rendered(['seconds', 'J per client', 'design'], rows)}"


def design_facts(design: Designed) -> dict[str, Any]:
    """See ``Design.facts``."""
    found = design.predicted
    steps, edges, scores = design.reports.heat
    return {
        "goal": design.goal.title,
        "limits": design.goal.limits,
        "chosen": _facts(design.choice),
        "predicted": {
            "rounds": _number(found.rounds.value),
            "seconds": _number(found.seconds.value),
            "joules": _number(found.joules.value),
            "accuracy": found.accuracy,
            "rounds_interval": [_number(end) for end in found.rounds[1:]],
            "seconds_interval": [_number(end) for end in found.seconds[1:]],
            "joules_interval": [_number(end) for end in found.joules[1:]],
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


def _facts(choice: Choice) -> dict[str, Any]:
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
