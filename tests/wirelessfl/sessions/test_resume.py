"""Resumed runs in sessions equal uninterrupted runs, for several availability models."""

import json
import signal

import pytest

import wirelessfl
from tests.launching import wait_for_rows
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


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("case", RESUMED)
def test_resumed_run_equals_an_uninterrupted_run(config, toy, same, halt_at, case, copies):
    """Resume from copies of the run's folder at every other row, and after a keyboard interrupt.

    Half of the cases resume at even rows, the others at odd ones.
    """
    # A fixed chunk, since chunks chosen by timing may change the rounding.
    flags = FLAGS | RESUMED[case] | {"checkpoint_seconds": 0, "sessions": 3, "chunk": 3}
    name = "scaffold" if "scaffold" in case else "fedavg"
    settings = config(name, **flags)
    reference = wirelessfl.run(settings, data=toy, on_row=copies.of(settings.run.out))
    if "presence" in flags:
        assert len({row["present"] for row in reference.rows}) > 1
        assert reference.rows[-1]["dropped"] > 0
    assert len(copies) == len(reference.rows)
    for folder in copies[[*RESUMED].index(case) % 2 :: 2]:
        same(wirelessfl.resume(folder, data=toy), reference)
    settings = config(name, **flags)
    with pytest.raises(KeyboardInterrupt):
        wirelessfl.run(settings, data=toy, on_row=halt_at(len(reference.rows) // 2))
    same(wirelessfl.resume(settings.run.out, data=toy), reference)


@pytest.mark.thorough
def test_killed_run_resumes_across_a_transition(tmp_path, same, launcher):
    """After kill -9 near the ends of sessions, rows and parameters are bit-identical."""

    def words(out):
        return [
            *("run", "fedavg", "--dataset", "digits", "--clients", "8", "--split", "dirichlet"),
            *("--sessions", "24", "--rounds", "3", "--local-steps", "4", "--threads", "1"),
            *("--warm-start", "proposed", "--history", "5", "--checkpoint-seconds", "0"),
            *("--momentum", "0.9", "--workers", "1", "--out", str(out)),
        ]

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole_process = launcher.start(*words(whole))
    again = ["resume", str(killed)]
    for arguments, rows in ((words(killed), 4), (again, 30)):
        process = launcher.start(*arguments)
        wait_for_rows(killed, rows, process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert len(RunDirectory(killed).rows()) < 96, "the run ended before it was killed"
    done = launcher.start(*again, "--json")
    assert json.loads(done.communicate()[0])["round"] == 72
    assert done.wait() == whole_process.wait() == 0
    same(wirelessfl.resume(whole), wirelessfl.resume(killed))
