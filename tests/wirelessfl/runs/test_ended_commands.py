"""Commands that a signal ends leave checkpoints of all progress, and no processes."""

import os
import signal

import pytest

from tests.launching import holder, wait_for_rows, wait_until
from wirelessfl.runs.folder.run_folder import RunFolder

WORDS = "--dataset digits --clients 8 --cells 2 --rounds 4000 --local-steps 4 --threads 1".split()
WORDS += "--eval-every 1 --checkpoint-seconds 1e6".split()


def covered(folder):
    """Whether the last checkpoint covers all rows of an unfinished run."""
    _, state = RunFolder(folder).load()
    assert not state["finished"]
    return state["rows_bytes"] == (folder / "rows.jsonl").stat().st_size > 0


def test_a_signal_to_a_command_leaves_a_checkpoint(tmp_path, launcher):
    out = tmp_path / "run"
    process = launcher.start("run", "hist", *WORDS, "--out", out)
    wait_for_rows(out, 3, process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.wait() == 128 + signal.SIGTERM
    assert f"interrupted; to resume: wirelessfl resume {out}" in errors
    assert "Traceback" not in errors
    assert covered(out)


def test_a_signal_to_a_sweep_leaves_checkpoints(tmp_path, launcher):
    """The group gets it, as if a terminal is closed; the processes of the sweep end."""
    words = ["sweep", "hist", *WORDS, "--seed", "1,2", "--jobs", "2", "--out", tmp_path]
    process = launcher.start(*words, session=True)

    def begun():
        assert process.poll() is None, process.communicate()
        files = list(tmp_path.glob("*/rows.jsonl"))
        return len(files) == 2 and all(file.read_bytes().count(b"\n") > 2 for file in files)

    wait_until(begun)
    holders = [holder(file) for file in tmp_path.glob("*/config.toml")]
    os.killpg(process.pid, signal.SIGHUP)
    _, errors = process.communicate()
    assert process.wait() == 128 + signal.SIGHUP
    assert "to resume: repeat the command" in errors
    assert "Traceback" not in errors
    assert all(covered(file.parent) for file in tmp_path.glob("*/rows.jsonl"))
    assert len(holders) == 2
    for process in holders:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
