"""Tables and figures of studies that vary settings: labels, places and symbols."""

from types import SimpleNamespace

import pytest

from experiments.comparison import against, table
from experiments.fadamgc.search import Pair, pair_text
from experiments.studies import Case, Results, Study
from tests.drawn import facts, lines, ticks
from wirelessfl.results.report import at_edge

FIXED = {"dataset": "digits", "model": "mlp", "clients_per_round": 20}


def results_of(*settings, accuracy=0.5):
    """One run with a constant accuracy for each case."""
    cases = tuple(Case(FIXED | one, (1,), 0) for one in settings)
    rows = [{"round": i, "accuracy": accuracy, "sim_seconds": 1.0 * i} for i in range(3)]
    run = SimpleNamespace(rows=rows, current=True)
    return Results(Study("by hand", cases), {i: [run] for i in range(len(cases))})


def test_methods_stand_at_the_masks_that_they_use(tmp_path, redrawn):
    """HeteroFL has no setting for its masks, which are ordered; points at a tick are centred."""
    results = results_of(
        {"algorithm": "fedavg"},
        {"algorithm": "ra-fed", "masks": "random"},
        {"algorithm": "ram-fed", "masks": "random"},
        {"algorithm": "ra-fed", "masks": "covered"},
        {"algorithm": "heterofl"},
    )
    against("full", "masks")(results, tmp_path)
    (panel,) = redrawn["full"].axes
    assert ticks(panel) == ["none", "random", "covered", "ordered"]
    places = {label: x for label, (x, _) in lines(panel).items()}
    assert places["FedAvg"] == [0]
    assert places["HeteroFL"] == [3]
    assert places["RA-Fed"][0] < 1 < places["RAM-Fed"][0]
    assert places["RA-Fed"][0] + places["RAM-Fed"][0] == pytest.approx(2)
    assert places["RA-Fed"][1] == 2
    text = table(0.9)(results)
    assert "| FedAvg | - |" in text
    assert "| HeteroFL | ordered |" in text


def test_symbols_are_explained(tmp_path, redrawn):
    """On the axis, or above the panels if they are in titles or in the legend."""
    each = [{"algorithm": "hist", "cells": n, "lr": lr} for n in (2, 4) for lr in (0.1, 0.2)]
    against("labels", "cells")(results_of(*each), tmp_path)
    against("scale", "lr", "cells")(results_of(*each), tmp_path)
    (panel,) = redrawn["labels"].axes
    assert panel.get_xlabel() == "number of cells N"
    assert "N:" not in facts(redrawn["labels"])
    assert [panel.get_title() for panel in redrawn["scale"].axes] == ["N = 2", "N = 4"]
    assert facts(redrawn["scale"]).endswith("; N: number of cells")


def test_a_case_tells_which_settings_it_has():
    case = Case({"algorithm": "fedavg", "lr": 0.1}, (1,), 0)
    assert "lr" in case
    assert "cells" not in case
    assert case["cells"] is None


@pytest.mark.parametrize(
    ("best", "tried", "edge"),
    [
        (0.1, [0.01, 0.1, 0.03], True),
        (0.01, [0.01, 0.1, 0.03], True),
        (0.03, [0.01, 0.1, 0.03], False),
        (0.1, [0.1, 0.1], False),
        ("random", ["random", "ordered"], False),
        (True, [True, False], False),
        (None, [], False),
    ],
)
def test_a_best_value_is_at_the_edge_if_none_was_tried_on_one_side(best, tried, edge):
    assert at_edge(best, tried) is edge


def test_a_table_marks_best_values_at_the_edge_of_the_grid():
    """The best one is that of the highest accuracy, or with several tests of the lowest cost."""
    rates = (0.1, 0.2, 0.4)
    found = results_of(*({"algorithm": a, "lr": r} for a in ("hist", "moon") for r in rates))
    accuracies = [0.5, 0.6, 0.5, 0.5, 0.6, 0.7]
    runs = {
        i: [SimpleNamespace(rows=[{"round": j, "accuracy": a} for j in range(3)], current=True)]
        for i, a in enumerate(accuracies)
    }
    text = table(0.65, "round", best="lr")(Results(found.study, runs))
    assert "| HIST | 0.2 | 3 |" in text
    assert "| MOON | 0.4 (edge of the grid) | 3 |" in text
    text = table(0.65, "round", best="lr", tests=2)(Results(found.study, runs))
    assert "| MOON | 0.4 (edge of the grid) | 3 |" in text


def test_pairs_of_step_sizes_are_marked_by_axis():
    tried = [Pair(a, b) for a in (0.1, 0.2, 0.4) for b in (1.0, 2.0, 4.0)]
    assert pair_text(Pair(0.2, 2.0), tried) == "0.2 / 2"
    assert pair_text(Pair(0.4, 2.0), tried) == "0.4 (edge of the grid) / 2"
    assert pair_text(Pair(0.2, 1.0), tried) == "0.2 / 1 (edge of the grid)"
