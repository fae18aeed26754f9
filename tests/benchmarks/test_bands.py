"""Bands benchmark: both methods solve its problems and agree."""

import pytest

from benchmarks import bands
from solvers import SolverUnavailableError


def test_rows(monkeypatch):
    """cvxpy ends at the same time; a method that is unavailable has a row with the reason."""
    monkeypatch.setattr(bands, "_CASES", bands._CASES[1:])
    rows = bands.band_bench(repeats=1, most=300)
    for row in rows:
        assert list(row) == ["problem", "backend", "seconds", "ratio_to_newton", "gap", "note"]
    names = [(row["problem"], row["backend"]) for row in rows]
    assert names == [
        ("50 clients", "newton"),
        ("50 clients", "cvxpy"),
        ("20 x 15 clients", "newton"),
        ("300 clients", "newton"),
    ]
    assert all(row["gap"] < 1e-13 for row in rows if row["backend"] == "newton")
    (other,) = (row for row in rows if row["backend"] == "cvxpy")
    assert other["gap"] < 1e-5
    assert other["ratio_to_newton"] == pytest.approx(other["seconds"] / rows[0]["seconds"])

    def without(uploads, best):
        raise SolverUnavailableError("cvxpy cannot be imported")

    monkeypatch.setitem(bands._METHODS, "cvxpy", without)
    row = bands.band_bench(repeats=1, most=50)[1]
    assert (row["seconds"], row["note"]) == (None, "cvxpy cannot be imported")


def test_bands_in_time():
    """The cone program ends at the same time."""
    first, cone, *others = bands.in_time_bench(repeats=1, most=12)
    assert [row["backend"] for row in (first, cone)] == ["prices", "cvxpy in time"]
    assert cone["gap"] < 1e-5
    assert cone["ratio_to_prices"] == pytest.approx(cone["seconds"] / first["seconds"])
    assert all(row["gap"] < 1e-8 for row in (first, *others))
