"""Submodel benchmark with different widths: its rows, and equal work of all methods."""

import json

import pytest
import torch

from benchmarks import submodels, suite, workloads
from benchmarks.executors import FAST
from wirelessfl.cli import main
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor

CLIENTS = 8


@pytest.mark.thorough
def test_rows(monkeypatch, known_times, take_turns):
    """Numbers of batches, trained parameters and ratios are right for each padding limit."""
    few = {name: way for name, way in submodels.engines().items() if name != FAST}
    monkeypatch.setattr(submodels, "engines", lambda: few)  # workers take seconds to start
    tables = submodels.submodel_bench(repeats=3, clients=CLIENTS, steps=1, samples=20)
    begun = 0
    assert len(tables) == len(submodels.models()) * len(submodels.mixtures(CLIENTS)) * len(few)
    for title, rows in tables.items():
        assert "random data" in title
        assert [row["method"] for row in rows] == list(submodels.PADDINGS)
        equal, *_, widest, masked = rows
        assert equal["jobs"] == (CLIENTS if "all different" in title else 4)
        assert widest["jobs"] == masked["jobs"] == 1
        percents = [row["percent_of_parameters"] for row in rows]
        assert percents[-2:] == [100, 100]  # one client has the full model
        shares = percents[:-2]
        assert 0 < shares[0] <= shares[1] <= shares[2] < 100
        assert shares[1] * (1 - 0.1) <= shares[0]
        assert shares[2] * (1 - 0.3) <= shares[0]
        times, begun = take_turns(submodels.PADDINGS, 3, begun), begun + 3 * len(rows)
        for row in rows:
            first, middle, last = times[row["method"]]
            assert 1 <= row["chunk"] <= CLIENTS
            assert row["seconds"] == middle
            assert row["range"] == f"{first} - {last}"
            assert row["ratio_to_equal"] == pytest.approx(middle / times[submodels.EQUAL][1])
            assert row["ratio_to_masked"] == pytest.approx(middle / times[submodels.MASKED][1])


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("kind", [StackedExecutor, VmapExecutor])
@pytest.mark.parametrize("name", ["MLP", "LeNet-5"])
def test_all_paddings_give_the_same_updates(name, kind):
    """Updates do not depend on padding and are zero outside a client's submodel."""
    x, y = workloads.random_samples(20 * CLIENTS)
    objective, data = Objective.of(submodels.models()[name]), workloads.client_data(x, y, CLIENTS)
    executor = kind(objective, data, 3)
    for capacities in submodels.mixtures(CLIENTS).values():
        whole = workloads.job_of(objective, CLIENTS, 2)
        mixture = submodels.Mixture.of(objective, x[:2], capacities, whole)
        masks, found = mixture.submodels.covers(whole.clients), {}
        for way, padding in submodels.PADDINGS.items():
            update = found[way] = torch.zeros(CLIENTS, objective.spec.size)
            for some in mixture.train(executor, padding):
                update[torch.from_numpy(some.rows)] = some.update
            assert (update[~masks] == 0).all(), way
            assert torch.allclose(update, found[submodels.EQUAL], atol=1e-6), way
            total = mixture.total(executor, padding)
            assert torch.allclose(total, update.sum(0), atol=1e-6), way
        assert (found[submodels.EQUAL].abs().amax(1) > 1e-3).all()
        lengths = mixture.submodels.lengths.tolist()
        assert max(lengths) == objective.spec.size > 4 * min(lengths)


def test_bench_submodels_runs_it_and_quick_uses_few_clients(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        submodels, "submodel_bench", lambda *_, **few: asked.append(few) or {"table": [{"jobs": 1}]}
    )
    assert main(["bench", "submodels", "--quick", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"table (quick run)": [{"jobs": 1}]}
    assert suite.bench("submodels", 1, None, as_json=True, quick=False) == 0
    assert [few.get("clients") for few in asked] == [4, None]
