"""The engine's benchmark: every way of training against the plain loop, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wirelessfl.bench.executors import FAST, GENERAL, PLAIN, Variant, build, variants
from wirelessfl.bench.gpu import gpu_tables
from wirelessfl.bench.memory import peak_mb
from wirelessfl.bench.resnet18 import resnet18_table
from wirelessfl.bench.timing import Rows, interleaved, seconds_of, sgemm_rate, with_threads
from wirelessfl.bench.workloads import (
    CLIENTS,
    Workload,
    client_data,
    job_of,
    load_samples,
    plain_loop,
    samples_each,
    submodel_job,
    trained,
    workloads,
)
from wirelessfl.training.executor import Executor
from wirelessfl.training.objective import Objective
from wirelessfl.training.workers import WorkersExecutor

NEAR = 0.95  # a goal is met within five per cent


@dataclass(frozen=True, eq=False)
class Measurement:
    """What all tables of the benchmark have in common.

    Args:
        inputs: [samples, ...].
        labels: [samples].
        repeats: of each way.
        data_dir: folder of the data sets.
        memory: whether to measure peaks, which starts processes.
    """

    inputs: Tensor
    labels: Tensor
    repeats: int
    data_dir: Path | None
    memory: bool

    def peak_mb(self, work: str, way: str, clients: int, chunk: int) -> float | None:
        """Peak memory of a round in megabytes; None where it is not measured."""
        return peak_mb(work, way, clients, chunk, self.data_dir) if self.memory else None


def engine_bench(
    repeats: int = 5,
    data_dir: Path | None = None,
    clients: int = CLIENTS,
    scaling: tuple[int, ...] = (60, 240, 1000),
    memory: bool = True,
    resnet_steps: int = 60,
) -> dict[str, Rows]:
    """Interleaved medians on W1 and W2, scaling, submodels and the goals.

    Args:
        repeats: of each way.
        data_dir: folder of the data sets.
        clients: in W1 and W2; 60 is the reference.
        scaling: numbers of clients to try W1 with.
        memory: whether to measure peaks, which starts processes.
        resnet_steps: local steps of ResNet-18, which runs on a GPU only.

    Returns:
        Tables by title: seconds are medians of a round's local training; ``ratio`` is to the plain
        loop on one thread in the same run; ``%_of_floor`` to the work's FLOP at the matrix
        product rate measured here on all cores.
    """
    x, y, source = load_samples(data_dir)
    measurement = Measurement(x, y, repeats, data_dir, memory)
    rate = max(sgemm_rate(), sgemm_rate())
    one = with_threads(1, sgemm_rate)
    tables: dict[str, Rows] = {"machine": machine(source, rate, one)}
    for name, work in workloads().items():
        title = f"{name}: {clients} clients, {source}"
        tables[title] = _workload_table(measurement, work, clients, rate)
    tables["W1 with more clients"] = _scaling(measurement, scaling)
    tables["submodels on W1"] = _submodels(measurement, clients)
    if torch.cuda.is_available():
        device = torch.device("cuda")
        tables |= gpu_tables(x, y, clients, repeats, device)
        tables |= resnet18_table(device, repeats, steps=resnet_steps)
    tables["goals"] = goals(tables)
    return tables


def machine(source: str, rate: float, one: float) -> Rows:
    """What it is measured on."""
    return [
        {"what": "data", "value": source},
        {"what": "sgemm, all cores", "value": f"{rate / 1e9:.0f} GFLOP/s"},
        {"what": "sgemm, one thread", "value": f"{one / 1e9:.0f} GFLOP/s"},
        {"what": "threads", "value": str(torch.get_num_threads())},
        {"what": "GPU", "value": _gpu()},
    ]


def _gpu() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none: unmeasured"


def _started(executors: Mapping[str, Executor]) -> dict[str, float]:
    """Start the workers of those that have some; seconds that it took, by name."""
    return {
        name: seconds_of(executor.start)
        for name, executor in executors.items()
        if isinstance(executor, WorkersExecutor)
    }


def _workload_table(measurement: Measurement, work: Workload, clients: int, rate: float) -> Rows:
    data = client_data(measurement.inputs, measurement.labels, clients)
    objective = Objective.of(work.module)
    executors = {name: build(variant, objective, data) for name, variant in variants().items()}
    started = _started(executors)
    job = job_of(objective, clients)
    calls: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: with_threads(1, lambda: plain_loop(work.module, data))
    }
    for name, executor in executors.items():
        threads = 1 if isinstance(executor, WorkersExecutor) else torch.get_num_threads()
        calls[name] = lambda e=executor, t=threads: with_threads(t, lambda: trained(e, job))  # type: ignore[misc]
    try:
        times = interleaved(calls, measurement.repeats)
    finally:
        for executor in executors.values():
            executor.close()
    floor = work.flop * clients / CLIENTS / rate
    rows: Rows = []
    for name, seen in times.items():
        median = statistics.median(seen)
        chunk = executors[name].chunk if name in executors else None
        rows.append(
            {
                "way": name,
                "seconds": median,
                "range": f"{min(seen):.3g} - {max(seen):.3g}",
                "ratio": statistics.median(times[PLAIN]) / median,
                "%_of_floor": 100 * floor / median,
                "chunk": chunk,
                "start_s": started.get(name),
                "peak_mb": measurement.peak_mb(work.name, name, clients, chunk or 1),
            }
        )
    rows.append({**dict.fromkeys(rows[0]), "way": "floor", "seconds": floor})
    rows[-1] |= {"ratio": rows[0]["seconds"] / floor, "%_of_floor": 100.0}
    return rows


def _scaling(measurement: Measurement, sizes: tuple[int, ...]) -> Rows:
    objective, rows = Objective.of(workloads()["W1"].module), []
    for name in (GENERAL, FAST):
        for clients in sizes:
            seen, chunk = _times_alone(measurement, variants()[name], objective, clients)
            median = statistics.median(seen)
            rows.append(
                {
                    "way": name,
                    "clients": clients,
                    "samples_each": samples_each(len(measurement.labels), clients),
                    "seconds": median,
                    "ms_a_client": 1e3 * median / clients,
                    "chunk": chunk,
                    "peak_mb": measurement.peak_mb("W1", name, clients, chunk),
                }
            )
    return rows


def _times_alone(
    measurement: Measurement, variant: Variant, objective: Objective, clients: int
) -> tuple[list[float], int]:
    data = client_data(measurement.inputs, measurement.labels, clients)
    executor, job = build(variant, objective, data), job_of(objective, clients)
    _started({"": executor})
    try:
        calls = {"": lambda: with_threads(1, lambda: trained(executor, job))}
        return interleaved(calls, measurement.repeats)[""], executor.chunk
    finally:
        executor.close()


def _submodels(measurement: Measurement, clients: int) -> Rows:
    """One edge round of local training: HFedAvg, and HIST with several numbers of cells."""
    data = client_data(measurement.inputs, measurement.labels, clients)
    objective = Objective.of(workloads()["W1"].module)
    executor = build(variants()[FAST], objective, data)
    _started({"": executor})
    jobs = {"HFedAvg": job_of(objective, clients)}
    jobs |= {f"HIST, N = {n}": submodel_job(objective, clients, n) for n in (2, 4, 8)}
    calls: dict[str, Callable[[], Any]] = {
        name: lambda j=job: with_threads(1, lambda: trained(executor, j))  # type: ignore[misc]
        for name, job in jobs.items()
    }
    try:
        times = interleaved(calls, measurement.repeats)
    finally:
        executor.close()
    full = statistics.median(times["HFedAvg"])
    return [
        {
            "run": name,
            "parameters": jobs[name].spec.size,
            "seconds": statistics.median(seen),
            "of_hfedavg": statistics.median(seen) / full,
        }
        for name, seen in times.items()
    ]


def goals(tables: Mapping[str, Rows]) -> Rows:
    """Each goal with the measured value."""

    def ratio(work: str, *names: str) -> float:
        table = next(rows for title, rows in tables.items() if title.startswith(f"{work}:"))
        ratios: list[float] = [row["ratio"] for row in table if row["way"] in names]
        return max(ratios)

    general = (GENERAL, "vmap, chunks of 10")
    fast = (FAST, "stacked layers")
    rows = [
        _speed_goal(f"{work}, {what}", ratio(work, *names), wanted, ratio(work, "floor"))
        for work, what, names, wanted in (
            ("W1", "any module", general, 3.5),
            ("W1", "linear layers", fast, 4.5),
            ("W2", "any module", general, 2.2),
            ("W2", "convolutions", fast, 4.0),
        )
    ]
    scaled = [row for row in tables["W1 with more clients"] if row["way"] == FAST]
    growth = scaled[-1]["ms_a_client"] / scaled[0]["ms_a_client"]
    largest = scaled[-1]["clients"]
    rows.append(_goal(f"{largest} clients: at most 1.1x the time of each", growth, 1.1, below=True))
    peaks = [row["peak_mb"] for row in tables["W1 with more clients"] if row["clients"] == largest]
    if None not in peaks:
        rows.append(_goal(f"{largest} clients: 200 MB over the data", max(peaks), 200, below=True))
    four = next(r for r in tables["submodels on W1"] if r["run"] == "HIST, N = 4")
    rows.append(_goal("HIST, N = 4: half of HFedAvg", four["of_hfedavg"], 0.5, below=True))
    return rows


def _speed_goal(what: str, measured: float, wanted: float, floor: float) -> dict[str, Any]:
    row = _goal(f"{what}: {wanted:g}x", measured, wanted)
    if row["verdict"] == "not met" and wanted > floor:
        row["verdict"] += f": the floor is {floor:.2f}x"
    return row


def _goal(goal: str, measured: float, wanted: float, *, below: bool = False) -> dict[str, Any]:
    share = wanted / measured if below else measured / wanted
    verdict = "met" if share >= 1 else "met within 5 %" if share >= NEAR else "not met"
    return {"goal": goal, "measured": measured, "verdict": verdict}
