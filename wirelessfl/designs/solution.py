"""A design: a configuration, what it should take, what its choices bought, and its certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvers import Solution, Status
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import rendered
from wirelessfl.config import Config
from wirelessfl.designs.certified import Proof
from wirelessfl.designs.choices import EQUAL, OPTIMIZED, Alternatives, DesignChoice, best_of
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.prediction import Interval, Prediction
from wirelessfl.designs.reports import Reports
from wirelessfl.designs.search import Search

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGER = 2.0
"""Limit on the rounds of a designed run, relative to the predicted ones."""
OF_MASKS = ("mask_sizes", "mask_shares", "size_cap", "mask_overlap")
PROVEN = 1e-4
"""Largest relative gap of an optimal design."""
PREFERRED = 0.01
"""A design that is not preferred must be better by this part, see ``chosen``."""
SLIGHT = 1e-6
"""Relative differences that are not worth telling."""
FITTED = "for the fitted number of rounds, rounded up"
CURVE = "for the fitted learning curve"
STRICT = " with one deadline for all rounds"


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
        reports = self.reports
        parts = [self.choice_table(), self._prediction_table(), self._limit()]
        parts += [reports.bought_table(), reports.runners_up_table()]
        parts += [reports.front_table()] if reports.front else []
        return "\n".join(part for part in parts if part)

    def choice_table(self) -> str:
        """What has been chosen, as text."""
        choice, goal = self.choice, self.goal
        rows = [
            ["algorithm", choice.family.algorithm],
            ["H, local steps", str(choice.local_steps)],
            ["E, edge rounds", str(choice.edge_rounds)],
            ["clients per round", "all" if choice.clients is None else str(choice.clients)],
        ]
        if choice.masks:
            rows.append(["masks", choice.mask_text])
        rows.append(["uplink", choice.way.title])
        title = f"design: {goal.title if goal.target is None else f'least {goal.title}'}"
        title += f" within {goal.limits}" if goal.limits else ""
        title += "" if goal.quantile is None else f", {goal.statistic} over draws"
        return f"{title}\n{rendered(['choice', 'value'], rows)}"

    def _prediction_table(self) -> str:
        prediction = self.predicted
        seconds, joules = prediction.design_seconds, prediction.design_joules
        rows = [
            ["global rounds", *_cells(prediction.rounds), ""],
            ["simulated seconds", *_cells(prediction.seconds), f"{seconds:.4g}"],
            ["joules per client", *_cells(prediction.joules), f"{joules:.4g}"],
            ["validation accuracy", f"{prediction.accuracy:.4g}", "", ""],
        ]
        text = rendered(["predicted", "other draws", "90 % interval", "draws of the design"], rows)
        pilots = "no pilot" if not self.trainings else f"{self.trainings} pilots"
        wall = f", {self.wall_seconds:.1f} s of wall-clock time" if self.trainings else ""
        draws = _quantiles(prediction)
        return "\n".join([text, *draws, *map(str, prediction.dominant), f"{pilots}{wall}"])

    def _limit(self) -> str:
        """Which target limits the most accuracy within a budget; empty if none does."""
        goal = self.goal
        top = goal.most(self.choice.family.curve)
        if goal.target is not None or top is None or -self.choice.score < top * (1 - EQUAL):
            return ""
        return (
            f"{top:.4g} is the highest accuracy of the learning curve: of the designs that reach "
            f"it within\n{goal.limits}, this one needs the least of that. Longer pilots may tell "
            "more."
        )

    def plot(self) -> Figure:
        """A heat map over local steps and edge rounds, and seconds against joules."""
        return self.reports.plot()

    def facts(self) -> dict[str, Any]:
        """The design as numbers and names, for JSON."""
        predicted, reports = self.predicted, self.reports
        steps, edges, scores = reports.heat
        bought = {title: None if c is None else _facts(c) for title, c in reports.bought}
        return {
            "goal": self.goal.title,
            "limits": self.goal.limits,
            "statistic": self.goal.statistic,
            "chosen": _facts(self.choice),
            "predicted": {
                "rounds": _number(predicted.rounds.value),
                "seconds": _number(predicted.seconds.value),
                "joules": _number(predicted.joules.value),
                "accuracy": predicted.accuracy,
                "rounds_interval": [_number(end) for end in predicted.rounds[1:]],
                "seconds_interval": [_number(end) for end in predicted.seconds[1:]],
                "joules_interval": [_number(end) for end in predicted.joules[1:]],
                "seconds_quantiles": [_number(seconds) for seconds in predicted.quantiles],
                "dominant_draws": [draw._asdict() for draw in predicted.dominant],
                "seconds_by_design_draws": predicted.design_seconds,
                "joules_by_design_draws": predicted.design_joules,
            },
            "pilots": self.trainings,
            "pilot_wall_seconds": self.wall_seconds,
            "bought": bought,
            "runners_up": {name: _facts(choice) for name, choice in reports.runners_up},
            "front": [_facts(choice) for choice in reports.front],
            "heat": {
                "local_steps": steps,
                "edge_rounds": edges,
                "objective": [[_number(abs(value)) for value in row] for row in scores],
            },
            "config": self.config.to_toml(),
        }


def least_of(alternatives: Sequence[Alternatives]) -> DesignChoice | None:
    """The best design; None if none meets the goal."""
    return best_of([choice for designs in alternatives if (choice := designs.best()) is not None])


def chosen(
    search: Search, alternatives: Sequence[Alternatives], proof: Proof
) -> tuple[DesignChoice | None, list[Alternatives]]:
    """The best design, and those that have been added to find it.

    A design with a bound is preferred if it is nearly as good as one with masks, powers or clocks
    that have only been compared; first of all one with a deadline, which keeps a limit on seconds
    in each round. It is never worse than its bound allows: what is better by more than its gap is
    of a kind that the bound does not cover.
    """
    added: list[Alternatives] = []
    best = least_of(alternatives)
    if best is None:
        return None, added
    if best.shares is not None or best.masks:
        added += search.optimized(best)
    best = least_of([*alternatives, *added])
    assert best is not None
    if not best.way.decides and not best.masks:
        return best, added
    strict = [designs for designs in proof.designs if designs.way.deadline]
    for preferred in (strict, proof.designs):
        certain = least_of(preferred)
        if certain is not None and certain.score <= (1 + PREFERRED) * best.score:
            return certain, added
    return best, added


def solution_of(
    design: Design, proof: Proof, least: DesignChoice | None, wall: float, *, sized: bool
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
    choice, goal = design.choice, design.goal
    strict = choice.way.deadline or math.isnan(proof.free)
    bound = proof.bound if strict else proof.free
    ends = STRICT if strict and goal.max_seconds is not None and goal.weights[1] else ""
    proven = any(choice.of(designs) for designs in proof.designs)
    covered = not choice.way.noise and (proven or not (sized or choice.way.decides))
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
        return Solution(design, value, nan, nan, Status.FEASIBLE, "enumeration", wall, text)
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
    return Solution(design, score, bound, gap, status, "optimize_rounds", wall, text)


def designed_config(best: DesignChoice, goal: Goal, predicted: Prediction) -> Config:
    """The settings of the algorithm with what is designed, and the prediction."""
    flags: dict[str, Any] = {"uplink": best.way.name, **best.way.settings}
    flags |= {"local_steps": best.local_steps, "predicted": predicted.numbers}
    if best.family.planner.hierarchical:
        flags["edge_rounds"] = best.edge_rounds
    if best.clients is not None:
        flags["clients_per_round"] = best.clients
    most = predicted.rounds.high if math.isfinite(predicted.rounds.high) else 0.0
    if goal.target is not None:
        flags |= {"target": goal.target, "stop_at_target": True}
        flags["rounds"] = math.ceil(LONGER * max(predicted.rounds.value, most))
    elif goal.max_seconds is not None:
        flags["max_seconds"] = goal.max_seconds
        flags["rounds"] = math.ceil(LONGER * predicted.rounds.value)
    if goal.target is None and goal.max_client_joules is not None:
        flags["rounds"] = max(1, math.floor(predicted.rounds.value))
    if best.masks == OPTIMIZED:
        flags |= {**dict.fromkeys(OF_MASKS), "mask_sizes": "optimized"}
    elif best.shares is not None:
        flags |= {**dict.fromkeys(OF_MASKS), "mask_sizes": "fixed", "mask_shares": best.shares}
    return best.family.config.changed(**flags)


def _quantiles(prediction: Prediction) -> list[str]:
    """Quantiles of the time to the target over draws of channels, in one line."""
    if prediction.quantiles[0] == prediction.quantiles[-1]:
        return []
    low, middle, high = (f"{seconds:.4g}" for seconds in prediction.quantiles)
    return [
        f"seconds over draws of channels, {prediction.rounds.value:.4g} rounds: "
        f"10 % at most {low}, 50 % {middle}, 90 % {high}"
    ]


def _cells(interval: Interval) -> list[str]:
    """A prediction and the ends of its interval."""
    if interval.low == interval.high:
        return [f"{interval.value:.4g}", ""]
    return [f"{interval.value:.4g}", f"{interval.low:.4g} to {interval.high:.4g}"]


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
