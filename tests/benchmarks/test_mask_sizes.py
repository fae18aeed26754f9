"""Mask-size benchmark: its rows, including those of unavailable backends."""

import statistics

import pytest

from benchmarks import mask_sizes
from solvers import Status, available_backends


@pytest.mark.thorough
def test_rows(monkeypatch):
    """Rows have median times without warm-up; unavailable backends have one row with a note."""
    monkeypatch.setattr(mask_sizes, "_LIMIT_SECONDS", 0.3)
    cases = [
        case._replace(shape=tuple(min(size, 10_000) for size in case.shape))
        for case in mask_sizes._CASES
    ]
    monkeypatch.setattr(mask_sizes, "_CASES", cases)
    monkeypatch.setattr(
        mask_sizes,
        "available_backends",
        lambda: available_backends() | {"gurobi": "no licence"},
    )
    found, solve = {}, mask_sizes.optimize_mask_sizes

    def solved(seconds, *args, backend, **kwargs):
        solution = solve(seconds, *args, backend=backend, **kwargs)
        found.setdefault(seconds.tobytes(), {}).setdefault(type(backend), []).append(solution)
        return solution

    monkeypatch.setattr(mask_sizes, "optimize_mask_sizes", solved)
    rows = mask_sizes.mask_size_bench(repeats=3)
    for row in rows:
        assert list(row) == ["problem", "backend", "seconds", "ratio_to_exact", "note"]
    exact = {row["problem"]: row["seconds"] for row in rows if row["backend"] == "exact"}
    assert len(exact) == 5
    shown = iter(row for row in rows if row["problem"] in exact)
    for by_backend in found.values():
        optima = [of[0].objective for of in by_backend.values() if of[0].status is Status.OPTIMAL]
        for solutions in by_backend.values():
            row = next(shown)
            # The first is a warm-up unless it reached the time limit; later ones may reach it too.
            timed = [solution.seconds for solution in solutions[1:] or solutions]
            assert row["note"] or len(timed) == 3
            assert row["seconds"] == statistics.median(timed)
        for optimum in optima:
            assert optimum == pytest.approx(optima[0], rel=1e-6), "different optima of one problem"
    for row in rows:
        if row["problem"] in exact:
            assert row["seconds"] == pytest.approx(row["ratio_to_exact"] * exact[row["problem"]])
    assert [row for row in rows if row["backend"] == "gurobi"] == [
        {
            "problem": "all",
            "backend": "gurobi",
            "seconds": None,
            "ratio_to_exact": None,
            "note": "no licence",
        }
    ]
    stopped = [row for row in rows if row["problem"] == "N = 1000" and row["backend"] == "highs"]
    assert stopped[0]["note"].endswith(" after 0.3 s")
