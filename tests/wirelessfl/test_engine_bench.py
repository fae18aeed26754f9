"""The engine's benchmark at two clients: its rows, and that all ways do the same work."""

import numpy as np
import pytest
import torch

from channels.streams import Stream
from wirelessfl.bench import engine
from wirelessfl.bench.report import bench
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.executor import TrainingData
from wirelessfl.training.loop import LoopExecutor
from wirelessfl.training.task import Task
from wirelessfl.training.vmapped import VmapExecutor


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.setattr(engine, "find_place", lambda *_: type("Place", (), {"folder": NOWHERE}))


NOWHERE = engine.Path("/nowhere")


def test_rows(no_data):
    rows = engine.engine_bench(repeats=1, clients=2)
    assert [row["work"] for row in rows] == ["W1 (random data)"] * 4 + ["W2 (random data)"] * 4
    for plain, *others, floor in (rows[:4], rows[4:]):
        assert plain["way"].startswith("plain loop")
        assert plain["ratio"] == 1.0
        assert floor["percent_of_floor"] == 100.0
        for row in (plain, *others, floor):
            assert row["seconds"] > 0
            assert row["ratio"] == pytest.approx(plain["seconds"] / row["seconds"])
            assert row["percent_of_floor"] == pytest.approx(100 * floor["seconds"] / row["seconds"])


def test_flop_counts():
    """Three times the forward pass: 2 FLOP a weight and sample in W1, a use and sample in W2."""
    samples = engine.CLIENTS * engine.STEPS * engine.BATCH
    first, second = engine.works()
    assert first.flop == pytest.approx(3 * 2 * samples * (784 * 300 + 300 * 10), rel=1e-3)
    conv = 24 * 24 * 6 * 25 + 8 * 8 * 16 * 150
    dense = 256 * 120 + 120 * 84 + 84 * 10
    assert second.flop == pytest.approx(3 * 2 * samples * (conv + dense), rel=1e-3)


def test_the_ways_agree():
    """A round of the loop and of the engine end in the same mean; the plain loop shuffles."""
    work = engine.works()[0]
    task = Task.of(work.module)
    start = task.spec.from_module(work.module)
    x, y = torch.rand(2000, 1, 28, 28), torch.arange(2000) % 10
    parts = [np.arange(1000), np.arange(1000, 2000)]
    data = TrainingData(x, y, BatchSource(parts, engine.BATCH, Stream(0)))
    loop = engine.engine_round(LoopExecutor(task, data), task, start, parts)
    vmapped = engine.engine_round(VmapExecutor(task, data, chunk=2), task, start, parts)
    assert torch.allclose(loop, vmapped, atol=1e-6)
    plain = engine.plain_loop(work.module, x, y, parts)
    moved = (loop - start).norm()
    assert (plain - loop).norm() < 0.5 * moved  # the same passes in another order


def test_json(no_data, monkeypatch, capsys):
    import json

    monkeypatch.setattr(engine, "engine_bench", lambda *_: [{"way": "known", "seconds": 1.0}])
    assert bench("engine", 1, None, as_json=True) == 0
    (rows,) = json.loads(capsys.readouterr().out).values()
    assert rows == [{"way": "known", "seconds": 1.0}]
    assert bench("engine", 1, None, as_json=False) == 0
    assert "known" in capsys.readouterr().out
