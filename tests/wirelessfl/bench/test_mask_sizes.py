"""Benchmark of mask sizes: backends run on their problems; unavailable ones are named once."""

import pytest

from solvers import available_backends
from wirelessfl.bench import mask_sizes


def test_rows(monkeypatch):
    monkeypatch.setattr(mask_sizes, "_LIMIT_SECONDS", 0.3)
    monkeypatch.setattr(
        mask_sizes,
        "available_backends",
        lambda: available_backends() | {"gurobi": "its licence is away"},
    )
    rows = mask_sizes.mask_size_bench(repeats=1)
    for row in rows:
        assert list(row) == ["problem", "backend", "seconds", "ratio_to_exact", "note"]
    exact = {row["problem"]: row["seconds"] for row in rows if row["backend"] == "exact"}
    assert len(exact) == 5
    for row in rows:
        if row["problem"] in exact:
            assert row["seconds"] == pytest.approx(row["ratio_to_exact"] * exact[row["problem"]])
    assert [row for row in rows if row["backend"] == "gurobi"] == [
        {
            "problem": "all",
            "backend": "gurobi",
            "seconds": None,
            "ratio_to_exact": None,
            "note": "its licence is away",
        }
    ]
    stopped = [row for row in rows if row["problem"] == "N = 1000" and row["backend"] == "highs"]
    assert stopped[0]["note"].endswith(" after 0.3 s")
