"""A sample has some cases of thorough tests, and all other tests."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.sampling import left_out


class Item(SimpleNamespace):
    """A collected test: a case of ``test``."""

    __hash__ = object.__hash__

    def get_closest_marker(self, name):
        assert name == "thorough"
        return self.mark


def cases(test, number, mark, file="test_one.py"):
    """The cases of a test."""
    return [
        Item(path=Path(file), cls=None, originalname=test, name=f"{test}[{case}]", mark=mark)
        for case in range(number)
    ]


@pytest.mark.parametrize(("number", "kept"), [(1, 1), (7, 1), (8, 1), (9, 2), (64, 8)])
def test_one_of_eight_cases_is_kept_and_at_least_one(number, kept):
    """Each family of cases by itself, and the same ones however many others are collected."""
    every = pytest.mark.thorough(every=8).mark
    one = cases("test_a", number, every)
    others = cases("test_b", 20, every) + cases("test_a", 20, every, file="test_two.py")
    out = left_out(one)
    assert len(out) == number - kept
    assert out == left_out(others + one) & set(one)
    assert len(left_out(others)) == 40 - 6


def test_a_thorough_test_is_left_out_and_others_are_kept():
    out = cases("test_a", 3, pytest.mark.thorough.mark)
    kept = cases("test_b", 3, None)
    assert left_out(out + kept) == set(out)


def test_neighbours_in_a_table_are_not_sampled_at_equal_distances():
    """A stride through two parameters would always meet the same value of the second one."""
    items = cases("test_a", 64, pytest.mark.thorough(every=8).mark)
    kept = [place for place, item in enumerate(items) if item not in left_out(items)]
    assert len({place % 8 for place in kept}) > 3
