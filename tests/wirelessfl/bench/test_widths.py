"""Benchmark of widths: both backends run on their problems and give the same answer."""

import pytest

from solvers import fastest_widths
from wirelessfl.bench import widths


def test_rows(monkeypatch):
    monkeypatch.setattr(widths, "_LIMIT_SECONDS", 0.3)
    rows = widths.width_bench(repeats=1)
    for row in rows:
        assert list(row) == ["problem", "backend", "seconds", "ratio_to_exact", "note"]
    exact = {row["problem"]: row["seconds"] for row in rows if row["backend"] == "exact"}
    assert len(exact) == 3
    for row in rows:
        assert row["seconds"] == pytest.approx(row["ratio_to_exact"] * exact[row["problem"]])
    stopped = [row for row in rows if row["problem"].startswith("1000 ")]
    assert [row["backend"] for row in stopped] == ["exact", "highs"]
    assert stopped[1]["note"].endswith(" after 0.3 s")


@pytest.mark.parametrize(("clients", "levels"), [(4, 2), (12, 5), (20, 10)])
def test_highs_solves_the_problem_it_is_timed_on(clients, levels):
    seconds, neurons, coverage = widths._problem(clients, levels)
    objective, note = widths.highs_widths(seconds, neurons, coverage, 60)
    assert note == ""
    assert objective == pytest.approx(fastest_widths(seconds, neurons, coverage).objective, 1e-6)
