"""A design: a configuration, what it should take, and what its choices bought.

Which of the compared designs is the best, and what its certificate says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvers import Solution, Status
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.config import Config
from wirelessfl.designs.certified import Proof
from wirelessfl.designs.choices import Alternatives, DesignChoice, best_of
from wirelessfl.designs.expectations import Prediction
from wirelessfl.designs.goals import Goal
from wirelessfl.designs.reports import Reports
from wirelessfl.designs.search import Search

if TYPE_CHECKING:
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
        from wirelessfl.designs.tables import design_table

        return design_table(self)

    def plot(self) -> Figure:
        """A heat map over local steps and edge rounds, and seconds against joules."""
        from wirelessfl.designs.tables import design_figure

        return design_figure(self)

    def facts(self) -> dict[str, Any]:
        """The design as numbers and names, for JSON."""
        from wirelessfl.designs.tables import design_facts

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
