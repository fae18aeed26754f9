"""The benchmark of ``optimize_rounds``."""

import pytest

from benchmarks.training_rounds import cells_bench, rounds_bench


@pytest.mark.thorough
def test_a_small_grid_is_measured():
    rows = rounds_bench(repeats=1, local=3, edge=2, draws=1)
    assert [row["points"] for row in rows] == [6, 6, 6]
    assert all(row["seconds"] > 0 and row["ratio_point_by_point"] > 0 for row in rows)
    assert all(row["gap"] <= 1e-4 for row in rows)


@pytest.mark.thorough
def test_many_cells_are_measured():
    few, many = cells_bench(repeats=1, cells=(9, 10), highs=9)
    assert few["ratio_highs"] > 0
    assert many["ratio_highs"] is None
    assert max(few["gap"], many["gap"]) <= 1e-4
