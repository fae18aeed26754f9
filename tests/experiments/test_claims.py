"""Claims: each has a criterion and a function; page and README agree with the rows."""

import tomllib
from functools import cache

import pytest

from experiments import claims as module
from experiments.__main__ import main
from experiments.claims import (
    PUBLISHED,
    TITLES,
    Assessed,
    assess,
    claims_of,
    page,
    totals,
)
from experiments.fadamgc import claims as of_fadamgc
from experiments.fadamgc import seconds
from experiments.pages import evidence_of, files
from experiments.papers import papers
from experiments.studies import SCALES
from wirelessfl.errors import ConfigError
from wirelessfl.results.intervals import VERDICTS, Effect

COUNT = 52
EVERY = [(name, claim) for name in TITLES for claim in claims_of(papers()[name].folder)]


@pytest.fixture(scope="module", autouse=True)
def modelled_once():
    """The modelled times, which several claims compare, are computed once."""
    once = cache(seconds.round_seconds)
    with pytest.MonkeyPatch.context() as patch:
        for place in (seconds, of_fadamgc):
            patch.setattr(place, "round_seconds", once)
        yield


@pytest.fixture(scope="module")
def evidence():
    return {name: evidence_of(name) for name in papers()}


@pytest.fixture(scope="module")
def by_paper(evidence):
    return {name: assess(name, known=evidence[name]) for name in TITLES}


def test_every_claim_is_listed_once():
    assert sorted(claim.id for _, claim in EVERY) == list(range(1, COUNT + 1))
    assert [name for name in papers() if (papers()[name].folder / "claims.toml").exists()] == list(
        TITLES
    )


@pytest.mark.parametrize(("name", "claim"), EVERY, ids=lambda value: str(getattr(value, "id", "")))
def test_claims_are_complete(name, claim):
    """A claim has a criterion, a known scale, a scope and a command that exists; no verdict."""
    (raw,) = (
        table
        for table in tomllib.loads((papers()[name].folder / "claims.toml").read_text())["claim"]
        if table["id"] == claim.id
    )
    assert not {"verdict", "ours", "status"} & raw.keys()
    assert not any(verdict in str(raw).lower() for verdict in VERDICTS)
    assert claim.scope == PUBLISHED or claim.scope.startswith("other: ")
    assert claim.scale in SCALES
    assert "|" not in f"{claim.statement}{claim.published}{claim.scope}{claim.reason}"
    words = claim.command.split()
    assert words[:2] == ["python", "-m"]
    assert words[2] in (f"experiments.{name}", "experiments", "wirelessfl.theory", "pytest")
    if words[2] == f"experiments.{name}":
        assert words[3] in {*papers()[name].experiments, *papers()[name].texts, "seconds"}
        assert ("--scale" in words) == (claim.scale != "small") or words[3] == "seconds"


def test_claims_without_runs_are_undecided(tmp_path):
    """Without rows, only what is computed from formulas has a verdict.

    CPU times are in a file of their own.
    """
    for name in TITLES:
        for one in assess(name, rows=tmp_path):
            computed = any(effect.exact for effect in one.effects) or one.claim.id == 47
            assert one.effects
            assert computed or (one.verdict, one.ours) == ("undecided", "runs missing"), (
                one.claim.id
            )


def test_pages_agree_with_the_rows(evidence, by_paper, monkeypatch):
    """If this fails after new rows: ``python -m experiments pages`` writes the pages."""
    monkeypatch.setattr("experiments.pages.assess", lambda name, known: by_paper[name])
    texts = files(evidence)
    pages = [file for file in texts if file.suffix == ".md"]
    assert len(pages) == 2 + sum(1 + len(paper.pages) for paper in papers().values())
    for file, text in texts.items():
        assert file.read_text(encoding="utf-8") == text, file
        others = file.suffix == ".csv" or file.stem in ("decided", "codesign", "choosing")
        assert "| verdict |" in text or others


@pytest.mark.parametrize("text", ["a\n", "<!-- claims -->\nold\nREST", "<!-- end of claims -->"])
def test_pages_without_both_marks_are_left_alone(text, tmp_path):
    """Without the end mark, the rest of the page would be lost."""
    file = tmp_path / "page.md"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"page\.md needs one line <!-- claims -->"):
        module.marked(file, "new")


def test_a_claim_needs_all_its_effects():
    """One contradicting effect contradicts a claim; all effects must confirm it."""
    claim = EVERY[0][1]
    yes, no = Effect("", (5.0, 5.1, 4.9), 1.0), Effect("", (-5.0, -5.1, -4.9), 1.0)
    open_, none = Effect("", (5.0,), 1.0), Effect("x", (), 1.0)
    cases = {
        (yes,): "confirmed",
        (yes, yes): "confirmed",
        (yes, open_): "undecided",
        (yes, none): "undecided",
        (yes, no): "contradicted",
        (none, no): "contradicted",
        (none,): "undecided",
        (): "undecided",
    }
    # Against the best of six others, a contradiction needs the interval of level 1 - 0.05 / 6.
    cases |= {
        (Effect("", (0.0, 0.2, 0.4), 1.0),): "contradicted",
        (Effect("", (0.0, 0.2, 0.4), 1.0, among=6),): "undecided",
    }
    for effects, verdict in cases.items():
        assert Assessed(claim, effects).verdict == verdict
    assert Assessed(claim, (none,)).ours == "runs missing"
    assert Assessed(claim, (open_, none)).ours == "5 (1 seed); x: runs missing"


def test_totals_count_verdicts_and_settings_separately():
    claims = [claim for _, claim in EVERY[:2]]
    assessed = [Assessed(claim, (Effect("", (5.0,), 1.0, exact=True),)) for claim in claims]
    lines = totals(assessed).splitlines()
    published = sum(claim.scope == PUBLISHED for claim in claims)
    assert lines[2] == f"| confirmed | {published} | {2 - published} |"
    few = "undecided, with fewer than three seeds"
    assert lines[3:] == ["| contradicted | 0 | 0 |", "| undecided | 0 | 0 |", f"| {few} | 0 | 0 |"]
    open_ = Effect("", (5.0, -5.0), 1.0), Effect("", (5.0, -5.0, 4.0), 1.0)
    lines = totals([Assessed(claims[0], (one,)) for one in open_]).splitlines()
    column = 2 if claims[0].scope == PUBLISHED else 3
    assert [line.split("|")[column].strip() for line in lines[-2:]] == ["1", "1"]


def test_the_command_prints_one_paper_and_writes_the_pages(by_paper, tmp_path, monkeypatch, capsys):
    readme = tmp_path / "README.md"
    pages = [tmp_path / f"{name.replace('_', '-')}.md" for name in TITLES]
    for file in (readme, *pages):
        file.write_text("a\n<!-- claims -->\nold\n<!-- end of claims -->\nb\n")
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(module, "README", readme)
    monkeypatch.setattr("experiments.__main__.assess", lambda name: by_paper[name])
    assert main(["claims", "ra-fed"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("\n| ") == len(by_paper["ra_fed"]) + 2 + len(VERDICTS)
    assert "old" in readme.read_text()
    assert main(["claims"]) == 0
    assert (tmp_path / "claims.md").read_text() == page(by_paper)
    for file in (readme, *pages):
        text = file.read_text()
        assert "\nold\n" not in text
        assert text.startswith("a\n<!-- claims -->\n| ")
        assert text.endswith("|\n<!-- end of claims -->\nb\n")
