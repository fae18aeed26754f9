"""The pages with claims: ``docs/results/claims.md``, a page per paper, and ``claims.json``."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import undecided
from experiments.blocks import DOCS, FIGURES, VALUE, with_values
from experiments.claims import (
    OUTCOMES,
    RESULTS,
    TITLES,
    UNTESTABLE,
    Assessed,
    by_id,
    changes_of,
)
from experiments.papers import papers
from experiments.printed import FIDELITIES
from wirelessfl.results.costs import markdown
from wirelessfl.results.intervals import HIDDEN, Effect
from wirelessfl.results.outcomes import Signs, outcome_of

UNDECIDED, CHANGED = "claims-undecided.md", "claims-changes.md"
"""What would decide the undecided claims, and what was changed after runs, in docs/results."""
HANG: dict[str, Any] = {"subsequent_indent": "  ", "break_on_hyphens": False}


def table(assessed: Sequence[Assessed], tables: Iterable[str] = ()) -> str:
    """One row per claim, as a Markdown table.

    Args:
        assessed: the claims.
        tables: names of the tables in ``docs/figures`` beside those that exist.
    """
    head = ["claim", "paper's number", "ours (95 % interval)", "outcome", "fidelity", "shown in"]
    files = {*tables, *(file.name for file in FIGURES.glob("*.*"))}
    return markdown(head, [_row(one, files) for one in assessed])


def _row(one: Assessed, files: set[str]) -> list[str]:
    """The cells of a claim."""
    claim = one.claim
    return [
        f"**{claim.id}** {claim.statement} ({claim.source})",
        claim.published,
        claim.untestable or one.ours,
        one.outcome + f" ({one.note})" * bool(one.note),
        FIDELITIES.get(claim.fidelity, "-"),
        shown_in(claim.command, files),
    ]


def shown_in(command: str, names: Iterable[str]) -> str:
    """A link to the figure that a command draws; else to its table, or to the page of its paper.

    Args:
        command: ``python -m experiments.PAPER NAME``; other commands are not linked.
        names: names of the files in ``docs/figures``.
    """
    match = re.match(r"python -m experiments\.(\w+) ([\w-]+)", command)
    if match is None:
        return f"`{command}`" if command else "-"
    paper, name = match[1].replace("_", "-"), match[2]
    matches = sorted(
        file for file in names if re.fullmatch(rf"{paper}-{name}(-[\w-]+)?\.(png|csv)", file)
    )
    exact = [f"{paper}-{name}.png", f"{paper}-{name}.csv"]
    files = [file for file in exact if file in matches] + matches[::-1]
    return f"[{name}]({f'../figures/{files[0]}' if files else f'{paper}.md'})"


def reasons(assessed: Sequence[Assessed]) -> str:
    """Why results differ from the claims, as far as an experiment shows it, as a list."""
    explained = [one for one in assessed if one.claim.reason and one.outcome != "agrees"]
    texts = [f"- **{one.claim.id}** {one.outcome}: {one.claim.reason}." for one in explained]
    return "".join(f"\n{textwrap.fill(text, 100, **HANG)}" for text in texts) + "\n" * bool(texts)


def totals(assessed: Sequence[Assessed]) -> str:
    """Numbers of claims by outcome and fidelity, as a Markdown table."""
    counts = Counter((one.outcome, one.claim.fidelity) for one in assessed)
    rows = []
    for name in OUTCOMES:
        numbers = [counts[name, fidelity] for fidelity in FIDELITIES]
        every = sum(count for (outcome, _), count in counts.items() if outcome == name)
        shown = ["-" if name == UNTESTABLE else str(count) for count in numbers]
        rows.append([name, *shown, str(every)])
    return markdown(["outcome", *FIDELITIES.values(), "all"], rows)


def by_paper_totals(by_paper: Mapping[str, Sequence[Assessed]]) -> str:
    """Numbers of claims by paper and outcome, as a Markdown table."""
    rows = []
    for name, assessed in by_paper.items():
        counts = Counter(one.outcome for one in assessed)
        link = f"[{TITLES[name]}]({page_of(name)})"
        rows.append([link, *(str(counts[one]) for one in OUTCOMES), str(len(assessed))])
    return markdown(["paper", *OUTCOMES, "all"], rows)


def page_of(name: str) -> str:
    """The file of a paper's claims in docs/results."""
    return f"claims-{name.replace('_', '-')}.md"


def changes(names: Iterable[str]) -> str:
    """What was changed after data were seen, as a Markdown table in the order of dates."""
    entries = [one for name in names for one in changes_of(papers()[name].folder)]
    entries.sort(key=lambda one: one.date)
    rows = [[one.date, ", ".join(one.claims) or "all", one.what, one.before] for one in entries]
    return markdown(["date", "claims", "change", "result before"], rows)


def page(by_paper: Mapping[str, Sequence[Assessed]]) -> str:
    """The text of docs/results/claims.md."""
    every = [one for assessed in by_paper.values() for one in assessed]
    numbers = {re.sub(r"\D", "", one.claim.id) for one in every}
    introduction = INTRODUCTION.format(claims=len(numbers), count=len(every))
    if not any(one.claim.fidelity == "published" for one in every):
        introduction += NONE_PUBLISHED
    parts = [introduction, totals(every), by_paper_totals(by_paper)]
    parts += [METHOD.format(hidden=HIDDEN), toctree(by_paper)]
    return "\n".join(parts)


def toctree(names: Iterable[str]) -> str:
    """The pages of the papers' claims, for the navigation of the site."""
    pages = [*map(page_of, names), UNDECIDED, CHANGED]
    files = "".join(f"{one.removesuffix('.md')}\n" for one in pages)
    return f"```{{toctree}}\n:hidden:\n\n{files}```\n"


def paper_page(name: str, assessed: Sequence[Assessed], tables: Iterable[str] = ()) -> str:
    """The text of the page of one paper's claims."""
    title = f"# Claims: {TITLES[name]}\n\n[How claims are decided](claims.md)."
    return f"{title}\n\n{table(assessed, tables)}{reasons(assessed)}"


def details(by_paper: Mapping[str, Sequence[Assessed]]) -> str:
    """The text of docs/results/claims.json: all about each claim."""
    records = [
        {
            "id": one.claim.id,
            "paper": TITLES[name],
            "source": one.claim.source,
            "claim": one.claim.statement,
            "published": one.claim.published,
            "outcome": one.outcome,
            "fidelity": FIDELITIES.get(one.claim.fidelity),
            "setting": one.claim.setting,
            "criterion": one.claim.criterion,
            "command": one.claim.command,
            "reason": one.claim.untestable or one.claim.reason,
            "effects": [_effect(effect) for effect in one.effects],
        }
        for name, assessed in by_paper.items()
        for one in assessed
    ]
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"


def _effect(effect: Effect | Signs) -> dict[str, Any]:
    """An effect for JSON; ratios are not logarithms, unbounded sides are null."""
    ratio = isinstance(effect, Effect) and effect.shown == "ratio"

    def shown(value: float) -> float | None:
        if math.isinf(value):
            return None
        return float(f"{math.exp(value) if ratio else value:.4g}")

    return {
        "name": effect.name,
        "agrees": effect.criterion,
        "value": shown(effect.mean) if effect.values else None,
        "interval": [shown(end) for end in effect.interval] if effect.values else None,
        "of": effect.count if effect.values else effect.empty,
        "unit": effect.shown if isinstance(effect, Effect) else "share of settings",
        "outcome": outcome_of(effect),
    }


def files(
    by_paper: Mapping[str, Sequence[Assessed]], tables: Iterable[str] = ()
) -> dict[Path, str]:
    """The texts with claims or totals, by file.

    Args:
        by_paper: the claims of all papers.
        tables: names of the tables that are written to ``docs/figures``.
    """
    tables = [*tables]
    pages = {page_of(name): paper_page(name, rows, tables) for name, rows in by_paper.items()}
    pages |= {UNDECIDED: undecided.page(by_paper), CHANGED: CHANGES + changes(by_paper)}
    texts = {"claims.md": page(by_paper), "claims.json": details(by_paper), **pages}
    return {RESULTS / file: text for file, text in texts.items()}


def with_all_values(
    texts: Mapping[Path, str], by_paper: Mapping[str, Sequence[Assessed]]
) -> dict[Path, str]:
    """These texts and those of all other pages that show values of claims, with the values."""
    pages = (page for page in sorted(DOCS.rglob("*.md")) if page not in texts)
    others = {page: page.read_text(encoding="utf-8") for page in pages}
    shown = {page: text for page, text in others.items() if VALUE.search(text)}
    atoms = by_id(by_paper)
    return {
        file: with_values(text, atoms, file.name) if file.suffix == ".md" else text
        for file, text in (shown | dict(texts)).items()
    }


def write(by_paper: Mapping[str, Sequence[Assessed]]) -> None:
    """Write all files with claims, totals or values of claims."""
    for file, text in with_all_values(files(by_paper), by_paper).items():
        file.write_text(text, encoding="utf-8")


INTRODUCTION = """# Published claims

What five papers say, and what the runs in this repository say: {claims} claims, split into {count}
comparisons, each with an outcome and with how near its runs are to the paper's. `python -m
experiments claims` computes these pages from the rows of finished runs in `experiments/*/rows`;
only *not testable here* is entered by hand, with its reason. [claims.json](claims.json) has the
criterion, settings, command and all intervals of each.
"""

NONE_PUBLISHED = """
No training here is in a published setting: data, models or hyper-parameters differ or are not
published. So *agrees* says that the paper's statement holds in our setting as well, and *opposite*
that it does not. Neither says whether a published number is right.
"""

METHOD = """A claim is tested by one or several effects. An effect is a difference or a ratio of two
kinds of runs, seed by seed, such as the MiB of HFedAvg over those of HIST. Differences above 0 and
ratios above 1 support the claim. Values are means over the seeds (geometric means of ratios) with a
95 % interval (Student's t). Differences of accuracies are in percentage points. The interval and
the least effect that counts (in [claims.json](claims.json)) decide:

- **agrees**: the whole interval is beyond the least effect in the direction of the claim, or, where
  a claim is of a size, beyond the least size that agrees with it. If the claim is that there is no
  difference, the whole interval is within the least effect.
- **smaller**: the whole interval is in the direction of the claim, and below that effect or size.
- **no difference**: the whole interval is within the least effect, on both sides.
- **opposite**: the whole interval is beyond the least effect in the other direction; of claims of
  no difference, in either. It reads **contradicted** only in the published setting and for
  theorems.
- **undecided**: enough seeds, but the interval shows none of these. Where it excludes 0 or the
  claim, this is said. If the effects of one claim differ, their outcomes are counted. [What would
  decide these](claims-undecided.md).
- **not tested**: fewer than three seeds, or runs are missing.

*Fidelity* says how near the runs are: the published setting; the setting of the code that the
authors released, where it differs from the text; other (or unpublished) hyper-parameters; stand-in
data or models (another partition of the data, data set, network or method); or a computation
without training.

A run that misses its target is right-censored: the interval is one-sided, with a floor of
{hidden:g} on the standard deviation of the logarithm. A second floor accounts for the interval
between evaluations. A comparison with the best of m methods has the level 1 - 0.05 / m. Intervals
are over seeds: they say nothing about other settings, and are too narrow where seeds were added
after a first look ([changes](claims-changes.md)).
"""

CHANGES = """# Changes of claims after data were seen

Every criterion, metric, target or number of seeds that was changed after runs had been seen, with
the result before. Where the earlier criterion can still be computed, it is a claim of its own.

"""
