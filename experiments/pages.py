"""``python -m experiments pages``: claims, tables and figures of ``docs`` from stored rows.

Blocks of a page and values in its sentences are computed, see ``experiments.blocks``. Other text is
written by hand.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from experiments import blocks, claims_page, figures_page
from experiments.blocks import BLOCK, DOCS, OTHER, filled, pictures, tables_of
from experiments.claims import RESULTS, TITLES, assess
from experiments.evidence import Evidence
from experiments.paper import save
from experiments.papers import papers
from wirelessfl.base.figures.curves import use_style


def files(evidence: dict[str, Evidence]) -> dict[Path, str]:
    """The texts of all files with claims, totals, values or rows, by file."""
    claimed = {name: assess(name, evidence=evidence[name]) for name in TITLES if name in evidence}
    by_file: dict[Path, str] = {}
    for one in evidence.values():
        for page in pages_of(one):
            by_file[page] = filled(page.read_text(encoding="utf-8"), one)
        texts = [by_file[page] for page in pages_of(one)]
        every = (one.paper.experiments | one.paper.texts).keys()
        tabled = {m[2] for text in texts for m in BLOCK.finditer(text) if m[1] == "rows"}
        for text in filter(OTHER.search, texts):  # it links what it does not show itself
            tabled -= every - {m[2] for m in BLOCK.finditer(text)}
        for experiment in every - tabled:
            by_file |= tables_of(one, experiment)
    by_file[RESULTS / figures_page.FILE] = figures_page.page(evidence)
    tables = [file.name for file in by_file if file.suffix == ".csv"]
    return claims_page.with_all_values(by_file | claims_page.files(claimed, tables), claimed)


def pages_of(evidence: Evidence) -> list[Path]:
    """The pages with blocks of a paper: its results page first."""
    page = RESULTS / f"{evidence.paper.name.replace('_', '-')}.md"
    return [page, *(DOCS / other for other in evidence.paper.pages)]


def draw(evidence: Evidence) -> None:
    """Draw the figures of a paper into ``docs/figures``, in place of earlier ones.

    Only figures that a page shows are drawn: alone once there is a run, and beside a table once
    half of the cases have one.
    """
    prefix = evidence.paper.name.replace("_", "-")
    texts = [page.read_text(encoding="utf-8") for page in pages_of(evidence)]
    shown = {match[2]: match[1] for text in texts for match in BLOCK.finditer(text)}
    with tempfile.TemporaryDirectory() as folder, use_style("ieee"):
        for name, experiment in evidence.paper.experiments.items():
            results = evidence.study(experiment.study)
            if experiment.draw is None:
                continue
            ran = len(results.where())
            least = 1 if shown.get(name) == "figure" else len(results.study.cases) / 2
            drawn = []
            if name in shown and ran and ran >= least:
                drawn = save(experiment.draw(results), Path(folder), name)
            for file in pictures(evidence, name):
                file.unlink()
            _keep(drawn, prefix)
        for name, picture in evidence.paper.pictures.items():
            _keep(save(picture(), Path(folder), name), prefix)


def _keep(drawn: list[Path], prefix: str) -> None:
    """Copy drawn figures into ``docs/figures``."""
    for file in drawn:
        if file.suffix == ".png":
            shutil.copyfile(file, blocks.FIGURES / f"{prefix}-{file.name}")


def write() -> None:
    """Draw all figures and write all files with claims, totals or rows."""
    evidence = {name: Evidence.of(paper) for name, paper in papers().items()}
    for one in evidence.values():
        draw(one)
    texts = files(evidence)
    for file in blocks.FIGURES.glob("*.csv"):
        if file not in texts:
            file.unlink()
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
