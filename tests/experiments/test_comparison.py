"""Tables and figures of studies that vary settings: labels, places and symbols."""

from types import SimpleNamespace

import pytest

from experiments.comparison import against, table
from experiments.studies import Case, Results, Study
from tests.drawn import finished, lines, ticks

FIXED = {"dataset": "digits", "model": "mlp", "clients_per_round": 20}


def results_of(*settings, accuracy=0.5):
    """One run with a constant accuracy for each case."""
    cases = tuple(Case(FIXED | one, (1,), 0) for one in settings)
    rows = [{"round": i, "accuracy": accuracy, "sim_seconds": 1.0 * i} for i in range(3)]
    run = SimpleNamespace(rows=rows, current=True)
    return Results(Study("by hand", cases), {i: [run] for i in range(len(cases))})


def test_methods_stand_at_the_masks_that_they_use():
    """HeteroFL has no setting for its masks, which are ordered; points at a tick are centred."""
    results = results_of(
        {"algorithm": "fedavg"},
        {"algorithm": "ra-fed", "masks": "random"},
        {"algorithm": "ram-fed", "masks": "random"},
        {"algorithm": "ra-fed", "masks": "covered"},
        {"algorithm": "heterofl"},
    )
    (panel,) = finished(against(results, "masks")).axes
    assert ticks(panel) == ["none", "random", "covered", "ordered"]
    places = {label: x for label, (x, _) in lines(panel).items()}
    assert places["FedAvg"] == [0]
    assert places["HeteroFL"] == [3]
    assert places["RA-Fed"][0] < 1 < places["RAM-Fed"][0]
    assert places["RA-Fed"][0] + places["RAM-Fed"][0] == pytest.approx(2)
    assert places["RA-Fed"][1] == 2
    text = table(results, 0.9)
    assert "| FedAvg | - |" in text
    assert "| HeteroFL | ordered |" in text


def test_costs_are_those_of_the_mean_of_several_tests():
    """Single tests reach 60 % in round 1, the mean of two in round 2."""
    found = results_of({"algorithm": "hist"})
    (case,) = found.study.cases
    rows = [{"round": i, "accuracy": a} for i, a in enumerate((0.1, 0.6, 0.7))]
    results = Results(found.study, {0: [SimpleNamespace(rows=rows, current=True)]})
    assert [results.costs(case, "round", 0.6, tests) for tests in (1, 2)] == [[1.0], [2.0]]
