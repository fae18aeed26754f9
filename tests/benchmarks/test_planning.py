"""Planning benchmark: its rows, and that it plans all rounds."""

from benchmarks import planning
from wirelessfl.engine.rounds.planner import Planner


def test_rows(monkeypatch):
    """Each run is planned once to warm up and once for each repeat, from its first round."""
    planned, plan = [], Planner.plan

    def counted(self, number):
        planned.append(number)
        return plan(self, number)

    monkeypatch.setattr(Planner, "plan", counted)
    rows = planning.planning_bench(repeats=2, rounds=2)
    assert [row["run"] for row in rows] == list(planning.RUNS)
    assert planned == [0, 1] * 3 * len(rows)
    for row in rows:
        assert row["ms_per_round"] == 1000 * row["seconds"] / 2 > 0


def test_networks_are_built_one_by_one_and_together():
    rows = planning.network_bench(repeats=1, count=3)
    assert [row["step"] for row in rows] == ["build, one by one", "build, together", "price"]
    assert rows[0]["ratio"] == 1
    assert all(row["ratio"] == rows[0]["seconds"] / row["seconds"] > 0 for row in rows)
