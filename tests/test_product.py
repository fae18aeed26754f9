"""Every invalid combination of choices is refused, and every compatible pair of choices runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.product.combinations import (
    Combination,
    by_seconds,
    by_votes,
    combinations,
    pairwise,
    table,
)
from tests.product.running import all_wrong
from tests.quick import fewer_steps, models_checked_once

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "combinations.md"


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Runs find beamformers in fewer steps, and check equal models once."""
    with fewer_steps(), models_checked_once():
        yield


@pytest.fixture(scope="module")
def valid():
    return [combination for combination in combinations() if combination.refusal() is None]


def test_all_refusals_name_two_choices_and_a_remedy(valid):
    refused = set(combinations()) - set(valid)
    assert len(refused) > 100
    assert all_wrong(refused) == []


@pytest.mark.thorough
def test_every_compatible_pair_of_choices_runs(valid):
    """Every pair of compatible choices occurs in a run; every second run compresses its model.

    These compute on devices, the other ones have pilots and clients that move. In some of either,
    clients come and go, and have batteries and rates of modulation and coding.
    """
    some = pairwise(valid)
    covered = set().union(*(combination.pairs for combination in some))
    assert covered == set().union(*(combination.pairs for combination in valid))
    compressed = [replace(c.compressed, devices="mixed") for c in some[1::2]]
    assert {(c.schedule, c.sessions) for c in compressed} == {
        (c.schedule, c.sessions) for c in some
    }
    assert {"none", "sign"} == {c.sent for c in compressed}
    pilots = [replace(combination, pilots=True, moves=True) for combination in some[::2]]
    limited = [replace(combination, limited=True) for combination in some[::3]]
    assert all_wrong(pilots + compressed + limited) == []


@pytest.mark.thorough
def test_submodels_by_seconds_run_or_are_refused():
    """Each schedule and uplink, with one server and with cells."""
    assert all_wrong(by_seconds()) == []


@pytest.mark.thorough
def test_signs_over_the_air_run_or_are_refused():
    """Every pair of the choices that can send signs runs; trackers, models and singles cannot."""
    refused = [combination for combination in by_votes() if combination.refusal() is not None]
    assert {combination.algorithm for combination in refused} >= {"scaffold", "fadamgc"}
    signs = [combination for combination in by_votes() if combination.refusal() is None]
    assert all_wrong(refused + pairwise(signs)) == []


def test_the_page_matches_the_combinations():
    assert PAGE.read_text(encoding="utf-8") == table(combinations())


def test_bad_refusals_are_detected(monkeypatch):
    """A refusal must name two choices and a remedy in one line."""
    some = Combination("ram-fed", "rounds", "aircomp")
    assert all_wrong([some]) == []
    for text, words in (
        ("something is wrong. Choose another", "without naming"),
        ('"ram-fed" over "aircomp" is impossible.', "without a remedy"),
        ('"ram-fed" over "aircomp".\nChoose another.', "in several lines"),
    ):
        monkeypatch.setattr(Combination, "refusal", lambda own, text=text: text)
        (found,) = all_wrong([some])
        assert words in found
