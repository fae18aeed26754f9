"""What would decide an undecided claim."""

import statistics
from dataclasses import replace

import pytest

from experiments.claims import assess
from experiments.evidence import Evidence
from experiments.papers import papers
from experiments.studies import Study
from experiments.undecided import need, needs, with_seeds
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.intervals import Effect
from wirelessfl.results.outcomes import Signs, outcome

SPREAD = Effect("", (0.0, 2.0, 4.0), 1.0)
"""Mean 2, deviation 2: its interval is 2 -+ t 2 / sqrt(n)."""


def test_further_seeds_keep_mean_and_deviation():
    for count in (4, 5, 12, 33):
        more = with_seeds(SPREAD, count)
        assert len(more.values) == count
        assert statistics.mean(more.values) == pytest.approx(2.0)
        assert statistics.stdev(more.values) == pytest.approx(2.0)
    assert with_seeds(SPREAD, 3) is SPREAD
    rounded = with_seeds(Effect("", (1.0, 1.0, 1.0), 0.5, rounding=0.1), 9)
    assert statistics.stdev(rounded.values) == pytest.approx(0.1)


def test_number_of_seeds_by_hand():
    """The interval ends at 1 with 2 t / sqrt(n) = 1: n = 18 (t = 2.110) is 0.995, 17 is 1.028."""
    assert outcome([SPREAD]) == "undecided"
    result = need("1a", [SPREAD], seconds=240.0)
    assert (result.have, result.seeds, result.outcome) == (3, 18, "agrees")
    assert result.hours == pytest.approx(15 * 240 / 3600)


def test_what_no_number_of_seeds_decides():
    negative = Effect("", (-5.0, -5.1, -4.9), 1.0)
    at_least = Effect("", (0.9, 1.0, 1.1), 1.0)
    missed = Effect("", (0.9, 1.0), 1.0, unknown=1)
    signs = Signs("", (1.0, 1.0, -1.0))
    for effects, words in [
        ([SPREAD, negative], "differ: agrees, opposite"),
        ([at_least], "mean is so near the least effect"),
        ([missed], "longer runs"),
        ([signs], "more settings"),
    ]:
        result = need("1a", effects, seconds=1.0)
        assert result.seeds is None
        assert words in result.reason


def test_cost_is_that_of_the_runs_that_the_claim_compares():
    """Claim 8b compares two cases of study ``cap``."""
    paper = papers()["hist"]
    evidence = Evidence.of(paper)
    (claim,) = (one for one in assess("hist", evidence) if one.claim.id == "8b")
    results = evidence.study("cap")
    seconds = [
        statistics.mean(run.seconds for run in results.of(case))
        for case in results.where(slowdown=3)
        if case["mask_sizes"] == "uniform" or case["size_cap"] == 1.5
    ]
    assert len(seconds) == 2
    assert claim.seconds == pytest.approx(sum(seconds))
    (result,) = needs([replace(claim, effects=(SPREAD,))])
    assert result.hours == pytest.approx(15 * sum(seconds) / 3600)


def test_further_seeds_of_a_settings_file(tmp_path):
    file = tmp_path / "fig1.toml"
    file.write_text(
        '[settings]\nseeds = [1, 2]\n[[grid]]\nalgorithm = "hist"\ncells = [2, 4, 6]\n'
        '[[further]]\nwhere = { algorithm = "hist", cells = [2, 6] }\nseeds = [2, 3]\n',
        encoding="utf-8",
    )
    seeds = [case.seeds for case in Study.load(file, "small").cases]
    assert seeds == [(1, 2, 3), (1, 2), (1, 2, 3)]
    assert {case.seeds for case in Study.load(file, "paper").cases} == {(1, 2)}
    text = file.read_text(encoding="utf-8").replace("[2, 6]", "8")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"no case has the settings .*8.* of \[\[further\]\]"):
        Study.load(file, "small")
