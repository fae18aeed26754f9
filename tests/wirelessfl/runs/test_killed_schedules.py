"""A run resumed after kill -9 equals an uninterrupted one, for every schedule."""

import signal

import pytest

import wirelessfl
from tests.launching import wait_for_rows
from wirelessfl.config import Config
from wirelessfl.runs.directory import RunDirectory

ROUNDS = 40
COMMON = {
    "dataset": "digits",
    "clients": "8",
    "rounds": str(ROUNDS),
    "local_steps": "4",
    "batch_size": "16",
    "eval_every": "1",
    "device": "cpu",
    "chunk": "4",
    "workers": "1",
    "threads": "1",
    "replay": "off",
    "checkpoint_seconds": "0",
}
BUFFERED = {"schedule": "buffered", "requests": "6", "buffer": "3", "step_seconds": "0.1"}
REGIMES = {
    "client state": ("scaffold", BUFFERED | {"drop_out": "0.1"}),
    "held updates": ("fadamgc", BUFFERED | {"uplink": "aircomp", "beamformer": "random"}),
    "common rounds": (
        "fedavg",
        {"schedule": "simultaneous", "first": "4", "uplink": "aircomp", "beamformer": "random"},
    ),
    "cells": ("hist", {"schedule": "buffered", "buffer": "2", "cells": "4", "edge_rounds": "2"}),
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("regime", REGIMES)
def test_a_killed_run_resumes_with_the_same_results(regime, tmp_path, same, launcher):
    algorithm, more = REGIMES[regime]
    flags = COMMON | more
    whole = wirelessfl.run(Config.from_flags(algorithm, **flags, out=tmp_path / "whole"))
    killed = tmp_path / "killed"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    process = launcher.start("run", algorithm, *words, f"--out={killed}")
    wait_for_rows(killed, 8, process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert len(RunDirectory(killed).rows()) < ROUNDS, "the run ended before it was killed"
    same(wirelessfl.resume(killed), whole)
