"""Sessions: who is there, who leaves in the middle of a round, and going on across transitions."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

import wirelessfl
from wirelessfl.errors import ConfigError, DataError
from wirelessfl.models import FCNN
from wirelessfl.runs.build import build
from wirelessfl.runs.directory import RunDirectory
from wirelessfl.runs.sessions import SessionsEngine
from wirelessfl.schedules import Sessions
from wirelessfl.schedules.base import (
    Arrived,
    Begin,
    Close,
    Give,
    Joined,
    Merge,
    Open,
    Report,
    Save,
    Started,
    Stop,
    There,
)
from wirelessfl.simulation.loop import simulate
from wirelessfl.simulation.step_sizes import Decay

FLAGS = {"sessions": 4, "clients": 8, "cells": 1, "split": "iid", "rounds": 3}
ALL_DAY = {"presence": "trace", "presence_unit": "rounds"}


def trace(tmp_path, *stays):
    path = tmp_path / "stays.csv"
    lines = [",".join(map(str, stay)) for stay in stays]
    path.write_text("\n".join(["client,join,leave", *lines]) + "\n")
    return path


def reports(decisions):
    return [d.status["session_round"] for d in decisions if isinstance(d, Report)]


def test_schedule_by_hand():
    """Two sessions of two rounds with one trial before the second."""
    schedule = Sessions(2, 2, lambda session: session)
    assert schedule.decide(Started()) == [Open(0)]
    decided = schedule.decide(There(3))
    assert [type(d) for d in decided] == [Begin, Report, Save, Give]
    assert decided[-1] == Give(0)
    assert schedule.decide(Arrived(0)) == [Merge(0)]
    decided = schedule.decide(There(3))
    assert [type(d) for d in decided] == [Report, Save, Give]
    assert schedule.decide(Arrived(1)) == [Merge(1)]
    decided = schedule.decide(There(3))
    assert [type(d) for d in decided] == [Report, Close, Save, Open]
    assert decided[-1] == Open(1)
    assert schedule.decide(There(0)) == []  # nobody: wait
    assert schedule.decide(Joined()) == [Open(1)]
    assert schedule.decide(There(1)) == [Give(1, trial=True)]
    assert schedule.decide(Arrived(1, trial=True)) == [Merge(1, trial=True)]
    assert schedule.decide(There(0)) == [Open(1)]  # all left during the trial
    assert schedule.decide(There(2)) == [Give(1, trial=True)]
    schedule.decide(Arrived(1, trial=True))
    assert schedule.decide(There(2))[-1] == Give(2)
    schedule.decide(Arrived(2))
    decided = schedule.decide(There(0))  # all have left: the session is over, and the run
    assert [type(d) for d in decided] == [Report, Stop]
    assert decided[0].round == 3


def test_rows_of_first_rounds_and_every_few():
    schedule = Sessions(1, 10, lambda session: 0, report_every=4, report_first=2)
    seen = reports(schedule.decide(Started())) + reports(schedule.decide(There(1)))
    for work in range(10):
        schedule.decide(Arrived(work))
        seen += reports(schedule.decide(There(1)))
    assert seen == [0, 1, 2, 4, 8, 10]


def test_groups_take_turns_with_labels_of_their_own(config, toy):
    """Labels 0, 1 and 2, 3 in turn; tested on those alone."""
    result = wirelessfl.run(config("fedavg", **FLAGS), data=toy)
    assert {row["present"] for row in result.rows} == {4}
    ends = {row["session"]: row for row in result.rows}
    # A model of two labels knows nothing of the other two: the start of each session shows it.
    start = {row["session"]: row for row in result.rows if row["session_round"] == 0}
    for session in (1, 2, 3):
        assert start[session]["accuracy"] + 0.2 < ends[session - 1]["accuracy"]
    everything = wirelessfl.run(config("fedavg", **FLAGS, tested_labels="all"), data=toy)
    known = next(row for row in everything.rows if row["round"] == 3)  # labels 0 and 1 alone
    assert known["accuracy"] <= 0.55 < ends[0]["accuracy"]


def full_batch_round(world, spec, module, data, params, clients, lr):
    """FedAvg with one full-batch step a client, written out."""
    changes = []
    for client in clients:
        own = world.parts[client]
        leaf = params.clone().requires_grad_()
        logits = functional_call(module, spec.views(leaf), (data.train_inputs[own],))
        loss = F.cross_entropy(logits, data.train_labels[own])
        changes.append(-lr * torch.autograd.grad(loss, leaf)[0])
    return params + torch.stack(changes).mean(0)


def test_who_leaves_in_the_middle_of_a_round_is_left_out(config, toy, tmp_path):
    """Rounds of 5, then 4 updates, then 4 clients; who comes meanwhile waits for the session."""
    stays = trace(
        tmp_path,
        *[(c, 0, "") for c in range(4)],
        (4, 0, 1.5),  # out of round 1, and gone
        (5, 0.5, ""),  # there from session 1 on
        (6, 0, 3),  # leaves as the session ends
        (7, 2, 2.9),  # comes and goes unseen
    )
    settings = config(
        "fedavg", **FLAGS | ALL_DAY | {"sessions": 2, "local_steps": 1}, trace=stays,
        batch_size=1000,
    )  # fmt: skip
    module = FCNN((12,), 4, hidden=(10,))
    parts = build(settings, data=toy, model=module)
    spec, params = parts.task.spec, parts.world.cloud["params"]
    attend = [[0, 1, 2, 3, 4, 6], [0, 1, 2, 3, 6], [0, 1, 2, 3, 6], *[[0, 1, 2, 3, 5]] * 3]
    for clients in attend:
        params = full_batch_round(parts.world, spec, module, toy, params, clients, 0.1)
    result = wirelessfl.run(settings, data=toy, model=module)
    found = torch.cat([value.reshape(-1) for value in result.params.values()])
    torch.testing.assert_close(found, params, rtol=1e-4, atol=1e-6)
    rows = {(row["session"], row["session_round"]): row for row in result.rows}
    assert [rows[0, t]["present"] for t in range(4)] == [6, 6, 5, 4]
    assert [rows[0, t]["dropped"] for t in range(4)] == [0, 0, 1, 1]
    assert rows[1, 0]["present"] == 5
    assert rows[1, 3]["dropped"] == 1


def test_times_in_seconds_mean_the_same(config, toy, tmp_path, bare):
    """The trace above, with rounds of a known length."""
    stays = [(0, 0, ""), (1, 0, ""), (2, 0, 1.5), (3, 0.5, "")]
    flags = FLAGS | {"sessions": 2, "presence": "trace", "step_seconds": 0.5, "uplink": "fixed"}
    rounds = wirelessfl.run(
        config("fedavg", **flags, presence_unit="rounds", trace=trace(tmp_path, *stays)), data=toy
    )
    length = rounds.rows[1]["sim_seconds"]
    assert all(
        row["sim_seconds"] == pytest.approx(row["round"] * length, rel=1e-9) for row in rounds.rows
    )
    in_seconds = [(c, j * length, leave and leave * length) for c, j, leave in stays]
    seconds = wirelessfl.run(
        config("fedavg", **flags, trace=trace(tmp_path, *in_seconds)), data=toy
    )
    assert bare(seconds.rows) == bare(rounds.rows)


def test_a_session_that_all_leave_ends_early_and_the_next_waits(config, toy, tmp_path):
    """In seconds: nobody is there for a while, and the clock goes on to the next arrival."""
    stays = trace(tmp_path, (0, 0, 1e-3), (1, 5, ""), (2, 6, ""))
    flags = FLAGS | {"sessions": 3, "presence": "trace", "local_steps": 1}
    result = wirelessfl.run(config("fedavg", **flags, trace=stays), data=toy)
    rows = {(row["session"], row["session_round"]): row for row in result.rows}
    assert rows[0, 1]["dropped"] == 1
    assert (0, 2) not in rows  # nobody was left
    assert rows[1, 0]["sim_seconds"] == 5.0
    assert rows[1, 0]["present"] == 1
    assert (2, 3) in rows
    # A round of which nobody is left changes nothing.
    assert rows[0, 0]["loss"] == rows[0, 1]["loss"]


def test_server_sums_are_those_of_who_is_there(config, toy):
    """SCAFFOLD's c is the mean of the c_i of the session's clients when a session begins."""
    settings = config("scaffold", **FLAGS, out=None)

    parts = build(settings, data=toy)
    engine, world = SessionsEngine(parts), parts.world
    seen = []

    def report(decision):
        if decision.status["session_round"] == 0:
            kept = [world.states.get("tracking", c) for c in np.flatnonzero(world.there)]
            kept = [torch.zeros(world.states.size) if own is None else own for own in kept]
            seen.append(float(torch.stack(kept).norm()))
            torch.testing.assert_close(world.nodes["tracking"][0], torch.stack(kept).mean(0))

    engine.start()
    simulate(engine.schedule, engine.work, engine.clock, report, lambda: None)
    assert seen[:2] == [0.0, 0.0]  # nobody of these had trained
    assert min(seen[2:]) > 0


@pytest.mark.parametrize("uplink", ["tdma", "aircomp"])
@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("hist", {"cells": 2, "mask_sizes": "optimized"}),
        ("fadamgc", {"cells": 1}),
        ("hist", {"cells": 2, "local": "fadamgc"}),
    ],
)
def test_cells_and_tracking_inside(config, toy, tmp_path, name, flags, uplink):
    """Learns in its sessions over both uplinks; in the last one a whole cell leaves."""
    common = FLAGS | {"rounds": 4, "lr": 0.02, "uplink": uplink, "edge_rounds": None} | flags
    if name == "hist":
        common["edge_rounds"] = 2
    result = wirelessfl.run(config(name, **common, warm_start="proposed"), data=toy)
    last = result.rows[-1]
    assert last["extra_rounds"] == 3
    assert last["extra_uploads"] == 3 * 4 * (common["edge_rounds"] or 1)
    assert last["accuracy"] > 0.6
    stays = trace(tmp_path, *[(c, 0, "" if c < 4 else 9.5) for c in range(8)])
    gone = wirelessfl.run(config(name, **common, **ALL_DAY, trace=stays), data=toy)
    ends = {row["session"]: row for row in gone.rows}
    assert ends[2]["dropped"] == ends[3]["dropped"] == 4
    assert ends[3]["present"] == 4
    assert np.isfinite(ends[3]["loss"])


def test_sampling_in_sessions(config, toy):
    """S of those who are there."""
    result = wirelessfl.run(config("fedavg", **FLAGS, clients_per_round=3), data=toy)
    whole = wirelessfl.run(config("fedavg", **FLAGS), data=toy)
    assert result.rows[-1]["uplink_mib"] == pytest.approx(whole.rows[-1]["uplink_mib"] * 3 / 4)


def test_step_sizes_fall_within_each_session():

    share = Decay(50, 0.3, 0.9)
    for number in (0, 1, 49, 50, 120):
        t = number % 50
        assert share(number) == pytest.approx(0.7 * (1 - t / 50) ** 0.9 + 0.3, rel=1e-12)


def test_a_run_with_falling_steps_is_that_of_these_steps(config, toy):
    """Full batches, one step a round, written out."""
    settings = config(
        "fedavg", clients=4, rounds=3, local_steps=1, batch_size=1000, lr_schedule="poly",
        lr_ratio=0.2,
    )  # fmt: skip
    module = FCNN((12,), 4, hidden=(10,))
    parts = build(settings, data=toy, model=module)
    params = parts.world.cloud["params"]
    for t in range(3):
        lr = 0.1 * (0.8 * (1 - t / 3) ** 0.9 + 0.2)
        params = full_batch_round(parts.world, parts.task.spec, module, toy, params, range(4), lr)
    result = wirelessfl.run(settings, data=toy, model=module)
    found = torch.cat([value.reshape(-1) for value in result.params.values()])
    torch.testing.assert_close(found, params, rtol=1e-4, atol=1e-6)


RESUMED = {
    "proposed": {"warm_start": "proposed", "trial_rounds": 2},
    "continuous": {"warm_start": "continuous"},
    "scaffold": {"warm_start": "random-pilot", "momentum": 0.5},
    "arrivals": {"presence": "arrivals", "arrival_rate": 800.0, "mean_stay": 0.005},
    "rounds": {
        "presence": "arrivals", "arrival_rate": 2.0, "mean_stay": 2.0, "presence_unit": "rounds",
    },
}  # fmt: skip


@pytest.mark.parametrize("case", RESUMED)
def test_stopped_anywhere_and_resumed_equals_uninterrupted(config, toy, same, case):
    """At every row, transitions among them."""
    flags = FLAGS | RESUMED[case] | {"checkpoint_seconds": 0, "sessions": 3}
    name = "scaffold" if case == "scaffold" else "fedavg"
    reference = wirelessfl.run(config(name, **flags), data=toy)
    if case in ("arrivals", "rounds"):
        assert len({row["present"] for row in reference.rows}) > 1
        assert reference.rows[-1]["dropped"] > 0
    for place in range(len(reference.rows)):
        settings = config(name, **flags)
        left = [place]

        def halt(row, left=left):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] -= 1

        with pytest.raises(KeyboardInterrupt):
            wirelessfl.run(settings, data=toy, on_row=halt)
        same(wirelessfl.resume(settings.run.out, data=toy), reference)


def test_killed_and_resumed_across_a_transition(tmp_path, same):
    """kill -9 around the ends of sessions: rows and parameters to the bit."""
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
    for arguments, rows in ((words(killed), 4), (again, 33), (again, 60)):
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.DEVNULL)
        file = killed / "rows.jsonl"
        while not (file.exists() and file.read_bytes().count(b"\n") >= rows):
            assert process.poll() is None, "the run ended before it could be killed"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert len(RunDirectory(killed).rows()) < 160, "no work was left"
    done = subprocess.run([*command, *again, "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["round"] == 120
    same(wirelessfl.resume(whole), wirelessfl.resume(killed))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"sessions": 0}, "sessions.sessions is 0"),
        ({"overlap": 1.5}, "overlap is 1.5"),
        ({"sessions": None, "overlap": 0.2}, "overlap is 0.2, and there are no sessions"),
        ({"sessions": None, "eval_first": 3}, "eval_first is 3, and there are no sessions"),
        ({"trace": "x.csv"}, "trace is x.csv, which is for presence 'trace'"),
        ({"presence": "trace"}, "needs trace"),
        ({"presence": "arrivals", "arrival_rate": 1.0}, "needs mean_stay"),
        ({"presence": "arrivals", "overlap": 0.2}, "overlap is 0.2, which is for presence"),
        ({"split": "natural"}, "split is 'natural'"),
        ({"presence_unit": "rounds"}, "presence_unit is 'rounds'"),
        ({"lr_ratio": 0.2}, "lr_ratio is 0.2, and lr_schedule is 'constant'"),
        (
            {
                "presence": "arrivals", "arrival_rate": 1.0, "mean_stay": 1.0,
                "initially_present": 9,
            },
            "initially_present is 9, and there are 8",
        ),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(config, flags, message):
    with pytest.raises(ConfigError, match=message):
        config("fedavg", **FLAGS | flags)


def test_asynchronous_algorithms_have_no_sessions(config):
    with pytest.raises(ConfigError, match="has a time of its own"):
        config("fedast", sessions=3, cells=1)


def test_what_the_data_cannot_give_is_refused_before_anything_is_written(config, toy, tmp_path):
    """An overlap that cannot be made; a session without a client; a client in two places."""
    late = trace(tmp_path, (0, 0, 2), (1, 4, ""))
    for flags, error, message in (
        ({"overlap": 0.1}, DataError, "overlap is 0.1"),
        ({"split": "distinct", "clients": 12}, DataError, "labels"),
        ({**ALL_DAY, "trace": late}, ConfigError, "session 1 begins at round 3 with nobody"),
        ({**ALL_DAY, "trace": tmp_path / "none.csv"}, ConfigError, "none.csv"),
    ):
        settings = config("fedavg", **FLAGS | flags)
        with pytest.raises(error, match=message):
            wirelessfl.run(settings, data=toy)
        assert not settings.run.out.exists()
    twice = trace(tmp_path, (0, 0, 5), (0, 4, 9))
    with pytest.raises(ConfigError, match="client 0"):
        wirelessfl.run(config("fedavg", **FLAGS | ALL_DAY, trace=twice), data=toy)


def test_a_trace_that_ends_before_the_run_is_one_error(config, toy, tmp_path):
    """In seconds it shows only when the time has come; what was done is kept."""
    stays = trace(tmp_path, (0, 0, 1e-3))
    settings = config("fedavg", **FLAGS, presence="trace", trace=stays)
    with pytest.raises(ConfigError, match=r"session . has no client after .* nobody comes later"):
        wirelessfl.run(settings, data=toy)
    assert RunDirectory(settings.run.out).rows()
