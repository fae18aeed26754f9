"""Results pages: every study has a block with its figure, its table and the number of its runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import blocks, pages
from experiments.blocks import BLOCK, DOCS, FIGURES, OTHER, csv_of, filled, paragraphs, status
from experiments.claims import RESULTS
from experiments.evidence import Evidence
from experiments.papers import papers
from experiments.runs import stored_file
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.folder.about import NUMERICS


@pytest.mark.parametrize("name", papers())
def test_pages_have_every_experiment_with_runs(name):
    """Of experiments with the same study and table, one is enough; a list links all others."""
    paper = papers()[name]
    files = [RESULTS / f"{name.replace('_', '-')}.md", *(DOCS / page for page in paper.pages)]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    found = {match[2]: match[3] for match in BLOCK.finditer(text)}
    if OTHER.search(text):
        return
    assert paper.texts.keys() <= found.keys()
    shown = {
        (paper.experiments[one].study, paper.experiments[one].table)
        for one in found.keys() - paper.texts.keys()
    }
    for one, experiment in paper.experiments.items():
        if not paper.study(experiment.study, "small").cases:
            assert one not in found
        elif experiment.draw is None:
            assert (experiment.study, experiment.table) in shown, one
        else:
            assert found[one], f"{one} has no text for readers who do not see its figure"


def test_figures_are_shown_and_exist():
    shown = set()
    for page in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)]+\.png)\)|src=\"([^\"]+)\"", text):
            file = (page.parent / "".join(link)).resolve()
            assert file.is_file(), f"{page.name}: {file.name}"
            shown.add(file)
    assert shown == set(FIGURES.glob("*.png"))


@pytest.fixture
def one(tmp_path, monkeypatch):
    """A paper with one experiment of two cases, for which some runs are stored."""
    paper = papers()["fadamgc"]
    figures = {"fig3": paper.experiments["fig3"]}
    paper = replace(paper, experiments=figures, numbers=lambda evidence: {"y": "2", "z": "3 to 4"})
    study = paper.study("fig3", "small")
    store = paper.store("small", tmp_path, tmp_path / "rows")
    monkeypatch.setattr(blocks, "FIGURES", tmp_path)
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    (tmp_path / "fadamgc.md").write_text(MARKED)

    def put(case, seed):
        rows = [
            {"round": n, "accuracy": n / 100, "loss": 1.0, "sim_seconds": n, "uplink_mib": n}
            for n in (0, 80)
        ]
        config = study.cases[case].config(seed)
        settings = {"run": {"seed": seed}}
        about = {"numerics": NUMERICS}
        StoredRun(settings, rows, about, {}, 1.0).save(stored_file(config, store.rows))

    return put, study, lambda: Evidence(paper, store)


MARKED = "a\n<!-- rows of fig3: rounds -->\nold\n<!-- end of rows -->\nb\n"


def test_a_block_has_figure_table_and_number_of_runs(one, tmp_path):
    put, study, evidence = one
    planned = sum(len(case.seeds) for case in study.cases)
    empty = filled(MARKED, evidence())
    assert f"\n\n*0 of {planned} runs are finished.*\n\n<!-- end of rows -->\nb\n" in empty
    assert "old" not in empty
    assert "![" not in empty
    put(0, study.cases[0].seeds[0])
    put(1, study.cases[1].seeds[0])
    put(1, study.cases[1].seeds[1])
    assert len(study.cases) == 9
    pages.draw(evidence())
    assert not list(tmp_path.glob("*.png"))  # with runs of less than half of the cases
    for i in (2, 3, 4):
        put(i, study.cases[i].seeds[0])
    found = evidence()
    (tmp_path / "fadamgc-fig3-old.png").write_bytes(b"of a case that is gone")
    pages.draw(found)
    assert [file.name for file in Path(tmp_path).glob("*.png")] == ["fadamgc-fig3.png"]
    text = filled(MARKED, found)
    assert "<!-- rows of fig3: rounds -->\n\n![rounds](../figures/fadamgc-fig3.png)\n\n| " in text
    assert f"|\n\n*6 of {planned} runs, 1 to 2 seeds.*\n\n<!-- end of rows -->\nb\n" in text
    assert filled(text, found) == text
    twice = filled(MARKED + MARKED, found)
    assert twice.count("| data |") == 1
    assert twice.count("![rounds]") == 2


def test_a_figure_block_links_its_table(one, tmp_path):
    put, study, evidence = one
    text = "<!-- figure of fig3: rounds -->\nold\n<!-- end of figure -->\n"
    rest = "<!-- other tables -->\nold\n<!-- end of other tables -->\n"
    (tmp_path / "fadamgc.md").write_text(text)
    put(0, study.cases[0].seeds[0])
    found, calls = evidence(), []
    experiment = found.paper.experiments["fig3"]

    def counted(results):
        calls.append(results)
        return experiment.table(results)

    found.paper.experiments["fig3"] = experiment._replace(table=counted)
    pages.draw(found)
    page = filled(text + rest, found)
    planned = sum(len(case.seeds) for case in study.cases)
    runs = f"1 of {planned} runs, 1 seed. [Table](../figures/fadamgc-fig3.csv)."
    assert f"(../figures/fadamgc-fig3.png)\n\n*{runs}*\n" in page
    assert "old" not in page
    assert f"- `fig3`: {runs}" in filled(rest, found)
    (table,) = blocks.tables_of(found, "fig3").values()
    assert len(table.splitlines()) == 2
    assert len(calls) == 1, "a table is computed once, wherever it is shown and linked"


def test_tables_as_csv():
    assert csv_of("| a | b, c |\n|---|---|\n| 1 | 2 |\n") == 'a,"b, c"\n1,2\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MARKED.replace("<!-- end of rows -->", ""), "1 lines .* and 0 lines"),
        (MARKED.replace("<!-- end of rows -->", "") + MARKED, "2 lines .* and 1 lines"),
        (MARKED.replace("fig3", "fig99"), "rows of fig99 -->`: choose from fig3"),
        ("is <!-- number of x -->", "1 marks .* and 0 marks"),
        ("is <!-- number of x -->1<!-- end of number -->", "number of x -->`: choose from y, z"),
        ("<!-- number of y -->1<!-- end of number -->", "at the start of a line"),
    ],
)
def test_wrong_marks_are_errors(one, text, message):
    _, _, evidence = one
    with pytest.raises(ConfigError, match=message):
        filled(text, evidence())


def test_numbers_in_sentences(one):
    _, _, evidence = one
    text = "a <!-- number of z -->old\nline<!-- end of number --> b"
    assert filled(text, evidence()) == text.replace("old\nline", "3 to 4")


def test_lists_below_a_table_are_left_out():
    assert paragraphs("Means.\n\n| a |\n\nCommands:\n\n- b\n") == ["Means.", "| a |"]


def test_runs_of_an_older_version_are_counted(one):
    put, study, evidence = one
    put(0, study.cases[0].seeds[0])
    results = evidence().study("fig3")
    (run,) = results.of(study.cases[0])
    run.about["numerics"] = -1
    assert status(results).endswith("runs, 1 seed; 1 by an older version of the algorithms.*")
