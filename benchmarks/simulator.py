"""Benchmark of the asynchronous simulator: updates per second, and time per trained update."""

from __future__ import annotations

import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch

from benchmarks.executors import PLAIN
from benchmarks.timing import AT_SGEMM, Rows, interleaved, sgemm_rate, with_threads
from benchmarks.workloads import load_samples, plain_loop
from channels import Access, EqualBands, EqualSlots, SharedBand, section_vi_c
from channels.streams import Stream
from wirelessfl.air.delays import Delays, ShiftedExponential, Wireless, client_speeds
from wirelessfl.air.plan import WholeModel
from wirelessfl.air.traffic import Traffic
from wirelessfl.air.uplinks.tdma import Tdma
from wirelessfl.algorithms import assigner_of
from wirelessfl.algorithms.fedast import FedAST
from wirelessfl.data.splits import split
from wirelessfl.engine.events import Started
from wirelessfl.engine.loop import simulate
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.schedules import BufferedScheduler, Clock, TaskPlan
from wirelessfl.engine.server.client_states import InMemory
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.weights import Weights
from wirelessfl.engine.tasks.asynchronous import Asynchronous
from wirelessfl.engine.tasks.learner import TaskLearner
from wirelessfl.engine.tasks.request import RequestSeconds, RequestSubmodels
from wirelessfl.engine.tasks.requests import Requests
from wirelessfl.models import MLP
from wirelessfl.models.submodels import ParamSpec, make_partition
from wirelessfl.models.submodels.removable import find_neurons
from wirelessfl.training.batches import BatchSource
from wirelessfl.training.evaluation import Evaluation, EvaluationSamples
from wirelessfl.training.executor import Executor, TrainingData
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor
from wirelessfl.training.step_costs import default_chunk, estimated_step_seconds
from wirelessfl.training.steps import StepCounts
from wirelessfl.training.workers.processes import cores
from wirelessfl.training.workers.workers_executor import WorkersExecutor

REQUESTS, MANY, BUFFER, STEPS, BATCH, SAMPLES = 96, 5000, 3, 27, 32, 300
FLOP = 2 * (2 * 199_200 + 42_000) * BATCH * STEPS
"""FLOP per update of the MLP: forward, gradients of weights and of hidden activations."""
BANDS = (96, 1000, 5000)
"""Numbers of uploads that share a band."""
PRODUCTS, WARM = "matrix products, clients stacked", "matrix products, client by client"
"""Rows of the products of an update alone, on one thread: the weights of a stack of clients pass
through the caches in every step; those of one client stay there."""
ONE_DRAW, SHARED = "one draw per request", "TDMA, shared band"


def simulator_bench(
    repeats: int = 5, data_dir: Path | None = None, updates: int = 100_000, merges: int = 64
) -> dict[str, Rows]:
    """Time the simulator without training, with 96 and 5,000 requests, and that of the MNIST MLP.

    Args:
        repeats: timed runs of each method.
        data_dir: folder of the data sets.
        updates: approximate number of updates in a simulation without training; a fifth of it over
            a shared band.
        merges: number of merges in a run with training.

    Returns:
        Tables by title. ``ratio`` is the speed relative to the plain loop on one thread in the same
        run, and ``percent_of_products`` relative to the matrix products of the stacked clients
        alone, on as many cores.
    """
    sizes = (
        (ONE_DRAW, 1, 1000, REQUESTS),
        (ONE_DRAW, 10, 100_000, REQUESTS),
        (SHARED, 1, 1000, REQUESTS),
        (SHARED, 1, 6000, MANY),
    )
    events = [_events(repeats, *size, updates) for size in sizes]
    return {
        "simulator without training, one core": events,
        "uploads over a shared band, one core": _bands(repeats, max(updates // 50, 1)),
        f"updates of the MNIST MLP, {REQUESTS} requests": _training(repeats, data_dir, merges),
    }


def _world(
    models: list[Any], clients: int, versions: int, requests: int, delays: str
) -> tuple[BufferedScheduler, Asynchronous, Clock]:
    tasks = len(models)
    clock = Clock()
    durations: Delays
    if delays == ONE_DRAW:
        speeds = client_speeds(clients, Stream(0, ("speeds",)))
        durations = ShiftedExponential([1.0] * tasks, speeds, Stream(0, ("delays",)))
    else:
        network = section_vi_c(1, clients, stream=Stream(0, ("network",)))
        seconds = [network.cycles_per_step / network.cpu_hz] * tasks
        traffic = [Traffic(1, 1, ParamSpec({"all": (199_210,)}))] * tasks
        stream = Stream(0, ("uploads",))
        durations = Wireless(
            network, Tdma(), [StepCounts(STEPS)] * tasks, seconds, traffic, None, stream
        )
    schedule = BufferedScheduler([TaskPlan(requests, BUFFER, versions)] * tasks, report_every=None)
    active = Requests(clock, durations, clients, Stream(0, ("requests",)), tasks=tasks)
    handler = Asynchronous(models, active)
    clock.after(0.0, Started())
    return schedule, handler, clock


def _run(
    models: list[Any], clients: int, versions: int, requests: int, delays: str = ONE_DRAW
) -> tuple[float, int]:
    """Run a complete simulation; returns wall-clock seconds and the number of updates."""
    schedule, handler, clock = _world(models, clients, versions, requests, delays)
    start = time.perf_counter()
    simulate(schedule, handler, clock, lambda report: None, lambda: None)
    return time.perf_counter() - start, schedule.updates


def _events(
    repeats: int, delays: str, tasks: int, clients: int, requests: int, updates: int
) -> dict[str, Any]:
    """Updates per second; an update includes its request, draws, queueing, buffering and merge."""
    versions = max(updates // (tasks * BUFFER), 1)
    models = [_untrained(clients) for _ in range(tasks)]
    if delays == SHARED:
        versions = max(versions // 5, 1)
    seen = [_run(models, clients, versions, requests, delays) for _ in range(repeats + 1)][1:]
    rate = statistics.median(count / seconds for seconds, count in seen)
    tracemalloc.start()
    start = time.perf_counter()
    world = _world(models, clients, versions, requests, delays)
    ready = time.perf_counter() - start
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    del world
    return {
        "delays": delays,
        "tasks": tasks,
        "clients": clients,
        "requests": requests,
        "updates_per_second": rate,
        "startup_ms": 1e3 * ready,
        "state_mib": held,
    }


def _bands(repeats: int, updates: int) -> Rows:
    """Uploads per second; each starts when another ends, so that their number is constant.

    ``ratio`` is the speed relative to a band that computes the rates of all uploads whenever one
    starts or ends, as bands do that are not shared in time.
    """
    snr = 10 * np.random.default_rng(0).exponential(size=8192)

    def player(access: Access, uploads: int, time_shared: bool) -> Callable[[], None]:
        band = SharedBand(lambda clients: access.rates(snr[clients], 1e7), time_shared=time_shared)
        numbers = itertools.count()

        def start(now: float) -> None:
            number = next(numbers)
            band.start(now, number, 32.0 * 199_210, number % len(snr))

        def play() -> None:
            for _ in range(updates):
                done = band.next_done()
                assert done is not None, "an upload must be in progress"
                band.finish(*done)
                start(done[0])

        for _ in range(uploads):
            start(0.0)
        return play

    rows: Rows = []
    for uploads in BANDS:
        calls = {
            "equal slots": player(EqualSlots(), uploads, time_shared=True),
            "equal slots, all rates": player(EqualSlots(), uploads, time_shared=False),
            "equal bands": player(EqualBands(), uploads, time_shared=False),
        }
        times = interleaved(calls, repeats)
        medians = {name: statistics.median(seen) for name, seen in times.items()}
        rows += [
            {
                "band": name,
                "uploads": uploads,
                "uploads_per_second": updates / seconds,
                "ratio": medians["equal slots, all rates"] / seconds,
            }
            for name, seconds in medians.items()
        ]
    return rows


def _untrained(clients: int) -> TaskLearner:
    """A task whose clients do not train."""
    algorithm, size = FedAST(), 199_210
    whole = WholeModel(ParamSpec({"weight": (size,)}), _none, _none)
    seconds = RequestSeconds(ShiftedExponential([1.0], np.ones(clients), Stream(1)))
    weights = Weights(np.zeros(clients, dtype=np.int64))
    server = Server(algorithm, Tdma(), weights, InMemory((), size), None)
    submodels = RequestSubmodels(assigner_of(algorithm), whole, clients, Stream(0), seconds)
    traffic = Traffic.of(algorithm, whole.spec)
    return TaskLearner(server, None, submodels, None, Stream(0), traffic)


def _none(*_: Any) -> NoReturn:
    raise AssertionError("whole models are not split")


def _training(repeats: int, data_dir: Path | None, merges: int) -> Rows:
    """Milliseconds per update, training clients one by one or all pending requests together."""
    x, y, _ = load_samples(data_dir)
    clients = 1000
    client_samples = split(
        y.numpy(),
        clients,
        kind="dirichlet",
        alpha=0.1,
        samples_per_client=SAMPLES,
        reuse=True,
        stream=Stream(0, ("parts",)),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = MLP((1, 28, 28), 10)
    data = TrainingData(x, y, BatchSource(client_samples, BATCH, Stream(0)))
    task, algorithm = Objective.of(module), FedAST()
    start = task.spec.from_module(module)
    whole = WholeModel(
        task.spec,
        partial(make_partition, module, task.spec),
        partial(find_neurons, module, task.spec, x[:1]),
    )

    def learner(executor: Executor) -> TaskLearner:
        weights = Weights(np.zeros(clients, dtype=np.int64))
        server = Server(algorithm, Tdma(), weights, InMemory((), task.spec.size), start)
        local = LocalTraining(executor, StepCounts(STEPS))
        delays = ShiftedExponential([1.0], np.ones(clients), Stream(1))
        seconds = RequestSeconds(delays)
        submodels = RequestSubmodels(assigner_of(algorithm), whole, clients, Stream(0), seconds)
        evaluation = Evaluation(task, EvaluationSamples(x[:1], y[:1]))
        traffic = Traffic.of(algorithm, task.spec)
        return TaskLearner(server, local, submodels, evaluation, Stream(0), traffic)

    ways: dict[str, Executor] = {}
    workers = max(cores(), 2)
    for name, kind in (("vmap", VmapExecutor), ("stacked", StackedExecutor)):
        seconds = estimated_step_seconds(task, x[:4], BATCH)
        chunk = default_chunk(kind, task, REQUESTS, BATCH, seconds)
        ways[f"{name}, one thread"] = kind(task, data, chunk)
        ways[f"{name}, one worker per core"] = WorkersExecutor(kind(task, data, chunk), workers)
    trained: dict[str, int] = {}

    def together(name: str) -> None:
        model = learner(ways[name])
        _run([model], clients, merges, REQUESTS)
        trained[name] = model.deferred.trained

    few = TrainingData(x, y, BatchSource(client_samples[:REQUESTS], BATCH, Stream(0)))
    calls: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: with_threads(
            1, lambda: plain_loop(module, few, steps=STEPS, batch=BATCH, lr=algorithm.lr)
        )
    }
    for name in ways:
        calls[name] = partial(with_threads, 1, partial(together, name))
    for name, size in ((PRODUCTS, chunk), (WARM, 1)):
        calls[name] = partial(with_threads, 1, _products(task.spec, start, size))
        trained[name] = -(-REQUESTS // size) * size
    try:
        times = interleaved(calls, repeats)
    finally:
        for executor in ways.values():
            executor.close()
    trained[PLAIN] = REQUESTS
    medians = {name: 1e3 * statistics.median(seen) / trained[name] for name, seen in times.items()}
    rows: Rows = [
        {
            "method": name,
            "ms_per_update": milliseconds,
            "ratio": medians[PLAIN] / milliseconds,
            "percent_of_products": 100
            * medians[PRODUCTS]
            / (milliseconds * (workers if "worker" in name else 1)),
            "chunk": ways[name].chunk if name in ways else None,
        }
        for name, milliseconds in medians.items()
    ]
    floor = 1e3 * FLOP / max(sgemm_rate(), sgemm_rate())
    rows.append(
        {
            "method": AT_SGEMM,
            "ms_per_update": floor,
            "ratio": medians[PLAIN] / floor,
            "percent_of_products": 100 * medians[PRODUCTS] / floor,
            "chunk": None,
        }
    )
    return rows


def _products(spec: ParamSpec, start: torch.Tensor, chunk: int) -> Callable[[], None]:
    """The matrix products of ``REQUESTS`` updates of a multilayer perceptron, ``chunk`` at once."""
    params = spec.views(start.reshape(1, -1).repeat(chunk, 1))
    layers = [
        (
            weight,
            params[name.replace("weight", "bias")][:, None],
            torch.ones(chunk, BATCH, weight.shape[2]),
            torch.ones(chunk, BATCH, weight.shape[1]),
        )
        for name, weight in params.items()
        if name.endswith("weight")
    ]

    def multiply() -> None:
        for _ in range(-(-REQUESTS // chunk) * STEPS):
            for weight, bias, x, _ in layers:
                torch.baddbmm(bias, x, weight.mT)
            for i, (weight, _, x, grad) in reversed(list(enumerate(layers))):
                if i > 0:
                    torch.bmm(grad, weight)
                weight.baddbmm_(grad.mT, x, alpha=-1e-9)

    return multiply
