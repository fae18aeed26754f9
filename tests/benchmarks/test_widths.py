"""Width benchmark: both backends solve its problems and give the same answers."""

import itertools
import statistics
from types import SimpleNamespace

import pytest

from benchmarks import widths
from solvers import fastest_widths


@pytest.mark.thorough
def test_rows(monkeypatch):
    """Median times and ratios match a fake clock; HiGHS stops at its time limit."""
    monkeypatch.setattr(widths, "_LIMIT_SECONDS", 0.3)
    highs, numbers = widths.highs_widths, itertools.count()

    def patient(seconds, neurons, coverage, limit):
        return highs(seconds, neurons, coverage, limit if len(seconds) == 1000 else 60)

    monkeypatch.setattr(widths, "highs_widths", patient)
    clock = SimpleNamespace(perf_counter=lambda: float(next(numbers) ** 2))
    monkeypatch.setattr(widths, "time", clock)
    rows = widths.width_bench(repeats=2)
    for row in rows:
        assert list(row) == ["problem", "backend", "seconds", "ratio_to_exact", "note"]
    exact = {row["problem"]: row["seconds"] for row in rows if row["backend"] == "exact"}
    assert len(exact) == 3
    # Runs are interleaved. The first is a warm-up, except of a backend that was stopped in it.
    looked = itertools.count()
    for problem in exact:
        mine = {row["backend"]: row for row in rows if row["problem"] == problem}
        times = {name: [] for name in mine}
        for turn, name in itertools.product(range(3), mine):
            stopped = mine[name]["note"]
            if turn and stopped:
                continue
            begin = next(looked) ** 2
            if turn or stopped:
                times[name].append(next(looked) ** 2 - begin)
        for name, row in mine.items():
            assert row["seconds"] == statistics.median(times[name])
            assert row["ratio_to_exact"] == pytest.approx(row["seconds"] / exact[problem])
    stopped = [row for row in rows if row["problem"].startswith("1000 ")]
    assert [row["backend"] for row in stopped] == ["exact", "highs"]
    assert stopped[1]["note"].endswith(" after 0.3 s")


@pytest.mark.parametrize(("clients", "levels"), [(4, 2), (12, 5), (20, 10)])
def test_highs_and_the_exact_method_agree(clients, levels):
    seconds, neurons, coverage = widths._problem(clients, levels)
    objective, note = widths.highs_widths(seconds, neurons, coverage, 60)
    assert note == ""
    assert objective == pytest.approx(fastest_widths(seconds, neurons, coverage).objective, 1e-6)
