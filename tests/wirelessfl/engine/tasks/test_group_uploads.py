"""Tasks with simultaneous transmissions: equality with rounds of one model."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wirelessfl
from channels.streams import Stream
from wirelessfl.air.delays import Wireless
from wirelessfl.air.traffic import Traffic
from wirelessfl.algorithms import assigner_of
from wirelessfl.algorithms.algorithm import stored_vectors
from wirelessfl.config import Config
from wirelessfl.engine.assignment import RandomAssignment
from wirelessfl.engine.events import Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.schedules import BufferedScheduler, Clock, SimultaneousScheduler, TaskPlan
from wirelessfl.engine.server.client_states import InMemory
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.clients import busy_at_once
from wirelessfl.engine.tasks.learner import TaskLearner
from wirelessfl.engine.tasks.request import RequestSeconds, RequestSubmodels
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.engine.tasks.round_times import TaskRoundSettings
from wirelessfl.engine.tasks.task_rounds import TaskRounds
from wirelessfl.engine.tasks.uploads import GroupUploads, Transmissions
from wirelessfl.runs.build import build
from wirelessfl.runs.build.setups import Goal
from wirelessfl.runs.build.structure import Structure
from wirelessfl.runs.engine import Engine
from wirelessfl.training.steps import StepCounts

COSTS = "joules", "joules_max", "uplink_mib", "downlink_mib"
CLIENTS, STEPS, ROUNDS = 6, 3, 4
FLAGS = {
    "clients": CLIENTS,
    "local_steps": STEPS,
    "rounds": ROUNDS,
    "batch_size": 8,
    "lr": 0.1,
    "server_lr": 0.7,
    "model": "fcnn",
    "threads": 1,
    "chunk": 4,
    "uplink": "aircomp",
    "weighting": "samples",
    "split": "dirichlet",
    "min_samples": 5,
}


def settings_of(**flags):
    return Config.from_flags("fedavg", **FLAGS | flags)


def made(config, data, streams):
    """Objects of a run with one task per stream, its delays, and its group uploads."""
    setup = build(config, data=data)
    model, network = setup.models[0], setup.network
    algorithm, uplink, size = model.algorithm, config.uplink, model.objective.spec.size
    count = len(streams)
    seconds = network.cycles_per_step / network.cpu_hz
    traffic = Traffic.of(algorithm, model.objective.spec)
    steps, each = [StepCounts(STEPS)] * count, [seconds] * count
    delays = Wireless(network, uplink, steps, each, [traffic] * count, None, Stream(99))
    whole, assigner = Structure(model, None).whole, assigner_of(algorithm)
    learners = [
        TaskLearner(
            Server(
                algorithm,
                uplink,
                Weights(np.zeros(CLIENTS, dtype=np.int64), model.sample_weights("samples")),
                InMemory(stored_vectors(algorithm), size),
                model.start,
            ),
            LocalTraining(model.executor, StepCounts(STEPS)),
            RequestSubmodels(assigner, whole, CLIENTS, stream, RequestSeconds(delays)),
            model.evaluation(None),
            stream,
            traffic,
            name=name,
        )
        for stream, name in zip(streams, "ab", strict=False)
    ]
    known = SimpleNamespace(
        config=setup.config,
        network=network,
        models=[model] * count,
        learners=learners,
        tasks=["a", "b"][:count],
        goals=[Goal(None, None)] * count,
    )
    return known, delays, GroupUploads.of(network, uplink, streams)


def requests_of(known, delays, uploads, plans, *, ticks=False, **options):
    """Set up a run with buffered requests."""
    clock = Clock()
    gathering = busy_at_once([plan.requests for plan in plans], CLIENTS, None)
    schedule = BufferedScheduler(plans, gathering=gathering, ticks=ticks)
    transmissions = Transmissions(clock, uploads)
    options |= {"transmissions": transmissions, "tasks": len(plans)}
    options["traffic"] = [learner.traffic for learner in known.learners]
    requests = Requests(clock, delays, CLIENTS, Stream(3), **options)
    handler = Asynchronous(known.learners, requests)
    return SimpleNamespace(clock=clock, schedule=schedule, handler=handler, **vars(known))


def run(made, save=lambda: None, tick_seconds=1.0):
    """Simulate to the end, and return the rows."""
    engine, rows = Engine(made), []

    def report(report):
        rows.append(engine.row(report)[0])

    simulate(made.schedule, made.handler, made.clock, report, save, tick_seconds=tick_seconds)
    return rows


def assert_rounds(rows, learner, reference):
    """Check that the rows and the learner's model equal those of ``reference``."""
    assert len(rows) == len(reference.rows) == ROUNDS + 1
    for own, row in zip(rows, reference.rows, strict=True):
        assert own["round"] == row["round"]
        for name in ("sim_seconds", *COSTS, "accuracy"):
            assert own[name] == pytest.approx(row[name], rel=1e-12), name
    found = learner.params
    for name, value in reference.params.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)


def noise_effect(reference, tmp_path, toy, **flags):
    """Maximum absolute difference between the reference's parameters and those at 120 dB SNR."""
    flags |= {"snr_db": 120.0}
    exact = wirelessfl.run(settings_of(**flags, out=tmp_path / "exact"), data=toy)
    return max(
        float((value - exact.params[name]).abs().max()) for name, value in reference.params.items()
    )


@pytest.mark.thorough(every=8)
@pytest.mark.parametrize("convention", ["published", "physical"])
def test_full_buffers_over_the_air_equal_rounds(tmp_path, toy, convention):
    """With b = R = n, rows and model equal those of synchronous rounds of all n clients."""
    flags = {"convention": convention, "snr_db": 0.0}
    reference = wirelessfl.run(settings_of(**flags, out=tmp_path / "rounds"), data=toy)
    assert noise_effect(reference, tmp_path, toy, convention=convention) > 1e-3
    config = settings_of(**flags, out=tmp_path / "requests")
    known, delays, uploads = made(config, toy, [Stream(config.run.seed)])
    plans = [TaskPlan(CLIENTS, CLIENTS, ROUNDS)]
    requests = requests_of(known, delays, uploads, plans)
    requests.clock.after(0.0, Started())
    rows = run(requests)
    assert_rounds(rows, known.learners[0], reference)


def test_one_task_with_all_clients_over_the_air_equals_rounds(tmp_path, toy):
    """Task rounds in which all clients transmit together equal synchronous rounds of one model."""
    reference = wirelessfl.run(settings_of(snr_db=0.0, out=tmp_path / "rounds"), data=toy)
    config = settings_of(snr_db=0.0, out=tmp_path / "tasks")
    known, delays, uploads = made(config, toy, [Stream(config.run.seed)])
    clock = Clock()
    handler = TaskRounds(
        known.learners,
        clock,
        delays,
        RandomAssignment(Stream(1)),
        TaskRoundSettings(CLIENTS, CLIENTS, (CLIENTS,)),
        Stream(2),
        uploads=uploads,
    )
    clock.after(0.0, Started())
    schedule = SimultaneousScheduler([ROUNDS])
    tasks = SimpleNamespace(clock=clock, schedule=schedule, handler=handler, **vars(known))
    assert_rounds(run(tasks), known.learners[0], reference)
