"""Requests and rounds of tasks that end at a cut-off: late updates are left out."""

from types import SimpleNamespace

import numpy as np
import pytest

import wirelessfl
from wirelessfl.base.errors import TrainingError
from wirelessfl.config import Config
from wirelessfl.engine.tasks import asynchronous
from wirelessfl.engine.tasks.clients import DropOuts
from wirelessfl.runs.build import build
from wirelessfl.runs.engine import Engine
from wirelessfl.runs.execution import Execution
from wirelessfl.runs.folder.new_folder import create

CLIENTS = 6
FLAGS = {
    "clients": CLIENTS,
    "local_steps": 3,
    "batch_size": 8,
    "cpu_hz": (5e8, 2e9),
    "cycles_per_step": 1e8,
    "uplink": "fixed",
    "rate_mbps": 20.0,
    "eval_every": 1,
    "chunk": 4,
    "threads": 1,
    "workers": 1,
    "lr": 0.05,
}
REQUESTS = {"schedule": "buffered", "requests": CLIENTS, "buffer": 2, "rounds": 12}


def seconds_of(setup):
    """Seconds of a request at each client: local steps and upload at a fixed rate."""
    delays = setup.handler.requests.delays
    upload = delays.bits(0) / (1e6 * setup.config.uplink.rate_mbps)
    return np.array([delays.seconds(0, c, 0) for c in range(CLIENTS)]), upload


def ran(data, out, algorithm="fedavg", **flags):
    """Run to the end; request r goes to a client without one, in turn if all are free."""
    config = Config.from_flags(algorithm, **FLAGS | flags, out=out)
    setup = build(config, data=data)
    if config.schedule.name == "buffered":
        requests = setup.handler.requests
        requests.choose = lambda number: next(c for c in range(CLIENTS) if c not in requests.queues)
    engine, directory = Engine(setup), create(out, setup.config)
    Execution(engine, directory, None).run()
    return SimpleNamespace(rows=directory.rows(), setup=setup, params=engine.params())


def middle(data, out, algorithm="fedavg"):
    """A cut-off that the three faster clients meet, and the seconds of each client."""
    setup = build(Config.from_flags(algorithm, **FLAGS | REQUESTS, out=out), data=data)
    training, upload = seconds_of(setup)
    third, fourth = np.sort(training)[2:4]
    assert third + upload < fourth, "slow clients are late while they train"
    return SimpleNamespace(seconds=float(third + upload + fourth) / 2, each=training + upload)


def plain(rows, *without):
    return [{k: v for k, v in row.items() if k not in ("wall_seconds", *without)} for row in rows]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("schedule", [REQUESTS, {"schedule": "simultaneous", "rounds": 3}])
@pytest.mark.parametrize("delays", ["wireless", "shifted-exponential"])
def test_a_long_cutoff_changes_nothing(toy, tmp_path, schedule, delays):
    own = schedule | {"delays": delays, "drop_out": 0.2}
    flags = {"step_seconds": 0.1} if delays != "wireless" else {}
    settings = {k: v for k, v in FLAGS.items() if delays == "wireless" or k in KEPT} | own | flags
    without, with_one = (
        wirelessfl.run(
            Config.from_flags("fedavg", **settings, out=tmp_path / name, **cut), data=toy
        )
        for name, cut in (("a", {}), ("b", {"cutoff_seconds": 1e6}))
    )
    assert {row["late"] for row in with_one.rows} == {0}
    assert plain(with_one.rows, "late") == plain(without.rows)


KEPT = ("clients", "local_steps", "batch_size", "eval_every", "chunk", "threads", "workers", "lr")


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold", "moon"])
def test_late_requests_equal_drop_outs_at_the_cutoff(toy, tmp_path, algorithm, monkeypatch):
    """A run with drop-outs of the slow clients, drawn to happen at the cut-off, is the same run."""
    cut = middle(toy, tmp_path / "none", algorithm).seconds
    late = ran(toy, tmp_path / "late", algorithm, **REQUESTS, cutoff_seconds=cut)
    assert late.rows[-1]["late"] > 5
    assert late.rows[-1]["lost"] == 0
    monkeypatch.setattr(
        DropOuts,
        "lost_after",
        lambda own, number, seconds: cut if seconds > cut else None,
    )
    lost = ran(toy, tmp_path / "lost", algorithm, **REQUESTS)
    for row, other in zip(plain(late.rows), plain(lost.rows), strict=True):
        assert row.pop("late") == other.pop("lost")
        assert row.pop("lost") == 0
        assert {n: v for n, v in row.items() if n != "task"} == pytest.approx(
            {n: v for n, v in other.items() if n != "task"}, rel=1e-9
        )
    for name, value in late.params.items():
        assert value.equal(lost.params[name]), name


def test_state_of_late_clients_does_not_change(toy, tmp_path):
    cut = middle(toy, tmp_path / "none", "scaffold")
    found = ran(toy, tmp_path / "run", "scaffold", **REQUESTS, cutoff_seconds=cut.seconds)
    (learner,) = found.setup.learners
    states, (name,) = learner.server.states, learner.server.rule.client_state
    stored = {client for client in range(CLIENTS) if states.get(name, client) is not None}
    assert stored == {client for client in range(CLIENTS) if cut.each[client] < cut.seconds}


def test_requests_that_wait_in_a_queue_are_dropped(toy, tmp_path):
    """All requests go to one client: two are done before the cut-off, the others never begin."""
    flags = FLAGS | REQUESTS | {"buffer": 1, "rounds": 2}
    config = Config.from_flags("fedavg", **flags, out=tmp_path / "first")
    training, upload = seconds_of(build(config, data=toy))
    each = training[0] + upload
    config = Config.from_flags("fedavg", **flags, cutoff_seconds=2.5 * each, out=tmp_path / "run")
    setup = build(config, data=toy)
    handler = setup.handler
    handler.requests.choose = lambda number: 0
    engine, directory = Engine(setup), create(config.run.out, setup.config)
    Execution(engine, directory, None).run()
    assert [row["sim_seconds"] for row in directory.rows()] == pytest.approx([0, each, 2 * each])
    assert handler.ledger.late == [0]


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("first", [0, 2, 5])
def test_a_round_of_tasks_ends_at_the_cutoff(toy, tmp_path, first):
    """It waits for the first k updates, or until the cut-off if fewer arrive."""
    flags = {"schedule": "simultaneous", "rounds": 4, "first": first}
    cut = middle(toy, tmp_path / "none")
    found = ran(toy, tmp_path / "run", **flags, cutoff_seconds=cut.seconds)
    length = np.sort(cut.each)[1] if first == 2 else cut.seconds
    for row in found.rows[1:]:
        assert row["sim_seconds"] == pytest.approx(row["round"] * length)
        assert row["buffer"] == (2 if first == 2 else 3)
        assert row["late"] == (0 if first == 2 else 3 * row["round"])
    network = found.setup.network
    cpu, chip = network.cpu_hz, network.switched_capacitance
    download = 32 * found.setup.models[0].objective.spec.size / 20e6
    busy = np.clip(length - download, 0, 3e8 / cpu)
    joules = chip * cpu**3 * busy  # a fixed rate has no power
    assert found.rows[-1]["joules"] == pytest.approx(4 * joules.mean())


def test_requests_without_any_update_end_with_an_error(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(asynchronous, "LATE_IN_A_ROW", 10)
    with pytest.raises(TrainingError, match=r"^cutoff_seconds=0\.001: .*Raise cutoff_seconds"):
        ran(toy, tmp_path / "run", **REQUESTS, cutoff_seconds=1e-3)


def test_rounds_without_any_update_keep_the_model(toy, tmp_path):
    flags = {"schedule": "simultaneous", "rounds": 2, "cutoff_seconds": 1e-3}
    found = ran(toy, tmp_path / "run", **flags)
    assert [row["late"] for row in found.rows] == [0, 6, 12]
    assert len({row["loss"] for row in found.rows}) == 1
