from benchmarks import start


def test_every_command_is_timed(monkeypatch):
    """A row for each command, relative to the first, which is the import of PyTorch."""
    monkeypatch.setattr(start, "COMMANDS", ("--help",))
    rows = start.start_bench(repeats=1)
    assert [row["command"] for row in rows][1:] == ["wirelessfl --help"]
    assert rows[0]["relative to import torch"] == 1
    for row in rows:
        assert row["relative to import torch"] == row["seconds"] / rows[0]["seconds"] > 0
