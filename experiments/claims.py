"""``python -m experiments claims [PAPER]``: published claims, what the runs say, the outcome.

``claims.toml`` of a paper states each claim and its criterion; a function of the paper's
``claims.py``, which the claim names, computes effects from the rows of finished runs. Outcomes are
defined in ``wirelessfl.results.outcomes``; ``experiments.claims_page`` writes the pages.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.evidence import Evidence
from experiments.papers import papers
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.intervals import Effect
from wirelessfl.results.outcomes import (
    DECIDED,
    Outcome,
    Signs,
    excluded,
    outcome,
    outcome_of,
)

RESULTS = Path(__file__).parents[1] / "docs" / "results"
"""Folder of ``claims.md``, ``claims.json`` and a page per paper."""
TITLES = {
    "hist": "HIST",
    "fedast": "FedAST",
    "fadamgc": "FAdamGC",
    "dynamic_clients": "Dynamic clients",
    "ra_fed": "RA-Fed",
}
UNTESTABLE = "not testable here"
CONTRADICTED = "contradicted"
OUTCOMES = (*DECIDED, CONTRADICTED, "undecided", "not tested", UNTESTABLE)
Measure = Callable[..., Sequence[Effect | Signs]]


@dataclass(frozen=True)
class Claim:
    """An atomic claim: one comparison.

    Args:
        id: number of the published claim and a letter, unique over all papers.
        source: figure or table of the paper.
        statement: what the paper says, in short.
        published: its numbers.
        measure: name of a function in the paper's ``claims.py``.
        criterion: arguments of that function: the least effect that counts, and what is compared.
        fidelity: a key of ``experiments.printed.FIDELITIES``.
        setting: how our runs differ from the paper's.
        command: draws the figure or table that shows the values.
        reason: why our result differs, with the claim or experiment that shows it; empty if
            unknown.
        theorem: whether it is a theorem, which one example contradicts.
        untestable: why it cannot be tested here; it then has no measure.
    """

    id: str
    source: str
    statement: str
    published: str
    measure: str = ""
    criterion: dict[str, Any] = field(default_factory=dict)
    fidelity: str = ""
    setting: str = ""
    command: str = ""
    reason: str = ""
    theorem: bool = False
    untestable: str = ""


@dataclass(frozen=True)
class Change:
    """A change of a criterion, metric, target or number of seeds after data were seen.

    Args:
        claims: ids; none for all claims.
        date: when.
        what: what was changed, and why.
        before: the result before.
    """

    claims: list[str]
    date: str
    what: str
    before: str


@dataclass(frozen=True)
class Assessed:
    """A claim with its effects, and how long a further seed of all its runs would take."""

    claim: Claim
    effects: tuple[Effect | Signs, ...]
    seconds: float = 0.0

    @cached_property
    def found(self) -> Outcome:
        """The outcome that follows from the effects."""
        return outcome(self.effects)

    @property
    def outcome(self) -> str:
        """The outcome as shown: ``contradicted`` only in the published setting and of theorems."""
        if self.claim.untestable:
            return UNTESTABLE
        strict = self.claim.fidelity == "published" or self.claim.theorem
        return CONTRADICTED if self.found == "opposite" and strict else self.found

    @property
    def note(self) -> str:
        """What an undecided claim leaves out: the outcomes of effects that differ, or a side."""
        if self.outcome != "undecided":
            return ""
        counts = Counter(map(outcome_of, self.effects))
        if len(counts) > 1:
            return ", ".join(f"{count} {one}" for one, count in counts.items())
        sides = {excluded(effect) for effect in self.effects}
        return sides.pop() if len(sides) == 1 else ""

    @property
    def ours(self) -> str:
        """Our values with intervals and, once if equal, numbers of seeds."""
        if not any(effect.values for effect in self.effects):
            return "; ".join(dict.fromkeys(effect.empty for effect in self.effects))
        counts = {effect.count for effect in self.effects if effect.values}
        shared = len(counts) == 1
        texts = []
        for one in self.effects:
            notes = [one.bounds, "" if shared else one.count] if one.values else []
            notes = [note for note in notes if note]
            text = f"{one.name}: {one.value}" if one.name else one.value
            texts.append(text + f" ({', '.join(notes)})" * bool(notes))
        return "; ".join([*texts, *(counts if shared else ())])

    @property
    def criterion(self) -> str:
        """The effects that agree with the claim."""
        return "; ".join(dict.fromkeys(effect.criterion for effect in self.effects))

    def value_of(self, name: str | None = None) -> str:
        """The value of the effect with a name, or all values, for a sentence."""
        texts = [_plain(one.value) for one in self._chosen(name)]
        return " and ".join([", ".join(texts[:-1])] * bool(texts[:-1]) + texts[-1:])

    def interval_of(self, name: str | None = None) -> str:
        """The interval of the effect with a name; None for the only one."""
        chosen = self._chosen(name)
        if len(chosen) > 1:
            names = ", ".join(repr(one.name) for one in chosen)
            raise ConfigError(f"claim {self.claim.id} has several intervals: name one of {names}.")
        if not chosen[0].bounds:
            count = chosen[0].count
            raise ConfigError(f"claim {self.claim.id} has no interval ({count}): show its value.")
        return " to ".join(map(_plain, chosen[0].bounds.split(" to ")))

    def _chosen(self, name: str | None) -> list[Effect | Signs]:
        """The effect with a name, or all."""
        chosen = [one for one in self.effects if name is None or one.name == name]
        if not chosen:
            names = ", ".join(repr(one.name) for one in self.effects) or "no effects"
            raise ConfigError(f"claim {self.claim.id} has no effect {name!r}: choose from {names}.")
        for one in chosen:
            if not one.values:
                raise ConfigError(
                    f"claim {self.claim.id} has no value yet ({one.name or 'runs'}: {one.empty}): "
                    "show it when it has."
                )
        return chosen


def _plain(text: str) -> str:
    """A value without its sign, if positive."""
    return text.removeprefix("+")


def _table(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """``claims.toml`` of a paper's folder."""
    return tomllib.loads((folder / "claims.toml").read_text(encoding="utf-8"))


def claims_of(folder: Path) -> list[Claim]:
    """The claims in ``claims.toml`` of a paper's folder."""
    return [Claim(**table) for table in _table(folder)["claim"]]


def changes_of(folder: Path) -> list[Change]:
    """The changes after data were seen, from ``claims.toml`` of a paper's folder."""
    return [Change(**table) for table in _table(folder).get("change", [])]


def assess(name: str, evidence: Evidence | None = None) -> list[Assessed]:
    """The claims of a paper, with effects computed from its stored runs at scale ``small``.

    Args:
        name: name of the paper.
        evidence: its runs, some of which may have been read; None for those in the repository.
    """
    paper = papers()[name]
    measures = import_module(f"experiments.{name}.claims")
    evidence = evidence or Evidence.of(paper)
    assessed = []
    for claim in claims_of(paper.folder):
        effects: Sequence[Effect | Signs] = ()
        evidence.used.clear()
        if not claim.untestable:
            measure: Measure = getattr(measures, claim.measure)
            effects = measure(evidence, **claim.criterion)
        assessed.append(Assessed(claim, tuple(effects), evidence.seconds))
    return assessed


def by_id(by_paper: Mapping[str, Sequence[Assessed]]) -> dict[str, Assessed]:
    """All claims by id."""
    return {one.claim.id: one for assessed in by_paper.values() for one in assessed}
