"""Resumed runs have the rows and parameters of uninterrupted runs, for every kind of state.

The configurations are those of the gate that it resumes, others of the gate whose state differs,
and some that only this table has.
"""

import signal

import pytest

import wirelessfl
from tests.gate import given
from tests.gate.configurations import (
    ARRIVALS,
    ASYNCHRONOUS,
    BUFFERED,
    CONFIGURATIONS,
    DRAINED,
    EXPONENTIAL,
    OVER_THE_AIR,
    SLOW_CELLS,
    TASKS,
    WIDE,
    one,
)
from tests.launching import wait_for_rows
from wirelessfl.config import Config
from wirelessfl.runs.folder.run_folder import RunFolder

OTHERS = (
    *("fadamgc", "fa-nt", "fedams", "local-adam", "hist-scaffold-m", "patience", "select-age"),
    *("stop-at-target", "validation-fraction", "select-round-robin", "vmap-replay"),
    *("continuous", "kept-momentum", "proposed", "trace", "arrivals-seconds", "sessions-ram-fed"),
    *("fedast-static", "fedast-published-times", "sync-bayes-st", "sync-ucb-st"),
    *("buffered-fedadam-poly", "ram-fed-fastest", "own-network", "select-ucb"),
    *("availability", "battery-constant", "battery-trace"),
)
"""Configurations that the gate runs without an interruption."""
TWO = ("digits,hidden=20,step_seconds=0.1", "digits,step_seconds=0.3,lr=0.05,name=slow")
UNEVEN = {"schedule": "buffered", "cells": 4, "buffer": 2, "slowdown": 3.0}
MORE = {
    "states on disk": one("ram-fed", **WIDE, client_states="disk", weighting="samples", rounds=4),
    "row before the next round": one(
        "fedavg", uplink="aircomp", beamformer="random", rounds=12, eval_every=4, max_seconds=0.02
    ),
    "rows between merges": one(
        "hfedavg", local="heterofl", clients=4, **UNEVEN | {"cells": 2}, rounds=2,
        edge_rounds=1, eval_seconds=0.02, step_seconds=0.01, local_steps=9, uplink="fixed",
    ),
    "submodels of cells": one(
        "hist", **SLOW_CELLS | {"rounds": 4}, cells=4, buffer=2, local="scaffold",
        client_states="disk", hidden_biases="local",
    ),
    "scaled submodels of cells": one(
        "hist", **SLOW_CELLS | {"rounds": 4}, cells=4, buffer=2, submodel_scale="width"
    ),
    "cells until a time": one(
        "hfedavg", **UNEVEN | {"rounds": 99}, max_seconds=0.2, eval_seconds=0.03
    ),
    "patience of cells": one(
        "hfedavg", **UNEVEN, rounds=50, eval_every=1, lr=2.0, patience=2, min_delta=0.01
    ),
    "validation of requests": one("fedavg", **ASYNCHRONOUS, validation_fraction=0.2),
    "clients of sessions on disk": one(
        "scaffold", **ARRIVALS, warm_start="proposed", trial_rounds=2, client_states="disk"
    ),
    "augmented requests": one("fedavg", **ASYNCHRONOUS, augment="tests.gate.given:noisy"),
    "reallocated requests": one(
        "fedast", **TASKS | {"rounds": 10, "eval_every": 1, "task": TWO}, **EXPONENTIAL, option="D",
        floor=2, period=0.3, drop_out=0.2, busy_clients=4, requests=6, buffer=2,
    ),
    "measured before they merge": one(
        "fedast", **{key: value for key, value in TASKS.items() if key != "eval_every"}
        | {"task": TWO, "rounds": 4}, option="D", floor=2, period=0.1, spread_updates=3, requests=6,
        buffer=5, eval_seconds=0.17, max_seconds=2.4,
    ),
    "stale updates": one(
        "fedast", **BUFFERED | {"task": TWO, "rounds": 12, "eval_every": 1}, **EXPONENTIAL,
        option="D", floor=2, period=0.3, drop_out=0.2, max_staleness=1, update_weights="version",
    ),
    "stale updates of clients with state": one("scaffold", **ASYNCHRONOUS, max_staleness=1),
    "queued transmissions": one(
        "fedast", **OVER_THE_AIR, task=("digits,hidden=20,name=a", "digits,hidden=20"),
        beamformer="random", requests=6, buffer=2, cpu_hz=(5e8, 2e9), cycles_per_step=1e6,
        bandwidth_hz=2e5, eval_seconds=0.02, rounds=5, max_seconds=0.5,
    ),
    "batteries that are never charged": one(
        "fedavg", **DRAINED, clients_per_round=4, on_empty="drop"
    ),
    "selection with a state": one(
        "hfedavg", cells=2, clients_per_round=4, rounds=6, select="tests.gate.given:Recent",
        cpu_hz=(1e8, 2e9), cycles_per_step=1e7,
    ),
    "residuals of cells": one(
        "hist", uplink_compression="top-k", error_feedback=True, client_states="disk"
    ),
    "residuals of requests": one(
        "fedast", **BUFFERED | {"rounds": 12, "eval_every": 1}, **EXPONENTIAL, drop_out=0.2,
        uplink_compression="sign", error_feedback=True,
    ),
    "requests until no client is available": one(
        "fedavg", **ASYNCHRONOUS | {"rounds": 99, "eval_every": 1, "step_seconds": 0.02},
        **EXPONENTIAL, files=given.shifts,
    ),
    "cells until no client is available": one(
        "hist", **SLOW_CELLS, cells=4, buffer=2, files=given.shifts, availability_unit="rounds"
    ),
    "cut-off": one("fedavg", path_gain_db=(-20.0, 10.0), cutoff_seconds=0.04),
    "cut-off of tasks": one(
        "scaffold", **BUFFERED, schedule="buffered", downlink_compression="quantisation",
        cutoff_seconds=1.0, delays="wireless", path_gain_db=(-30.0, 5.0), bandwidth_hz=1e5,
    ),
    "cut-off of groups": one("sync-st", **TASKS, first=2, cutoff_seconds=0.3, eval_seconds=0.5),
}  # fmt: skip
CASES = {
    **{name: case for name, case in CONFIGURATIONS.items() if case.how == "resumed"},
    **{name: CONFIGURATIONS[name] for name in OTHERS},
    **MORE,
}
HAPPENS = {
    "batteries that are never charged": "empty",
    "battery-constant": "empty",
    "battery-harvest": "empty",
    "arrivals-seconds": "dropped",
    "buffered-available": "lost",
    "cells-batteries": "empty",
    "buffered-scaffold": "lost",
    "requests until no client is available": "lost",
    "cells-hfedavg": "staleness_max",
    "clients of sessions on disk": "dropped",
    "cut-off": "late",
    "cut-off of groups": "late",
    "cut-off of tasks": "late",
    "resumed-sessions": "dropped",
    "stale updates": "too_stale",
    "stale updates of clients with state": "too_stale",
}
"""Fields that must exceed zero in some row, so that a case is what its name says."""


class StoppedError(Exception):
    """An error of a callback."""


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", CASES)
def test_a_resumed_run_equals_an_uninterrupted_one(name, tmp_path, same, bare, copies):
    """After any row, with the checkpoint of that row, and after an error of a callback.

    The error leaves a checkpoint of all progress: no row is told twice.
    """
    case, place = CASES[name], [*CASES].index(name)
    flags = case.flags_in(tmp_path)
    objects = {kind: make() for kind, make in case.objects.items()}

    def settings(folder, seconds):
        own = {"checkpoint_seconds": seconds, "out": tmp_path / folder}
        return Config.from_flags(case.algorithm, **flags | own)

    def resumed(folder, **given):
        return wirelessfl.resume(folder, **objects, trust=True, **given)

    whole = wirelessfl.run(settings("whole", 0), **objects, on_row=copies.of(tmp_path / "whole"))
    count = len(whole.rows)
    assert len(copies) == count > 2
    if name in HAPPENS:
        assert max(row.get(HAPPENS[name], 0) for row in whole.rows) > 0
    for folder in copies[place % 2 : -1 : max(2, count // 2)]:
        same(resumed(folder), whole)

    rows, notes = [], []

    def stop(row):
        rows.append(row)
        if len(rows) == 1 + count // 2:
            raise StoppedError

    with pytest.raises(StoppedError) as error:
        wirelessfl.run(settings("stopped", 1e6), **objects, on_row=stop, on_note=notes.append)
    assert error.value.__cause__ is error.value.__context__ is None
    assert f"interrupted; to resume: wirelessfl resume {tmp_path / 'stopped'}" in notes[-1]
    again = resumed(tmp_path / "stopped", on_row=rows.append)
    same(again, whole)
    assert bare(rows) == bare(whole.rows)
    assert again.ended == whole.ended


SOON = {"rounds": 30, "eval_every": 1, "beamformer": "random"}
KILLED = {
    "resumed-hist": SOON,
    "resumed-sessions": {"sessions": 8},
    "resumed-fedast": {"rounds": 40, "eval_every": 1},
    "buffered-fadamgc-air": SOON,
    "simultaneous-air": SOON,
    "cells-hist": SOON,
}


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_is_resumed(name, tmp_path, same, launcher):
    """After kill -9 twice, with work left both times."""
    case = CASES[name]
    config = Config.from_flags(case.algorithm, **case.flags | KILLED[name])
    file, killed = tmp_path / "config.toml", tmp_path / "killed"
    file.write_text(config.to_toml(), encoding="utf-8")
    run = ["run", "--config", file, "--out", killed]
    for command, rows in ((run, 1), (["resume", killed], 4)):
        process = launcher.start(*command)
        wait_for_rows(killed, rows, process)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it had ended before it was killed"
        assert not RunFolder(killed).load()[1]["finished"], "no work was left"
    same(wirelessfl.resume(killed), wirelessfl.run(config.with_run({"out": tmp_path / "whole"})))
