"""Tables and figures of studies that vary settings: labels, places and symbols."""

from types import SimpleNamespace

import pytest

from experiments.comparison import against, table
from experiments.studies import Case, Results, Study
from tests.drawn import facts, legend, lines, ticks

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


def test_labels_tell_how_a_reference_differs(tmp_path, redrawn):
    masks = [
        {"mask_sizes": "uniform"},
        *({"mask_sizes": "optimized", "size_cap": c} for c in (1, 2)),
    ]
    results = results_of(*({"algorithm": "hist"} | one for one in masks))
    against("cap", "size_cap", reference=("mask_sizes", "uniform"))(results, tmp_path)
    assert legend(redrawn["cap"]) == ["HIST, uniform masks", "HIST, optimized masks"]
    (panel,) = redrawn["cap"].axes
    assert panel.get_xlabel() == "cap on the size of a submodel / equal share"


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
