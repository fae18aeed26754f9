"""Every combination of choices runs or is refused; those that run are covered by pairs."""

from pathlib import Path

import pytest

from tests.product.combinations import Combination, combinations, pairwise, table
from tests.product.running import all_wrong

PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"


@pytest.fixture(scope="module")
def valid():
    return [combination for combination in combinations() if combination.refusal() is None]


def test_all_refusals_name_two_choices_and_a_remedy(valid):
    refused = set(combinations()) - set(valid)
    assert len(refused) > 100
    assert all_wrong(refused) == []


def test_pairs_of_choices_that_go_together_run(valid):
    """In one process; every two choices that go together occur together."""
    some = pairwise(valid)
    covered = set().union(*(combination.pairs for combination in some))
    assert covered == set().union(*(combination.pairs for combination in valid))
    assert all_wrong(some) == []


def test_the_page_is_what_the_combinations_say():
    assert PAGE.read_text(encoding="utf-8") == table(combinations())


def test_a_refusal_without_a_name_or_a_remedy_would_be_found(monkeypatch):
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
