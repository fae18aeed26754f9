"""Benchmark of local training: every executor against a plain PyTorch loop, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.executors import FAST, GENERAL, PLAIN, ExecutorChoice, build, variants
from benchmarks.gpu import gpu_tables
from benchmarks.memory import peak_mb
from benchmarks.resnet18 import resnet18_table
from benchmarks.rounded import rounded_table
from benchmarks.timing import (
    AT_SGEMM,
    Rows,
    interleaved,
    seconds_of,
    sgemm_rate,
    with_threads,
)
from benchmarks.workloads import (
    CLIENTS,
    Reference,
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
from wirelessfl.training.workers.workers_executor import WorkersExecutor


@dataclass(frozen=True, eq=False)
class Measurement:
    """Settings shared by all tables of the benchmark.

    Args:
        inputs: [samples, ...].
        labels: [samples].
        repeats: timed runs of each method.
        data_dir: folder of the data sets.
        memory: whether to measure peak memory, in separate processes.
    """

    inputs: Tensor
    labels: Tensor
    repeats: int
    data_dir: Path | None
    memory: bool

    def peak_mb(self, work: str, way: str, clients: int, chunk: int) -> float | None:
        """Peak memory of a round in megabytes; None if it is not measured."""
        return peak_mb(work, way, clients, chunk, self.data_dir) if self.memory else None


def engine_bench(
    repeats: int = 5,
    data_dir: Path | None = None,
    clients: int = CLIENTS,
    scaling: tuple[int, ...] = (60, 240, 1000),
    memory: bool = True,
    resnet_steps: int = 60,
) -> dict[str, Rows]:
    """Time W1, W2, W1 with more clients, and W1 with submodels, in interleaved runs.

    Args:
        repeats: timed runs of each method.
        data_dir: folder of the data sets.
        clients: number of clients in W1 and W2; 60 is the reference.
        scaling: numbers of clients for W1 with more clients.
        memory: whether to measure peak memory, in separate processes.
        resnet_steps: local steps of ResNet-18, which is measured only on a GPU.

    Returns:
        Tables by title. Seconds are medians of a round's local training; ``ratio`` is the speed
        relative to the plain loop on one thread in the same run; ``percent_of_sgemm_rate`` is the
        time that the FLOP would take at the matrix product rate of all cores, relative to the
        measured time.
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
    if rounded := rounded_table(x, y, clients, repeats):
        tables["bfloat16 products"] = rounded
    if torch.cuda.is_available():
        device = torch.device("cuda")
        tables |= gpu_tables(x, y, clients, repeats, device)
        tables |= resnet18_table(device, repeats, steps=resnet_steps)
    return tables


def machine(source: str, rate: float, one: float) -> Rows:
    """Describe the machine and the data."""
    return [
        {"property": "data", "value": source},
        {"property": "sgemm, all cores", "value": f"{rate / 1e9:.0f} GFLOP/s"},
        {"property": "sgemm, one thread", "value": f"{one / 1e9:.0f} GFLOP/s"},
        {"property": "threads", "value": str(torch.get_num_threads())},
        {"property": "GPU", "value": _gpu()},
    ]


def _gpu() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none (not measured)"


def _started(executors: Mapping[str, Executor]) -> dict[str, float]:
    """Start the worker processes; returns the start-up seconds of each executor with workers."""
    return {
        name: seconds_of(executor.start)
        for name, executor in executors.items()
        if isinstance(executor, WorkersExecutor)
    }


def _workload_table(measurement: Measurement, work: Reference, clients: int, rate: float) -> Rows:
    data = client_data(measurement.inputs, measurement.labels, clients)
    objective = Objective.of(work.module)
    chosen = variants()
    executors = {name: build(variant, objective, data) for name, variant in chosen.items()}
    started = _started(executors)
    job = job_of(objective, clients)
    calls: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: with_threads(1, lambda: plain_loop(work.module, data))
    }
    for name, executor in executors.items():
        threads = chosen[name].threads
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
                "method": name,
                "seconds": median,
                "range": f"{min(seen):.3g} - {max(seen):.3g}",
                "ratio": statistics.median(times[PLAIN]) / median,
                "percent_of_sgemm_rate": 100 * floor / median,
                "chunk": chunk,
                "startup_seconds": started.get(name),
                "peak_mb": measurement.peak_mb(work.name, name, clients, chunk or 1),
            }
        )
    rows.append({**dict.fromkeys(rows[0]), "method": AT_SGEMM, "seconds": floor})
    rows[-1] |= {"ratio": rows[0]["seconds"] / floor, "percent_of_sgemm_rate": 100.0}
    return rows


def _scaling(measurement: Measurement, sizes: tuple[int, ...]) -> Rows:
    objective, rows = Objective.of(workloads()["W1"].module), []
    for name in (GENERAL, FAST):
        for clients in sizes:
            seen, chunk = _times_alone(measurement, variants()[name], objective, clients)
            median = statistics.median(seen)
            rows.append(
                {
                    "method": name,
                    "clients": clients,
                    "samples_per_client": samples_each(len(measurement.labels), clients),
                    "seconds": median,
                    "ms_per_client": 1e3 * median / clients,
                    "chunk": chunk,
                    "peak_mb": measurement.peak_mb("W1", name, clients, chunk),
                }
            )
    return rows


def _times_alone(
    measurement: Measurement, variant: ExecutorChoice, objective: Objective, clients: int
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
    """Time local training of one edge round: HFedAvg, and HIST with 2, 4 and 8 cells."""
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
            "algorithm": name,
            "parameters": jobs[name].spec.size,
            "seconds": statistics.median(seen),
            "ratio_to_hfedavg": statistics.median(seen) / full,
        }
        for name, seen in times.items()
    ]
