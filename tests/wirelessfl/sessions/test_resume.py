"""Resuming runs in sessions, for any presence of clients: equal to uninterrupted runs."""

import json
import signal
import subprocess
import sys
import time

import pytest

import wirelessfl
from wirelessfl.runs.directory import RunDirectory

FLAGS = {"sessions": 4, "clients": 8, "split": "iid", "rounds": 3}


RESUMED = {
    "proposed": {"warm_start": "proposed", "trial_rounds": 2},
    "continuous": {"warm_start": "continuous"},
    "scaffold": {"warm_start": "random-pilot", "momentum": 0.5},
    "scaffold, arrivals": {
        "warm_start": "proposed", "trial_rounds": 2, "presence": "arrivals",
        "arrival_rate": 800.0, "mean_stay": 0.005, "client_states": "disk",
    },
    "arrivals": {"presence": "arrivals", "arrival_rate": 800.0, "mean_stay": 0.005},
    "rounds": {
        "presence": "arrivals", "arrival_rate": 2.0, "mean_stay": 2.0, "presence_unit": "rounds",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", RESUMED)
def test_stopped_anywhere_and_resumed_equals_uninterrupted(config, toy, same, halt_at, case):
    """At every row, including transitions."""
    # Runs that choose their chunks by timing may differ by rounding.
    flags = FLAGS | RESUMED[case] | {"checkpoint_seconds": 0, "sessions": 3, "chunk": 3}
    name = "scaffold" if "scaffold" in case else "fedavg"
    reference = wirelessfl.run(config(name, **flags), data=toy)
    if "presence" in flags:
        assert len({row["present"] for row in reference.rows}) > 1
        assert reference.rows[-1]["dropped"] > 0
    for place in range(len(reference.rows)):
        settings = config(name, **flags)
        with pytest.raises(KeyboardInterrupt):
            wirelessfl.run(settings, data=toy, on_row=halt_at(place))
        same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_killed_and_resumed_across_a_transition(tmp_path, same):
    """kill -9 around the ends of sessions: rows and parameters bit for bit."""
    command = [sys.executable, "-m", "wirelessfl"]

    def words(out):
        return [
            *("run", "fedavg", "--dataset", "digits", "--clients", "8", "--split", "dirichlet"),
            *("--sessions", "40", "--rounds", "3", "--local-steps", "4", "--threads", "1"),
            *("--warm-start", "proposed", "--history", "5", "--checkpoint-seconds", "0"),
            *("--momentum", "0.9", "--workers", "1", "--out", str(out)),
        ]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*command, *words(whole)], check=True, capture_output=True)
    again = ["resume", str(killed)]
    for arguments, rows in ((words(killed), 4), (again, 45)):
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
        file = killed / "rows.jsonl"
        while not (file.exists() and file.read_bytes().count(b"\n") >= rows):
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert len(RunDirectory(killed).rows()) < 160, "no work was left"
    done = subprocess.run([*command, *again, "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["round"] == 120
    same(wirelessfl.resume(whole), wirelessfl.resume(killed))
