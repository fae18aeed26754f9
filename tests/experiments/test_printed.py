"""The papers' figures and tables by their numbers."""

import pytest

from experiments import blocks, figures_page
from experiments.__main__ import main as every_paper
from experiments.claims import TITLES
from experiments.evidence import Evidence
from experiments.hist.__main__ import PAPER as HIST
from experiments.papers import papers
from experiments.printed import FIDELITIES, Printed, ranges
from wirelessfl.base.errors import ConfigError

NUMBERS = {
    "hist": ((1, 8), (1, 2)),
    "fedast": ((1, 26), (1, 4)),
    "fadamgc": ((1, 9), (1, 5)),
    "dynamic_clients": ((1, 4), (1, 16)),
}
"""The first and last figure and table of each paper, as printed."""
ACTIONS = {"fedast": ["timeline"], "fadamgc": ["search", "seconds"], "dynamic_clients": ["costs"]}


@pytest.mark.parametrize("name", NUMBERS)
def test_every_number_of_a_paper_has_an_answer(name):
    """Each is shown by an experiment, a text or an action, or says why not."""
    paper, (figures, tables) = papers()[name], NUMBERS[name]
    several = "to" if tables[1] > tables[0] + 1 else "and"
    expected = f"Figures {figures[0]} to {figures[1]} and Tables {tables[0]} {several} {tables[1]}"
    assert ranges(paper.printed) == expected
    numbers = {f"Figure {n}" for n in range(figures[0], figures[1] + 1)}
    numbers |= {f"Table {n}" for n in range(tables[0], tables[1] + 1)}
    assert {one.number.rstrip("abcd") for one in paper.printed.values()} == numbers
    for one in paper.printed.values():
        assert bool(one.absent) != bool(one.command)
        if not one.absent:
            names = [*paper.experiments, *paper.texts, *ACTIONS.get(name, [])]
            assert paper.named(one.name, ACTIONS.get(name, [])) in names


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", NUMBERS)
def test_fidelity_is_stated_exactly_where_runs_of_scale_small_are_planned(name):
    evidence = Evidence.of(papers()[name])
    for one in evidence.paper.printed.values():
        assert one.fidelity in ("", *FIDELITIES)
        if one.command in evidence.paper.experiments:
            planned = figures_page.counts(evidence, one.command)[1]
            assert bool(planned) == bool(one.fidelity), one


def test_a_number_that_shows_something_else_is_that(tmp_path, capsys):
    assert HIST.main(["fig6b", "--out", str(tmp_path)]) == 0
    assert "drawn:" in capsys.readouterr().out


def test_an_unknown_name_is_one_line_of_an_error(capsys):
    assert HIST.main(["figg8"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "name is 'figg8', which is unknown. Do you mean 'fig8'? Choose fig3, fig4," in error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fig12", "the paper has Figures 1 to 8 and Tables 1 and 2"),
        ("fig7", "choose a panel, fig7a, fig7b, fig7c"),
        ("fig1", "Figure 1 (HIST, an overview) is not drawn: an illustration"),
        ("lables", "Do you mean 'labels'?"),
    ],
)
def test_names_without_a_figure(name, message, tmp_path):
    with pytest.raises(ConfigError) as error:
        HIST.named(name)
    assert message in str(error.value)


def test_ranges_of_one_kind():
    assert ranges({"table3": Printed("table3", "")}) == "Table 3"
    assert ranges({n: Printed(n, "") for n in ("fig2a", "fig2b", "fig10")}) == "Figures 2 to 10"


def test_list_prints_the_tables_of_the_page(capsys):
    assert every_paper(["list", "hist"]) == 0
    printed = capsys.readouterr().out
    page = (blocks.DOCS / "results" / figures_page.FILE).read_text(encoding="utf-8")
    assert "`python -m experiments.hist fig6a`" in printed
    for line in printed.splitlines()[1:]:
        assert line in page
    assert all(f"[{title}]" in page for title in TITLES.values())
