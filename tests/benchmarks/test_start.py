import pytest

from benchmarks import start


def test_every_command_is_timed(monkeypatch):
    """A row for each command, relative to the first, here a fast import; runs end at a row."""
    assert start.TORCH == "import torch"
    monkeypatch.setattr(start, "TORCH", "import json")
    monkeypatch.setattr(start, "COMMANDS", ("--help",))
    monkeypatch.setattr(start, "DATASETS", ("digits",))
    rows = start.start_bench(repeats=1)
    run = "wirelessfl run hist --dataset digits, first row"
    assert [row["command"] for row in rows] == ["import json", "wirelessfl --help", run]
    assert rows[0]["relative to import torch"] == rows[0]["CPU relative to import torch"] == 1
    for row in rows:
        assert row["relative to import torch"] == row["seconds"] / rows[0]["seconds"] > 0
    assert rows[2]["CPU seconds"] > rows[1]["CPU seconds"]  # it loads PyTorch


@pytest.mark.thorough
def test_sweeps_with_two_processes_are_relative_to_those_with_one():
    one, two = start.sweep_bench(repeats=1, runs=2)
    assert (one["jobs"], two["jobs"]) == (1, 2)
    for name, ratio in (("seconds", "seconds_relative"), ("cpu_seconds", "cpu_relative")):
        assert one[f"{ratio}_to_one_job"] == 1
        assert two[f"{ratio}_to_one_job"] == two[name] / one[name] > 0


def test_a_sweep_is_relative_to_its_runs():
    run, sweep = start.shared_data_bench(repeats=1, dataset="digits", runs=2)
    assert (run["runs by"], sweep["runs by"]) == ("run", "sweep")
    assert sweep["relative to run"] == sweep["seconds"] / run["seconds"] > 0


def test_without_its_data_there_is_no_table():
    assert start.shared_data_bench(1, dataset="digits-of-others") == []


def test_runs_together_are_relative_to_runs_in_turn():
    rows = start.together_bench(repeats=1, rounds=1, runs=2)
    assert [row["trained"] for row in rows] == ["in turn", "together"] * 2
    for turn, together in (rows[:2], rows[2:]):
        assert together["relative to in turn"] == together["seconds"] / turn["seconds"] > 0
