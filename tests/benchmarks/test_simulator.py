"""Simulator benchmark with few updates: its tables."""

import itertools
import statistics
from types import SimpleNamespace

import pytest

from benchmarks import simulator, workloads
from benchmarks.executors import PLAIN


@pytest.mark.thorough
def test_tables(monkeypatch, known_times, take_turns):
    """Rates and ratios match fake clocks; the memory of the state is bounded."""
    nowhere = type("Place", (), {"folder": workloads.Path("/nowhere")})
    monkeypatch.setattr(workloads, "find_place", lambda *_: nowhere)
    monkeypatch.setattr(workloads, "SAMPLES", 100)
    monkeypatch.setattr(simulator, "WorkersExecutor", lambda inner, count: inner)  # slow to start
    monkeypatch.setattr(simulator, "REQUESTS", 4)
    monkeypatch.setattr(simulator, "MANY", 8)
    monkeypatch.setattr(simulator, "BANDS", (3, 5))
    numbers = itertools.count()
    second = SimpleNamespace(perf_counter=lambda: float(next(numbers)))
    monkeypatch.setattr(simulator, "time", second)  # each reading is 1 s after the last
    run, counts = simulator._run, []

    def counted(*words):
        seconds, updates = run(*words)
        counts.append(updates)
        return seconds, updates

    monkeypatch.setattr(simulator, "_run", counted)
    tables = simulator.simulator_bench(repeats=3, updates=600, merges=2)
    events, bands, training = tables.values()
    assert [row["uploads"] for row in bands] == [3, 3, 3, 5, 5, 5]
    for row, plain in zip(bands, 3 * [bands[1]] + 3 * [bands[4]], strict=True):
        assert row["ratio"] == pytest.approx(
            row["uploads_per_second"] / plain["uploads_per_second"]
        )
    assert [(row["tasks"], row["clients"], row["requests"]) for row in events] == [
        (1, 1000, 4),
        (10, 100_000, 4),
        (1, 1000, 4),
        (1, 6000, 8),
    ]
    for place, row in enumerate(events):  # each run takes 1 s; the first is a warm-up
        assert row["updates_per_second"] == statistics.median(counts[4 * place + 1 : 4 * place + 4])
        updates = 120 if row["delays"] == simulator.SHARED else 600
        assert row["updates_per_second"] >= updates - row["tasks"] * simulator.BUFFER
        assert row["startup_ms"] == 1e3
        assert 8 * row["clients"] / 2**20 < row["state_mib"], "one float64 speed per client"
        assert row["state_mib"] < 20  # other state depends on busy clients, not on registered ones
    plain, *others, stacked, single, floor = training
    assert plain["method"] == PLAIN
    assert plain["ratio"] == 1
    times = take_turns([row["method"] for row in training[:-1]], 3, begun=3 * len(bands))
    assert plain["ms_per_update"] == 1e3 * times[PLAIN][1] / 4
    for row in others:
        _, middle, _ = times[row["method"]]
        trained = 1e3 * middle / row["ms_per_update"]
        assert trained == pytest.approx(round(trained))
        assert 2 * simulator.BUFFER <= round(trained) <= 2 * simulator.BUFFER + 4
    for row in (stacked, single):  # the products of 4 updates
        assert row["ms_per_update"] == pytest.approx(1e3 * times[row["method"]][1] / 4)
    assert floor["ms_per_update"] == 1e3 * simulator.FLOP / (
        2 * 2048**3 / (1 + 3 * len(bands) + 3 * len(times))
    )
    for row in (*others, stacked, single, floor):
        assert row["ratio"] == pytest.approx(plain["ms_per_update"] / row["ms_per_update"])
        used = max(simulator.cores(), 2) if "worker" in row["method"] else 1
        share = stacked["ms_per_update"] / (used * row["ms_per_update"])
        assert row["percent_of_products"] == pytest.approx(100 * share)
