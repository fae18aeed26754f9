from benchmarks import start


def test_every_command_is_timed(monkeypatch):
    """A row for each command, relative to the first, here a fast import."""
    assert start.TORCH == "import torch"
    monkeypatch.setattr(start, "TORCH", "import json")
    monkeypatch.setattr(start, "COMMANDS", ("--help",))
    rows = start.start_bench(repeats=1)
    assert [row["command"] for row in rows][1:] == ["wirelessfl --help"]
    assert rows[0]["relative to import torch"] == 1
    assert rows[0]["command"] == "import json"
    for row in rows:
        assert row["relative to import torch"] == row["seconds"] / rows[0]["seconds"] > 0
