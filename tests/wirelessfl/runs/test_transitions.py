"""Drops and recoveries by hand and, for random rows, by their definition."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wirelessfl.runs.summaries import Transition, transitions


def rows_of(*sessions):
    """Rows of sessions from ``{round of the session: accuracy}``."""
    return [
        {"session": s, "session_round": t, "accuracy": accuracy}
        for s, own in enumerate(sessions)
        for t, accuracy in own.items()
    ]


def test_numbers_by_hand():
    rows = rows_of(
        {0: 0.1, 1: 0.5, 2: 0.8},
        {0: 0.2, 1: 0.4, 2: 0.6, 5: 0.795, 9: 0.7},
        {0: 0.75, 1: 0.76, 2: 0.9},
    )
    one, two = transitions(rows, first=5, tolerance=0.01)
    assert one == Transition(1, 0.8, pytest.approx((0.4 + 0.6 + 0.795) / 3), pytest.approx(0.6), 5)
    assert two == Transition(2, 0.7, pytest.approx(0.83), pytest.approx(-0.05), 0)
    strict = transitions(rows, first=5, tolerance=0)
    assert [own.rounds_to_recover for own in strict] == [None, 0]


def test_a_recovery_may_come_after_the_first_rounds():
    (only,) = transitions(rows_of({1: 0.8}, {0: 0.1, 1: 0.2, 2: 0.3, 30: 0.8}), first=2)
    assert only == Transition(1, 0.8, pytest.approx(0.25), pytest.approx(0.7), 30)


def test_a_round_with_two_rows_counts_once():
    """The row that the time limit adds after an evaluated round changes no transition."""
    rows = rows_of({0: 0.1, 1: 0.8}, {0: 0.2, 1: 0.3, 2: 0.7})
    again = {"session": 1, "session_round": 2, "accuracy": 0.7}
    assert transitions([*rows, again]) == transitions(rows)
    assert transitions(rows)[0].mean_accuracy == pytest.approx(0.5)
    start = rows_of({0: 0.1, 1: 0.8}, {0: 0.2})
    assert transitions([*start, start[-1]]) == []


def test_a_session_without_trained_rounds_has_no_transition():
    assert transitions(rows_of({0: 0.1, 1: 0.8}, {0: 0.3})) == []
    assert transitions(rows_of({0: 0.1})) == []
    assert transitions([]) == []


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=15), min_size=2, max_size=5),
    st.integers(1, 20),
)
def test_transitions_of_random_rows_match_their_definition(sessions, first):
    found = transitions(rows_of(*[dict(enumerate(own)) for own in sessions]), first=first)
    assert [own.session for own in found] == list(range(1, len(sessions)))
    for (before, own), one in zip(pairwise(sessions), found, strict=True):
        assert one.before == before[-1]
        assert one.mean_accuracy == pytest.approx(statistics.mean(own[1 : first + 1]))
        assert one.drop == one.before - min(own[: first + 1])
        late = one.rounds_to_recover
        assert all(value < one.before - 0.01 for value in own[:late])
        assert late is None or own[late] >= one.before - 0.01


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [{"round": 1, "accuracy": 0.5}],
            "row 0 has no 'session': give evaluated rows of a run with --sessions",
        ),
        ([{"session": 0, "session_round": 1, "accuracy": None}], "row 0 has no 'accuracy'"),
        (rows_of({1: 0.5}, {1: 0.5})[1:], "row 0 belongs to session 1, but session 0 was"),
        (rows_of({1: 0.5}, {0: 0.1, 20: 0.5}), "session 1 has no row for rounds 1 to 10"),
    ],
    ids=["no sessions", "untested", "a session missing", "tested too rarely"],
)
def test_rows_without_transitions_are_refused(rows, said):
    with pytest.raises(ValueError, match=said):
        transitions(rows)


def test_zero_first_rounds_are_refused():
    with pytest.raises(ValueError, match="first is 0"):
        transitions([], first=0)


def test_rows_of_regression_have_no_transitions():
    rows = [{"session": 0, "session_round": 0, "loss": 1.0}]
    with pytest.raises(ValueError, match=r"rows have no accuracy, as in regression: transitions"):
        transitions(rows)
