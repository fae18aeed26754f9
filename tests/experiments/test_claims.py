"""Claims: each has a criterion and a function; pages and values agree with the rows."""

import json
import re
import tomllib

import pytest

from experiments import blocks, claims_page
from experiments.__main__ import main
from experiments.blocks import with_values
from experiments.claims import (
    OUTCOMES,
    TITLES,
    UNTESTABLE,
    Assessed,
    Claim,
    assess,
    by_id,
    changes_of,
    claims_of,
)
from experiments.claims_page import page
from experiments.evidence import Evidence
from experiments.pages import files
from experiments.papers import papers
from experiments.printed import FIDELITIES
from experiments.studies import Results
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.intervals import Effect
from wirelessfl.results.outcomes import Signs

COUNT = 52
"""Published claims, which have one or several comparisons each."""
EVERY = [(name, claim) for name in TITLES for claim in claims_of(papers()[name].folder)]
IDS = [claim.id for _, claim in EVERY]


def test_every_claim_is_listed_once():
    assert len(set(IDS)) == len(IDS)
    assert {int(re.fullmatch(r"(\d+)[a-z]", one)[1]) for one in IDS} == {*range(1, COUNT + 1)}
    assert [name for name in papers() if (papers()[name].folder / "claims.toml").exists()] == list(
        TITLES
    )


@pytest.mark.parametrize(("name", "claim"), EVERY, ids=lambda value: str(getattr(value, "id", "")))
def test_claims_are_complete(name, claim):
    """A claim has a criterion, a known fidelity and a command that exists; no outcome."""
    (raw,) = (
        table
        for table in tomllib.loads((papers()[name].folder / "claims.toml").read_text())["claim"]
        if table["id"] == claim.id
    )
    assert not {"verdict", "outcome", "ours", "status"} & raw.keys()
    assert "|" not in f"{claim.statement}{claim.published}{claim.setting}{claim.reason}"
    if claim.untestable:
        assert not raw.keys() & {"measure", "criterion", "fidelity"}
        return
    assert claim.fidelity in FIDELITIES
    assert claim.setting or claim.fidelity in ("published", "computed")
    words = claim.command.split()
    assert words[:2] == ["python", "-m"]
    if words[2] == f"experiments.{name}":
        assert words[3] in {*papers()[name].experiments, *papers()[name].texts, "seconds"}
    else:
        assert words[2] == "pytest"


def test_changes_name_claims_and_the_result_before():
    for name in TITLES:
        own = {claim.id for claim in claims_of(papers()[name].folder)}
        for change in changes_of(papers()[name].folder):
            assert own.issuperset(change.claims), change
            assert re.fullmatch(r"2026-1[12]-\d\d", change.date)
            assert change.before
            assert "|" not in change.what + change.before


class Nothing(Evidence):
    """Studies without runs."""

    def study(self, name):
        study = self.paper.study(name, self.scale)
        return Results(study, {i: [] for i in range(len(study.cases))})


def test_claims_without_runs_are_not_tested():
    """Without rows, only what is computed from formulas has an outcome."""
    for name in TITLES:
        for one in assess(name, Nothing(papers()[name], None)):
            if one.claim.fidelity != "computed":
                wanted = UNTESTABLE if one.claim.untestable else "not tested"
                assert one.outcome == wanted, one.claim.id
                assert one.claim.untestable or re.fullmatch(r"runs missing|no runs .*", one.ours)


def test_pages_agree_with_the_rows():
    """If this fails after new rows: ``python -m experiments pages`` writes the pages."""
    texts = files({name: Evidence.of(paper) for name, paper in papers().items()})
    named = ("claims.md", "claims.json", "claims-hist.md", "claims-ra-fed.md", "hist.md")
    assert {blocks.DOCS / "results" / one for one in named} <= texts.keys()
    for file, text in texts.items():
        assert file.read_text(encoding="utf-8") == text, file


def claim(name="1a", **more):
    return Claim(name, "Fig. 3", "more is sent", "2.0", **({"fidelity": "stand-in"} | more))


OPPOSITE = Effect("N = 4", (-5.0, -5.1, -4.9), 1.0)
AGREES = Effect("N = 2", (5.0, 5.1, 4.9), 1.0, "points")
FEW = Effect("N = 6", (5.0,), 1.0)
NONE = Effect("N = 8", (), 1.0)
SIGNS = Signs("", (1.0,) * 17 + (-1.0,))


def test_contradicted_is_for_the_published_setting_and_theorems():
    for effects, found, strict in [
        ((OPPOSITE,), "opposite", "contradicted"),
        ((AGREES,), "agrees", "agrees"),
        ((AGREES, OPPOSITE), "undecided", "undecided"),
        ((), "not tested", "not tested"),
    ]:
        assert Assessed(claim(), effects).outcome == found
        assert Assessed(claim(fidelity="published"), effects).outcome == strict
        assert Assessed(claim(theorem=True, fidelity="computed"), effects).outcome == strict
        assert Assessed(claim(untestable="no data"), effects).outcome == UNTESTABLE


def test_values_are_shown_with_intervals_and_seeds():
    assert Assessed(claim(), (NONE,)).ours == "runs missing"
    both = Assessed(claim(), (AGREES, OPPOSITE))
    assert both.ours == "N = 2: +5.0 (+4.8 to +5.2); N = 4: -5 (-5.25 to -4.75); 3 seeds"
    assert both.note == "1 agrees, 1 opposite"
    some = Assessed(claim(), (AGREES, FEW, NONE))
    assert (
        some.ours == "N = 2: +5.0 (+4.8 to +5.2, 3 seeds); N = 6: 5 (1 seed); N = 8: runs missing"
    )
    assert Assessed(claim(), (Effect("", (-1.2, -0.9, -1.05), 1.0),)).note == "other direction"
    assert (
        Assessed(claim(), (SIGNS,)).ours
        == "17 of 18 (median +1.0, p = 0.00014); sign test over settings"
    )


def test_pages_cite_claims_that_exist():
    for file in (blocks.DOCS / "results").glob("*.md"):
        cited = re.findall(r"\[(\d+\w*)\]\(claims\.md#([\w-]+)\)", file.read_text())
        for one, anchor in cited:
            assert one in IDS, f"{file.name} cites claim {one}"
            assert anchor == TITLES[EVERY[IDS.index(one)][0]].lower().replace(" ", "-")


ATOMS = by_id({"hist": [Assessed(claim(), (AGREES, OPPOSITE)), Assessed(claim("2a"), (NONE,))]})


def value(of, kind="value", text="old\nline"):
    return f"a <!-- {kind} of {of} -->{text}<!-- end of {kind} --> b"


def test_values_in_sentences():
    for of, kind, wanted in [
        ("1a", "value", "5.0 and -5"),
        ("1a: N = 4", "value", "-5"),
        ("1a: N = 2", "interval", "4.8 to 5.2"),
    ]:
        text = with_values(value(of, kind), ATOMS, "hist.md")
        assert text == value(of, kind, wanted)
        assert with_values(text, ATOMS, "hist.md") == text
    three = {"1a": Assessed(claim(), (AGREES, AGREES, OPPOSITE)), "1b": Assessed(claim(), (SIGNS,))}
    assert ">5.0, 5.0 and -5<" in with_values(value("1a"), three, "hist.md")
    assert ">17 of 18<" in with_values(value("1b"), three, "hist.md")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (value("9z"), r"hist\.md shows claim '9z': choose from 1a, 2a"),
        (value("1a: N = 3"), r"1a has no effect 'N = 3': choose from 'N = 2', 'N = 4'"),
        (value("1a", "interval"), "1a has several intervals: name one of 'N = 2', 'N = 4'"),
        (value("2a"), r"2a has no value yet \(N = 8: runs missing\)"),
        ("a <!-- value of 1a --> b", "1 marks .* and 0 marks"),
        ("a\n  " + value("1a")[2:], "hist.md has `<!-- value of 1a -->` at the start of a line"),
        ("- " + value("1a")[2:], "put a word before it"),
        (value("1a") + "<!-- interval of 1a -->", "1 marks `<!-- interval .* and 0 marks"),
    ],
)
def test_wrong_values_are_errors(text, message):
    with pytest.raises(ConfigError, match=message):
        with_values(text, ATOMS, "hist.md")


def test_the_command_prints_one_paper_and_writes_the_pages(tmp_path, monkeypatch, capsys):
    """With the rows of HIST, and without those of other papers."""
    by_paper = {name: assess(name, Nothing(papers()[name], None)) for name in TITLES}
    by_paper["hist"] = assess("hist")
    other = tmp_path / "hist.md"
    other.write_text(value("1a: N = 2"))
    monkeypatch.setattr(claims_page, "DOCS", tmp_path)
    monkeypatch.setattr(claims_page, "RESULTS", tmp_path)
    monkeypatch.setattr("experiments.__main__.assess", lambda name: by_paper[name])
    assert main(["claims", "ra-fed"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n| ") == len(by_paper["ra_fed"]) + 1 + len(OUTCOMES)
    assert [*tmp_path.iterdir()] == [other]
    assert main(["claims"]) == 0
    assert (tmp_path / "claims.md").read_text() == page(by_paper)
    assert json.loads((tmp_path / "claims.json").read_text())
    hist = (tmp_path / "claims-hist.md").read_text()
    assert hist == (blocks.DOCS / "results" / "claims-hist.md").read_text()
    assert by_id(by_paper)["1a"].value_of("N = 2") in other.read_text()
