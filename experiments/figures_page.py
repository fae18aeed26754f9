"""Which command shows which figure and table of the papers: ``docs/results/figures.md``."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.claims import TITLES
from experiments.evidence import Evidence
from experiments.printed import FIDELITIES, Printed
from wirelessfl.results.costs import markdown

FILE = "figures.md"
"""The page in docs/results."""


def table(evidence: Evidence) -> str:
    """The figures and tables that a paper prints, as a Markdown table, and the names of ours."""
    paper = evidence.paper
    head = ["paper", "content", "command", "runs stored", "fidelity"]
    rows = [_row(evidence, one) for one in paper.printed.values()]
    ours = [f"`{name}`" for name in paper.experiments if name not in paper.printed]
    return f"{markdown(head, rows)}\n" * bool(rows) + f"Ours: {', '.join(ours)}.\n"


def _row(evidence: Evidence, one: Printed) -> list[str]:
    if one.absent:
        return [one.number, one.content, f"none: {one.absent}", "-", "-"]
    command = f"`python -m experiments.{evidence.paper.name} {one.name}`"
    stored, planned = counts(evidence, one.command)
    runs = f"{stored} of {planned}" if planned else "at scale paper only"
    if one.command not in evidence.paper.experiments:
        runs = "no runs needed"
    return [one.number, one.content, command, runs, FIDELITIES.get(one.fidelity, "-")]


def counts(evidence: Evidence, name: str) -> tuple[int, int]:
    """Numbers of stored and of planned runs of an experiment; zeros for a text."""
    if name not in evidence.paper.experiments:
        return 0, 0
    results = evidence.study(evidence.paper.experiments[name].study)
    planned = sum(len(case.seeds) for case in results.study.cases)
    return sum(map(len, results.runs.values())), planned


def page(evidence: Mapping[str, Evidence]) -> str:
    """The text of docs/results/figures.md."""
    sections = [
        f"## [{TITLES[name]}]({name.replace('_', '-')}.md)\n\n{table(one)}"
        for name, one in evidence.items()
        if name in TITLES
    ]
    return INTRODUCTION + "\n".join(sections)


INTRODUCTION = """# Figures and tables of the papers

Each figure and table of the papers is one command by its number. The runs that are counted here are
those of scale `small`; `--scale paper` has the published settings, for machines with a GPU. `python
-m experiments list` prints these tables. A number that a paper does not have is answered with those
that it has. The supplement of RA-Fed prints none.

"""
