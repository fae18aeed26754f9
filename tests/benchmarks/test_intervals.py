"""Coverage of predicted intervals: the table, and one design that is trained."""

import pytest

from benchmarks.intervals import NETWORKS, Held, held, table


def test_the_table_counts_runs():
    found = {
        "a": [Held(0.5, True, False, True, True, True), Held(2.0, True, True, True, False, False)],
        "b": [Held(1.0, False, False, False, False, False)],
    }
    assert [line.split(" | ")[2:] for line in table(found).splitlines()[2:]] == [
        ["2 of 2", "1 of 2", "2 of 2", "1 of 2", "1 of 2 |"],
        ["0 of 1", "0 of 1", "0 of 1", "0 of 1", "0 of 1 |"],
        ["2 of 3", "1 of 3", "2 of 3", "1 of 3", "1 of 3 |"],
    ]
    assert "| all | 0.5 to 2 |" in table(found)


@pytest.mark.thorough
def test_a_design_is_trained(tmp_path):
    few = {"local_steps": [5, 10, 20], "pilots": 3, "pilot_steps": 400, "draws": 2}
    found = held(next(iter(NETWORKS)), 1, tmp_path, **few)
    assert 0 < found.ratio < 100
