"""What would decide the undecided claims: more seeds, as far as the stored runs tell.

With more seeds the interval of an effect becomes narrower around its mean. If mean and standard
deviation over the seeds stay what they are, the smallest number of seeds follows with which all
effects of a claim show the same outcome, and what the further runs take.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from experiments.claims import TITLES, Assessed
from wirelessfl.results.costs import markdown
from wirelessfl.results.intervals import HIDDEN, Effect
from wirelessfl.results.outcomes import DECIDED, Outcome, Signs, outcome, outcome_of

MOST_SEEDS = 1000
"""Numbers of seeds up to which an outcome is looked for."""


@dataclass(frozen=True)
class Need:
    """What would decide an undecided claim.

    Args:
        id: id of the claim.
        have: number of seeds of its effect with the fewest.
        seeds: number of seeds with which it is decided; None if no number decides it.
        outcome: its outcome then.
        hours: hours of computing of the further seeds, as long as the stored ones took.
        reason: why no number of seeds decides it.
    """

    id: str
    have: int
    seeds: int | None
    outcome: Outcome | None
    hours: float
    reason: str = ""


def with_seeds(effect: Effect, count: int) -> Effect:
    """The effect that ``count`` seeds with the same mean and standard deviation would have."""
    if count <= len(effect.values):
        return effect
    floor = HIDDEN if effect.at_least or effect.at_most else 0.0
    deviation = max(statistics.stdev(effect.values), effect.rounding, floor)
    pairs = count // 2
    step = deviation * math.sqrt((count - 1) / (2 * pairs))
    middle = (effect.mean,) * (count - 2 * pairs)
    values = (effect.mean - step,) * pairs + middle + (effect.mean + step,) * pairs
    return replace(effect, values=values, rounding=0.0)


def need(claim: str, effects: Sequence[Effect | Signs], seconds: float) -> Need:
    """What would decide a claim with these effects.

    Args:
        claim: its id.
        effects: its effects; their outcome is ``undecided``.
        seconds: what a further seed of all its runs takes.
    """
    drawn = [effect for effect in effects if isinstance(effect, Effect)]
    have = min((len(effect.values) for effect in drawn), default=0)
    if len(drawn) < len(effects):
        return Need(claim, have, None, None, 0.0, "more settings, not more seeds")
    if any(effect.unknown or not effect.values for effect in drawn):
        return Need(claim, have, None, None, 0.0, "longer runs: a seed does not reach the target")

    def with_count(count: int) -> Outcome:
        return outcome([with_seeds(effect, count) for effect in drawn])

    if with_count(MOST_SEEDS) in DECIDED:  # what an interval decides, a narrower one decides too
        counts = range(have + 1, MOST_SEEDS)
        count = have + 1 + bisect_left(counts, True, key=lambda n: with_count(n) in DECIDED)
        return Need(claim, have, count, with_count(count), (count - have) * seconds / 3600)
    ends = dict.fromkeys(outcome_of(with_seeds(effect, MOST_SEEDS)) for effect in drawn)
    if len(ends) == 1:
        reason = f"the mean is so near the least effect that {MOST_SEEDS} seeds do not decide"
    else:
        reason = f"its effects differ: {', '.join(ends)}"
    return Need(claim, have, None, None, 0.0, reason)


def needs(assessed: Sequence[Assessed]) -> list[Need]:
    """What would decide the undecided of these claims, the cheapest first."""
    undecided = [one for one in assessed if one.outcome == "undecided"]
    result = [need(one.claim.id, one.effects, one.seconds) for one in undecided]
    return sorted(result, key=lambda one: (one.seeds is None, one.hours))


def page(by_paper: Mapping[str, Sequence[Assessed]]) -> str:
    """The text of docs/results/claims-undecided.md."""
    return INTRODUCTION + table(by_paper)


INTRODUCTION = """# What would decide the undecided claims

With further seeds, the interval of an effect narrows around its mean. *Further seeds* is the
smallest number with which all effects of a claim show the same outcome, if their means and standard
deviations stay as they are. *CPU hours* is what these runs take on one thread each, if they take as
long as the stored ones. Claims with a dash are not decided by seeds, for the reason in the last
column; effects that differ are listed with their outcomes after 1000 seeds. Means move when seeds
are added, so claims that need many seeds may well end otherwise.
[How claims are decided](claims.md).

"""


def table(by_paper: Mapping[str, Sequence[Assessed]]) -> str:
    """What would decide the undecided claims of all papers, as a Markdown table."""
    rows = []
    for name, assessed in by_paper.items():
        for one in needs(assessed):
            more = "-" if one.seeds is None else str(one.seeds - one.have)
            hours = "-" if one.seeds is None else f"{one.hours:.2g}"
            end = one.reason or str(one.outcome)
            rows.append([one.id, TITLES[name], str(one.have), more, hours, end])
    head = ["claim", "paper", "seeds", "further seeds", "CPU hours", "outcome then"]
    return markdown(head, rows)
