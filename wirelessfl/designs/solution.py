"""A design: a configuration, what it should take, and what its choices bought.

Which of the compared designs is the best, and what its certificate says.

A design as text and as JSON.

A design as a figure: a heat map over local steps and edge rounds, and seconds against joules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from solvers import Solution, Status
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.figures.curves import COLOURS, new_figure, style
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import narrow, rendered
from wirelessfl.config import Config
from wirelessfl.designs.certified import Proof
from wirelessfl.designs.choices import EQUAL, OPTIMIZED, Alternatives, DesignChoice, best_of
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.prediction import Designed, Interval, Prediction
from wirelessfl.designs.reports import Reports
from wirelessfl.designs.search import Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A run that has been designed; ``wirelessfl.run(design.config)`` trains it.

    >>> import wirelessfl
    >>> def scores(steps):
    ...     return [1 - 1 / (1 + number * steps**0.5) for number in range(1, 100)]
    >>> points = [(2, 1), (2, 4), (8, 1), (8, 4)]
    >>> runs = [wirelessfl.Pilot(h, e, 4, range(1, 100), scores(h * e)) for h, e in points]
    >>> curve = wirelessfl.fit_rounds(runs, [0.8, 0.9])
    >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, clients=4, hidden=(8,))
    >>> few = {"local_steps": [2, 4, 8], "edge_rounds": [1, 2]}
    >>> design = wirelessfl.design(config, target=0.9, curve=curve, **few).value
    >>> [bought.chosen for bought in design.reports.bought]
    ['all equal', 'bands', 'H and E', 'all']
    >>> design.save("my-design.toml")  # for: wirelessfl run --config my-design.toml
    PosixPath('my-design.toml')

    Args:
        config: its configuration.
        goal: what it is for.
        choice: what has been chosen.
        predicted: rounds, seconds and joules that it should take.
        trainings: number of pilots.
        wall_seconds: wall-clock seconds of the pilots.
        reports: the other designs that have been compared.
    """

    config: Config
    goal: Goal
    choice: DesignChoice
    predicted: Prediction
    trainings: int
    wall_seconds: float
    reports: Reports

    def __repr__(self) -> str:
        """One line."""
        rounds, seconds, joules, accuracy = self.predicted.numbers
        return (
            f"<Design: {self.choice.title}; {accuracy:g} in {rounds:.4g} rounds, {seconds:.4g} s, "
            f"{joules:.4g} J per client>"
        )

    def save(self, path: str | Path) -> Path:
        """Write the configuration as TOML, for ``wirelessfl run --config``.

        Raises:
            ConfigError: the file cannot be written.
        """
        path = expanded(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.config.to_toml(), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"save is {path}: {error.strerror}. Choose another file.") from error
        return path

    def table(self) -> str:
        """The prediction, what each choice bought, the runner-up and the front, as text."""
        # TOOL-EMPTY

        return design_table(self)

    def plot(self) -> Figure:
        """A heat map over local steps and edge rounds, and seconds against joules."""
        # TOOL-EMPTY

        return design_figure(self)

    def facts(self) -> dict[str, Any]:
        """The design as numbers and names, for JSON."""
        # TOOL-EMPTY

        return design_facts(self)


PROVEN = 1e-4
"""Largest relative gap of an optimal design."""
PREFERRED = 0.01
"""A design that is not preferred must be better by this part, see ``chosen``."""
SLIGHT = 1e-6
"""Relative differences that are not worth telling."""
FITTED = "for the fitted number of rounds, rounded up"
CURVE = "for the fitted learning curve"
STRICT = " with one deadline for all rounds"


def least_of(found: Sequence[Alternatives]) -> DesignChoice | None:
    """The best design; None if none meets the goal."""
    return best_of([choice for each in found if (choice := each.best()) is not None])


def chosen(
    search: Search, found: Sequence[Alternatives], proof: Proof
) -> tuple[DesignChoice | None, list[Alternatives]]:
    """The best design, and those that have been added to find it.

    A design with a bound is preferred if it is nearly as good as one with masks, powers or clocks
    that have only been compared; first of all one with a deadline, which keeps a limit on seconds
    in each round. It is never worse than its bound allows: what is better by more than its gap is
    of a kind that the bound does not cover.
    """
    added: list[Alternatives] = []
    best = least_of(found)
    if best is None:
        return None, added
    if best.shares is not None or best.masks:
        added += search.optimized(best)
    best = least_of([*found, *added])
    assert best is not None
    if not best.way.decides and not best.masks:
        return best, added
    strict = [each for each in proof.designs if each.way.deadline]
    for preferred in (strict, proof.designs):
        known = least_of(preferred)
        if known is not None and known.score <= (1 + PREFERRED) * best.score:
            return known, added
    return best, added


def solution_of(
    made: Design, proof: Proof, least: DesignChoice | None, wall: float, *, sized: bool
) -> Solution[Design]:
    """The design with its certificate, which is one for the fitted learning curve.

    Without mask sizes, all designs over other uplinks have been compared.

    Args:
        made: the design.
        proof: what is proven about designs over OFDMA.
        least: the best design, with or without a bound.
        wall: wall-clock seconds.
        sized: whether mask sizes have been chosen.
    """
    choice, goal = made.choice, made.goal
    strict = choice.way.deadline or math.isnan(proof.free)
    bound = proof.bound if strict else proof.free
    ends = STRICT if strict and goal.max_seconds is not None and goal.weights[1] else ""
    known = any(choice.of(each) for each in proof.designs)
    covered = not choice.way.noise and (known or not (sized or choice.way.decides))
    score, best = choice.score, least_of(proof.designs)
    if math.isnan(bound) or not covered:
        value = score if goal.target is not None else -score
        of = FITTED if goal.target is not None else CURVE
        text = f"{of}; the best of all designs that have been compared"
        if choice.way.noise:
            text += ", with precoders and beamformers of the settings"
        if goal.quantile is not None:
            text += f", by the {goal.statistic} over draws of channels, for which no bound is known"
        if math.isfinite(bound) and best is not None:
            text += (
                f"; with fixed mask sizes, none over ofdma{ends} has less than {bound:.6g}, and "
                f"the best has {best.score:.6g}"
            )
        nan = math.nan
        return Solution(made, value, nan, nan, Status.FEASIBLE, "enumeration", wall, text)
    bound = min(bound, score)
    gap = (score - bound) / score
    text = f"{FITTED}; the bound is that of designs over ofdma{ends}"
    if ends and math.isfinite(proof.free):
        text += f" (with others, none has less than {proof.free:.6g})"
    text += "; others have been compared"
    if least is not None and least.score < score * (1 - SLIGHT):
        less = 100 * (1 - least.score / score)
        text += f", of which one has {less:.2g} % less ({least.title})"
    status = Status.of_gap(gap, PROVEN)
    return Solution(made, score, bound, gap, status, "optimize_rounds", wall, text)


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
