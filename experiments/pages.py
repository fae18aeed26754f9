"""``python -m experiments pages``: claims, tables and figures of ``docs`` from stored rows.

A page has blocks between ``<!-- rows of NAME: what its figure shows -->`` and ``<!-- end of rows
-->``, where NAME is a figure or table of the paper. Text outside these blocks is written by hand.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import textwrap
from pathlib import Path

from experiments import claims
from experiments.claims import RESULTS, TITLES, assess
from experiments.evidence import Evidence
from experiments.papers import papers
from experiments.studies import Results
from wirelessfl.errors import ConfigError
from wirelessfl.figures import use_style
from wirelessfl.results.names import DATA, MODELS

DOCS = RESULTS.parent
FIGURES = DOCS / "figures"
WIDTH = 120
"""Most characters per line of text."""
BLOCK = re.compile(r"<!-- rows of ([\w-]+)(?:: (.*?))? -->\n.*?<!-- end of rows -->", re.DOTALL)


def evidence_of(name: str) -> Evidence:
    """The runs of a paper at scale ``small`` that are stored in the repository."""
    paper = papers()[name]
    return Evidence(paper, paper.store("small", Path("results")))


def pictures(evidence: Evidence, name: str) -> list[Path]:
    """The files in ``docs/figures`` of an experiment, which may have several."""
    stem = f"{evidence.paper.name.replace('_', '-')}-{name}"
    return [*FIGURES.glob(f"{stem}.png"), *sorted(FIGURES.glob(f"{stem}-*.png"))]


def status(results: Results) -> str:
    """How many runs and seeds a table shows, as in ``12 of 60 runs, 1 to 3 seeds``."""
    planned = sum(len(case.seeds) for case in results.study.cases)
    counts = [len(results.of(case)) for case in results.study.cases]
    some = [count for count in counts if count]
    runs = f"{planned}" if sum(counts) == planned else f"{sum(counts)} of {planned}"
    if not some:
        return f"*{runs} runs are finished.*"
    seeds = f"{min(some)} to {max(some)}" if min(some) < max(some) else f"{max(some)}"
    old = sum(not run.current for case in results.study.cases for run in results.of(case))
    made = f"; {old} by an older version of the algorithms" if old else ""
    return f"*{runs} runs, {seeds} seed{'' if seeds == '1' else 's'}{made}.*"


def paragraphs(text: str) -> list[str]:
    """The tables and the paragraphs before them; lists after the last table are left out."""
    found = [one.strip() for one in text.strip().split("\n\n")]
    tables = [place for place, one in enumerate(found) if one.startswith("|")]
    last = max(tables, default=len(found))
    return [one if one.startswith("|") else textwrap.fill(one, WIDTH) for one in found[: last + 1]]


def block(
    name: str, about: str, evidence: Evidence, shown: set[str], figures: str = "../figures"
) -> str:
    """The figure and the table of one experiment, and the number of its runs.

    Args:
        name: name of the experiment.
        about: what its figure shows, for readers who do not see it.
        evidence: the runs of its paper.
        shown: tables and paragraphs of the page so far, which are not repeated; new ones are added.
        figures: folder of the figures, relative to the page.
    """
    head = f"<!-- rows of {name}{': ' if about else ''}{about} -->"
    if name in evidence.paper.texts:
        parts = paragraphs(evidence.paper.texts[name]())
        parts[:0] = _shown(evidence, name, about, figures)
        return "\n\n".join([head, *parts]) + "\n\n<!-- end of rows -->"
    experiment = evidence.paper.experiments[name]
    results = evidence.study(experiment.study)
    parts = [status(results)]
    if results.where():
        text = (experiment.short or experiment.table)(results)
        found = [one for one in paragraphs(text) if one not in shown]
        shown.update(found)
        parts[:0] = found
        parts[:0] = _shown(evidence, name, about, figures)
    return "\n\n".join([head, *parts]) + "\n\n<!-- end of rows -->"


def _shown(evidence: Evidence, name: str, about: str, figures: str) -> list[str]:
    """The figures of an experiment, with the texts for readers who do not see them."""
    found = []
    for file in pictures(evidence, name):
        part = _part(file.stem[len(f"{evidence.paper.name}-{name}") :].strip("-"))
        found.append(f"![{f'{about} ({part})' if part else about}]({figures}/{file.name})")
    return found


def _part(suffix: str) -> str:
    """What one of several pictures shows, from the end of its file's name."""
    names = sorted(DATA | MODELS, key=len, reverse=True)  # fashion-mnist before mnist
    known = re.compile("|".join([*map(re.escape, names), r"[^-]+"]))
    return ", ".join((DATA | MODELS).get(word, word) for word in known.findall(suffix))


def filled(text: str, evidence: Evidence, figures: str = "../figures") -> str:
    """The text of a page with all its blocks.

    Args:
        text: the page.
        evidence: the runs of its paper.
        figures: folder of the figures, relative to the page.

    Raises:
        ConfigError: a block has no end, or its paper has no such experiment.
    """
    shown: set[str] = set()
    begun, ended = text.count("<!-- rows of "), text.count("<!-- end of rows -->")
    if not begun == ended == len(BLOCK.findall(text)):
        raise ConfigError(
            f"the page of {evidence.paper.name} has {begun} lines `<!-- rows of NAME -->` and "
            f"{ended} lines `<!-- end of rows -->`: each of the former needs one of the latter."
        )
    for match in BLOCK.finditer(text):
        known = [*evidence.paper.experiments, *evidence.paper.texts]
        if match[1] not in known:
            raise ConfigError(
                f"the page of {evidence.paper.name} has `<!-- rows of {match[1]} -->`: choose from "
                f"{', '.join(known)}."
            )
    return BLOCK.sub(lambda m: block(m[1], m[2] or "", evidence, shown, figures), text)


def files(evidence: dict[str, Evidence]) -> dict[Path, str]:
    """The texts of all files with claims, totals or rows, by file."""
    claimed = {name: assess(name, known=evidence[name]) for name in TITLES if name in evidence}
    found = claims.files(claimed)
    for name, one in evidence.items():
        file = RESULTS / f"{name.replace('_', '-')}.md"
        text = found[file] if name in TITLES else file.read_text(encoding="utf-8")
        found[file] = filled(text, one)
        for page in (DOCS / other for other in one.paper.pages):
            found[page] = filled(page.read_text(encoding="utf-8"), one, figures="figures")
    return found


def draw(evidence: Evidence) -> None:
    """Draw the figures of a paper into ``docs/figures``, in place of earlier ones.

    A study is drawn once half of its cases have a run.
    """
    prefix = evidence.paper.name.replace("_", "-")
    with tempfile.TemporaryDirectory() as folder, use_style("ieee"):
        for name, experiment in evidence.paper.experiments.items():
            results = evidence.study(experiment.study)
            if experiment.draw is None:
                continue
            ran = results.where()
            drawn = []
            if ran and 2 * len(ran) >= len(results.study.cases):
                drawn = experiment.draw(results, Path(folder))
            for file in pictures(evidence, name):
                file.unlink()
            _keep(drawn, prefix)
        for picture in evidence.paper.pictures.values():
            _keep(picture(Path(folder)), prefix)


def _keep(drawn: list[Path], prefix: str) -> None:
    """Copy drawn figures into ``docs/figures``."""
    for file in drawn:
        if file.suffix == ".png":
            shutil.copyfile(file, FIGURES / f"{prefix}-{file.name}")


def write() -> None:
    """Draw all figures and write all files with claims, totals or rows."""
    evidence = {name: evidence_of(name) for name in papers()}
    for one in evidence.values():
        draw(one)
    for file, text in files(evidence).items():
        file.write_text(text, encoding="utf-8")
