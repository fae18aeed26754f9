"""``python -m experiments claims [PAPER]``: every published claim, what the runs say, the verdict.

``claims.toml`` of a paper states each claim and its criterion; a function of the paper's
``claims.py``, which the claim names, computes effects from the rows of finished runs.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.evidence import Evidence
from experiments.papers import papers
from experiments.report import markdown
from experiments.studies import Scale
from wirelessfl.errors import ConfigError
from wirelessfl.results.intervals import HIDDEN, LEVEL, MIN_SEEDS, VERDICTS, Effect, Verdict

README = Path(__file__).parents[1] / "README.md"
RESULTS = README.parent / "docs" / "results"
"""Folder of ``claims.md`` and of a page per paper, which contains its claims."""
MARKS = ("<!-- claims -->", "<!-- end of claims -->")
"""Lines around the totals in README.md, and around the claims in the page of a paper."""
PUBLISHED = "published setting"
TITLES = {
    "hist": "HIST",
    "fedast": "FedAST",
    "fadamgc": "FAdamGC",
    "dynamic_clients": "Dynamic clients",
    "ra_fed": "RA-Fed",
}
Measure = Callable[..., Sequence[Effect]]


@dataclass(frozen=True)
class Claim:
    """A published claim.

    Args:
        id: its number in ``docs/results/claims.md``, unique over all papers.
        source: figure or table.
        statement: what the paper says, in short.
        published: its numbers.
        measure: name of a function in the paper's ``claims.py``.
        criterion: arguments of that function: the least effect that counts, and what is compared.
        scope: ``published setting``, or ``other: ...`` with the settings that differ.
        command: draws the figure or table.
        scale: scale of the runs.
        reason: why our result differs, with the claim or experiment that shows it; empty if
            unknown.
    """

    id: int
    source: str
    statement: str
    published: str
    measure: str
    scope: str
    command: str
    criterion: dict[str, Any] = field(default_factory=dict)
    scale: Scale = "small"
    reason: str = ""


@dataclass(frozen=True)
class Assessed:
    """A claim with its effects."""

    claim: Claim
    effects: tuple[Effect, ...]

    @property
    def verdict(self) -> Verdict:
        """Confirmed if all effects confirm the claim, contradicted if one contradicts it.

        One of many effects contradicts by chance more often than a single one, so the errors of
        contradictions add up to that of one effect (Bonferroni). An effect over the best of several
        competitors counts as one effect for each of them.
        """
        strict = 1 - (1 - LEVEL) / max(sum(effect.among for effect in self.effects), 1)
        if any(effect.verdict_of(strict) == "contradicted" for effect in self.effects):
            return "contradicted"
        found = {effect.verdict for effect in self.effects}
        return "confirmed" if found == {"confirmed"} else "undecided"

    @property
    def waiting(self) -> bool:
        """Whether it is undecided, and an effect has too few seeds."""
        few = [not one.exact and len(one.values) < MIN_SEEDS for one in self.effects]
        return self.verdict == "undecided" and (not few or any(few))

    @property
    def ours(self) -> str:
        """Our values."""
        if not any(effect.values for effect in self.effects):
            return "; ".join(dict.fromkeys(effect.empty for effect in self.effects))
        return "; ".join(map(str, self.effects))

    @property
    def criterion(self) -> str:
        """The effects that confirm the claim."""
        return "; ".join(dict.fromkeys(effect.criterion for effect in self.effects))


def claims_of(folder: Path) -> list[Claim]:
    """The claims in ``claims.toml`` of a paper's folder."""
    text = (folder / "claims.toml").read_text(encoding="utf-8")
    return [Claim(**table) for table in tomllib.loads(text)["claim"]]


def assess(
    name: str,
    rows: Path | None = None,
    scale: Scale | None = None,
    known: Evidence | None = None,
) -> list[Assessed]:
    """The claims of a paper, with effects computed from its stored runs.

    Args:
        name: name of the paper.
        rows: folder of the runs; None for that of the paper.
        scale: scale of the runs; None for that of each claim.
        known: runs of one scale, some of which may have been read.
    """
    paper = papers()[name]
    measures = import_module(f"experiments.{name}.claims")
    by_scale: dict[Scale, Evidence] = {} if known is None else {known.scale: known}
    found = []
    for claim in claims_of(paper.folder):
        size = scale or claim.scale
        if size not in by_scale:
            by_scale[size] = Evidence(paper, paper.store(size, Path("results"), rows), size)
        measure: Measure = getattr(measures, claim.measure)
        found.append(Assessed(claim, tuple(measure(by_scale[size], **claim.criterion))))
    return found


def table(assessed: Sequence[Assessed], *, short: bool = False) -> str:
    """One row per claim, as a Markdown table.

    Args:
        assessed: the claims.
        short: whether to leave out criterion, setting, reason and command.
    """
    head = ["", "claim", "published", "ours", "verdict", "confirmed by", "setting", "reason"]
    head.append("command")
    rows = [
        [
            str(one.claim.id),
            f"{one.claim.source}: {one.claim.statement}",
            one.claim.published,
            one.ours,
            one.verdict,
            one.criterion,
            one.claim.scope,
            one.claim.reason,
            f"`{one.claim.command}`",
        ]
        for one in assessed
    ]
    shown = 5 if short else len(head)
    return markdown(head[:shown], [row[:shown] for row in rows])


def totals(assessed: Sequence[Assessed]) -> str:
    """Numbers of claims by verdict and scope, as a Markdown table."""
    waiting = "undecided, with fewer than three seeds"
    counts = Counter(
        (waiting if one.waiting else one.verdict, one.claim.scope == PUBLISHED) for one in assessed
    )
    rows = [
        [verdict, str(counts[verdict, True]), str(counts[verdict, False])]
        for verdict in (*VERDICTS, waiting)
    ]
    return markdown(["verdict", "published setting", "other setting"], rows)


def page(by_paper: dict[str, list[Assessed]]) -> str:
    """The text of docs/results/claims.md."""
    every = [one for assessed in by_paper.values() for one in assessed]
    sections = [f"## {TITLES[name]}\n\n{table(assessed)}" for name, assessed in by_paper.items()]
    return "\n".join(
        [INTRODUCTION.format(count=len(every), hidden=HIDDEN), totals(every), *sections]
    )


INTRODUCTION = """# Published claims

`python -m experiments claims` computes this page from the rows of finished runs in
`experiments/*/rows`. It lists {count} claims of the five papers. Each is tested by effects: paired
differences or ratios of runs with equal seeds. Values are means over the seeds, geometric means for
ratios, with a 95 % interval (Student's t). Differences above 0 and ratios above 1 support a claim.

- **Confirmed**: the interval excludes 0 (a ratio of 1), and the mean is at least the least effect
  that counts. Where the claim is that there is no difference, the interval lies within the largest
  difference that does not count.
- **Contradicted**: the interval excludes all effects that count.
- **Undecided**: neither, fewer than three seeds, or runs are missing.

A run that does not reach a target gives a bound. Then the interval is open on one side, and the
standard deviation of the logarithms is at least {hidden:g}, because runs that end at the same cap
hide how much seeds differ. If no compared run of a seed reaches its target, the claim is undecided.
The deviation is also at least that of a cost within the interval between two tests.

`experiments/*/claims.toml` states what is compared and the least effect that counts; the column
*confirmed by* shows it, as a difference, in points of accuracy, or as a ratio. If several effects
are listed, a claim is confirmed if all of them confirm it, and contradicted if one of n contradicts
it with an interval of level 1 - 0.05 / n (Bonferroni). A comparison with the best of several
competitors counts as several.
The column *setting* says whether the runs have the published setting.
"""


def files(by_paper: dict[str, list[Assessed]]) -> dict[Path, str]:
    """The texts with claims or totals, by file: the page of all claims, README.md, other pages."""
    every = [one for assessed in by_paper.values() for one in assessed]
    found = {RESULTS / "claims.md": page(by_paper), README: marked(README, totals(every))}
    for name, assessed in by_paper.items():
        file = RESULTS / f"{name.replace('_', '-')}.md"
        found[file] = marked(file, table(assessed, short=True))
    return found


def write(by_paper: dict[str, list[Assessed]]) -> None:
    """Write all files with claims or totals."""
    for file, text in files(by_paper).items():
        file.write_text(text, encoding="utf-8")


def marked(file: Path, text: str) -> str:
    """The content of a file with ``text`` between the marks.

    Raises:
        ConfigError: the file does not have both marks once, in this order.
    """
    content = file.read_text(encoding="utf-8")
    before, _, rest = content.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    if [content.count(mark) for mark in MARKS] != [1, 1] or MARKS[1] not in rest:
        raise ConfigError(f"{file} needs one line {MARKS[0]} and, below it, one line {MARKS[1]}.")
    return f"{before}{MARKS[0]}\n{text}{MARKS[1]}{after}"
