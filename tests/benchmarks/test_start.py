from benchmarks.start import COMMANDS, start_bench


def test_every_command_is_timed():
    """A row for each command, relative to the first, which is the import of PyTorch."""
    rows = start_bench(repeats=1)
    assert [row["command"] for row in rows][1:] == [f"wirelessfl {words}" for words in COMMANDS]
    assert rows[0]["relative to import torch"] == 1
    for row in rows:
        assert row["relative to import torch"] == row["seconds"] / rows[0]["seconds"] > 0
