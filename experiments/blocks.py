"""Blocks of a page that are computed from stored rows: figures, tables and lists of tables.

A page has blocks between ``<!-- rows of NAME: what its figure shows -->`` and ``<!-- end of rows
-->``: the figure and the table of an experiment. ``<!-- figure of NAME: ... -->`` to ``<!-- end of
figure -->`` shows the figure and links the table, a CSV file beside the figure. ``<!-- other tables
-->`` to ``<!-- end of other tables -->`` links the tables of all experiments without a block.

Within a sentence, ``<!-- value of 1a -->`` to ``<!-- end of value -->`` shows the values of claim
1a, ``<!-- value of 1a: N = 2 -->`` that of one of its effects, and ``interval`` instead of
``value`` its interval. ``<!-- number of NAME -->`` to ``<!-- end of number -->`` shows a number of
the paper (``Paper.numbers``).
"""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from experiments.claims import Assessed
from experiments.evidence import Evidence
from experiments.labels import seeds_of
from experiments.studies import Results
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.selection import DATA, MODELS

DOCS = Path(__file__).parents[1] / "docs"
FIGURES = DOCS / "figures"
WIDTH = 120
"""Most characters per line of text."""
OLD = "by an older version of the algorithms"
BLOCK = re.compile(
    r"<!-- (rows|figure) of ([\w-]+)(?:: (.*?))? -->\n.*?<!-- end of \1 -->", re.DOTALL
)
VALUE = re.compile(
    r"(<!-- (value|interval) of (\d\w*)(?:: (.*?))? -->).*?(<!-- end of \2 -->)", re.DOTALL
)
NUMBER = re.compile(r"(<!-- number of (.*?) -->).*?(<!-- end of number -->)", re.DOTALL)
FIRST = re.compile(
    r"^\s*(?:[-*] |\d+\. )?\s*(<!-- (?:value|interval|number) of .*?-->)", re.MULTILINE
)
OTHER = re.compile(r"(<!-- other tables -->\n).*?(<!-- end of other tables -->)", re.DOTALL)


def pictures(evidence: Evidence, name: str) -> list[Path]:
    """The files in ``docs/figures`` of an experiment, which may have several."""
    stem = stem_of(evidence, name)
    return [*FIGURES.glob(f"{stem}.png"), *sorted(FIGURES.glob(f"{stem}-*.png"))]


def stem_of(evidence: Evidence, name: str) -> str:
    """The first part of the names of an experiment's files in ``docs/figures``."""
    return f"{evidence.paper.name.replace('_', '-')}-{name}"


def status(results: Results) -> str:
    """How many runs and seeds a table shows, as in ``12 of 60 runs, 1 to 3 seeds``."""
    planned = sum(len(case.seeds) for case in results.study.cases)
    runs = [run for case in results.study.cases for run in results.of(case)]
    made = f"{planned}" if len(runs) == planned else f"{len(runs)} of {planned}"
    if not runs:
        return f"*{made} runs are finished.*"
    seeds = seeds_of(len(results.of(case)) for case in results.where())
    old = sum(not run.current for run in runs)
    return f"*{made} runs, {seeds}.*" if not old else f"*{made} runs, {seeds}; {old} {OLD}.*"


def paragraphs(text: str) -> list[str]:
    """The tables and the paragraphs before them; lists after the last table are left out."""
    parts = [one.strip() for one in text.strip().split("\n\n")]
    tables = [place for place, one in enumerate(parts) if one.startswith("|")]
    last = max(tables, default=len(parts))
    return [one if one.startswith("|") else textwrap.fill(one, WIDTH) for one in parts[: last + 1]]


def block(name: str, about: str, evidence: Evidence, shown: set[str]) -> str:
    """The figure and the table of one experiment, and the number of its runs.

    Args:
        name: name of the experiment.
        about: what its figure shows, for readers who do not see it.
        evidence: the runs of its paper.
        shown: tables and paragraphs of the page so far, which are not repeated; new ones are added.
    """
    head = f"<!-- rows of {name}{': ' if about else ''}{about} -->"
    if name in evidence.paper.texts:
        parts = paragraphs(evidence.table(name))
        parts[:0] = _shown(evidence, name, about)
        return "\n\n".join([head, *parts]) + "\n\n<!-- end of rows -->"
    experiment = evidence.paper.experiments[name]
    results = evidence.study(experiment.study)
    parts = [status(results)]
    if results.where():
        text = experiment.short(results) if experiment.short else evidence.table(name)
        new = [one for one in paragraphs(text) if one not in shown]
        shown.update(new)
        parts[:0] = new
        parts[:0] = _shown(evidence, name, about)
    return "\n\n".join([head, *parts]) + "\n\n<!-- end of rows -->"


def figure_block(name: str, about: str, evidence: Evidence, shown: set[str]) -> str:
    """The figure of an experiment, the number of its runs and links to tables; see ``block``."""
    parts = [f"<!-- figure of {name}{': ' if about else ''}{about} -->"]
    parts += _shown(evidence, name, about)
    state = ""
    if name in evidence.paper.experiments:
        state = status(evidence.study(evidence.paper.experiments[name].study)).strip("*")
    if text := f"{state}{_links(evidence, name)}".strip():
        parts.append(f"*{text}*")
    return "\n\n".join([*parts, "<!-- end of figure -->"])


def other_tables(evidence: Evidence, shown: set[str]) -> str:
    """Links to the tables of all experiments with runs that a page does not show.

    Args:
        evidence: the runs of the paper.
        shown: names of the experiments with blocks.
    """
    items = []
    for name, experiment in evidence.paper.experiments.items():
        results = evidence.study(experiment.study)
        if name not in shown and results.where():
            state = status(results).strip("*.")
            items.append(f"- `{name}`: {state}.{_links(evidence, name)}")
    for name in sorted(evidence.paper.texts.keys() - shown):
        if links := _links(evidence, name):
            items.append(f"- `{name}`:{links}")
    return "\n".join(items)


def tables_of(evidence: Evidence, name: str) -> dict[Path, str]:
    """The tables of an experiment or text as CSV files beside its figure; empty without runs."""
    texts = [one for one in evidence.table(name).split("\n\n") if one.startswith("|")]
    stem = stem_of(evidence, name)
    ends = [""] if len(texts) == 1 else [f"-{place}" for place in range(1, len(texts) + 1)]
    return {FIGURES / f"{stem}{end}.csv": csv_of(one) for end, one in zip(ends, texts, strict=True)}


def csv_of(table: str) -> str:
    """A Markdown table as CSV."""
    lines = table.strip().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([rows[0], *rows[2:]])
    return text.getvalue()


def _links(evidence: Evidence, name: str) -> str:
    """Links to the tables of an experiment, with a space before each."""
    files = [file.name for file in tables_of(evidence, name)]
    words = ["Table"] if len(files) == 1 else [f"Table {n}" for n in range(1, len(files) + 1)]
    return "".join(
        f" [{word}](../figures/{file})." for word, file in zip(words, files, strict=True)
    )


def _shown(evidence: Evidence, name: str, about: str) -> list[str]:
    """The figures of an experiment, with the texts for readers who do not see them."""
    lines = []
    for file in pictures(evidence, name):
        part = _part(file.stem[len(f"{evidence.paper.name}-{name}") :].strip("-"))
        lines.append(f"![{f'{about} ({part})' if part else about}](../figures/{file.name})")
    return lines


def _part(suffix: str) -> str:
    """What one of several pictures shows, from the end of its file's name."""
    names = sorted(DATA | MODELS, key=len, reverse=True)  # fashion-mnist before mnist
    words = re.compile("|".join([*map(re.escape, names), r"[^-]+"]))
    return ", ".join((DATA | MODELS).get(word, word) for word in words.findall(suffix))


def filled(text: str, evidence: Evidence) -> str:
    """The text of a page with all its blocks and numbers.

    Args:
        text: the page.
        evidence: the runs of its paper.
    """
    shown: set[str] = set()
    marks, page = list(BLOCK.finditer(text)), f"the page of {evidence.paper.name}"
    _check_places(text, page)
    for kind in ("rows", "figure"):
        begun, ended = text.count(f"<!-- {kind} of "), text.count(f"<!-- end of {kind} -->")
        if not begun == ended == sum(match[1] == kind for match in marks):
            raise ConfigError(
                f"{page} has {begun} lines `<!-- {kind} of NAME -->` and "
                f"{ended} lines `<!-- end of {kind} -->`: each of the former needs one of the "
                "latter."
            )
    begun, ended = text.count("<!-- number of "), text.count("<!-- end of number -->")
    if not begun == ended == len(NUMBER.findall(text)):
        raise ConfigError(
            f"{page} has {begun} marks `<!-- number of NAME -->` and {ended} marks "
            "`<!-- end of number -->`: each of the former needs one of the latter."
        )
    for match in marks:
        choices = [*evidence.paper.experiments, *evidence.paper.texts]
        if match[2] not in choices:
            raise ConfigError(
                f"{page} has `<!-- {match[1]} of {match[2]} -->`: choose from {', '.join(choices)}."
            )

    def one(match: re.Match[str]) -> str:
        make = block if match[1] == "rows" else figure_block
        return make(match[2], match[3] or "", evidence, shown)

    def others(match: re.Match[str]) -> str:
        links = other_tables(evidence, {match[2] for match in marks})
        return f"{match[1]}\n{links}\n\n{match[2]}"

    def number(match: re.Match[str]) -> str:
        if match[2] not in evidence.numbers:
            names = ", ".join(evidence.numbers)
            raise ConfigError(f"{page} has `{match[1]}`: choose from {names}.")
        return f"{match[1]}{evidence.numbers[match[2]]}{match[3]}"

    return OTHER.sub(others, BLOCK.sub(one, NUMBER.sub(number, text)))


def with_values(text: str, claims: Mapping[str, Assessed], page: str) -> str:
    """The text of a page with all values and intervals of claims.

    Args:
        text: the page.
        claims: all claims by id.
        page: name of the page, for errors.
    """
    _check_places(text, page)
    for kind in ("value", "interval"):
        begun = len(re.findall(rf"<!-- {kind} of \d", text))
        ended = text.count(f"<!-- end of {kind} -->")
        if not begun == ended == sum(match[2] == kind for match in VALUE.finditer(text)):
            raise ConfigError(
                f"{page} has {begun} marks `<!-- {kind} of ID -->` and {ended} marks "
                f"`<!-- end of {kind} -->`: each of the former needs one of the latter."
            )

    def one(match: re.Match[str]) -> str:
        begin, kind, name, effect, end = match.groups()
        if name not in claims:
            raise ConfigError(f"{page} shows claim {name!r}: choose from {', '.join(claims)}.")
        try:
            value = (claims[name].value_of if kind == "value" else claims[name].interval_of)(effect)
        except ConfigError as error:
            raise ConfigError(f"{page} shows a {kind}: {error}") from None
        return f"{begin}{value}{end}"

    return VALUE.sub(one, text)


def _check_places(text: str, page: str) -> None:
    if first := FIRST.search(text):
        raise ConfigError(
            f"{page} has `{first[1]}` at the start of a line, all of which Markdown reads as HTML: "
            "put a word before it."
        )
