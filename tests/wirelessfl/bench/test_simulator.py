"""The simulator's benchmark at a few updates: its tables, and that the ways do the same work."""

import pytest

from wirelessfl.bench import simulator, workloads
from wirelessfl.bench.executors import PLAIN


def test_tables(monkeypatch):
    nowhere = type("Place", (), {"folder": workloads.Path("/nowhere")})
    monkeypatch.setattr(workloads, "find_place", lambda *_: nowhere)
    monkeypatch.setattr(simulator, "WorkersExecutor", lambda inner, count: inner)  # slow to start
    monkeypatch.setattr(simulator, "REQUESTS", 4)
    tables = simulator.simulator_bench(repeats=1, updates=600, merges=2)
    events, training, goals = tables.values()
    assert [(row["tasks"], row["clients"]) for row in events] == [
        (2, 1000),
        (10, 100_000),
        (2, 1000),
    ]
    for row in events:
        assert row["updates_a_second"] > 0
        assert row["state_mib"] < 20  # 10^5 clients cost what works, not what is registered
    plain, *others, floor = training
    assert plain["way"] == PLAIN
    assert plain["ratio"] == 1
    for row in (*others, floor):
        assert row["ratio"] == pytest.approx(plain["ms_an_update"] / row["ms_an_update"])
    assert len(goals) == 2
    assert all(row["verdict"].startswith(("met", "not met")) for row in goals)
