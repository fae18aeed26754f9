"""Benchmark of the simulator with few updates: its tables."""

import pytest

from wirelessfl.bench import simulator, workloads
from wirelessfl.bench.executors import PLAIN
from wirelessfl.bench.timing import AT_SGEMM


def test_tables(monkeypatch):
    nowhere = type("Place", (), {"folder": workloads.Path("/nowhere")})
    monkeypatch.setattr(workloads, "find_place", lambda *_: nowhere)
    monkeypatch.setattr(simulator, "WorkersExecutor", lambda inner, count: inner)  # slow to start
    monkeypatch.setattr(simulator, "REQUESTS", 4)
    tables = simulator.simulator_bench(repeats=1, updates=600, merges=2)
    events, training = tables.values()
    assert [(row["tasks"], row["clients"]) for row in events] == [
        (2, 1000),
        (10, 100_000),
        (2, 1000),
    ]
    for row in events:
        assert row["updates_per_second"] > 0
        assert row["state_mib"] < 20  # memory grows with busy, not with registered clients
    plain, *others, bound = training
    assert plain["method"] == PLAIN
    assert plain["ratio"] == 1
    assert bound["method"] == AT_SGEMM
    for row in (*others, bound):
        assert row["ratio"] == pytest.approx(plain["ms_per_update"] / row["ms_per_update"])
