"""The engine's benchmark: every way of training against the plain loop, in one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from wirelessfl.bench.memory import peak_mb
from wirelessfl.bench.ways import FAST, GENERAL, PLAIN, Way, build, ways, with_threads
from wirelessfl.bench.works import (
    CLIENTS,
    Work,
    dealt,
    job_of,
    plain_loop,
    samples,
    submodel_job,
    trained,
    works,
)
from wirelessfl.training.executor import Executor
from wirelessfl.training.objective import Objective
from wirelessfl.training.workers import WorkersExecutor

Rows = list[dict[str, Any]]
NEAR = 0.95  # a goal is met within five per cent


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
    x, y, source = samples(data_dir)
    rate = max(sgemm_rate(), sgemm_rate())
    one = with_threads(1, sgemm_rate)
    tables: dict[str, Rows] = {"machine": machine(source, rate, one)}
    for name, work in works().items():
        title = f"{name}: {clients} clients, {source}"
        tables[title] = _work_table(work, x, y, clients, repeats, rate, data_dir, memory)
    tables["W1 with more clients"] = _scaling(x, y, scaling, repeats, data_dir, memory)
    tables["submodels on W1"] = _submodels(x, y, clients, repeats)
    if torch.cuda.is_available():
        from wirelessfl.bench.gpu import gpu_tables
        from wirelessfl.bench.resnet18 import resnet18_table

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


def sgemm_rate(size: int = 2048, repeats: int = 5) -> float:
    """Measured float32 matrix products, in FLOP/s, the best of a few."""
    a, b = torch.ones(size, size), torch.ones(size, size)
    best = min(seconds_of(lambda: a @ b) for _ in range(repeats + 1))
    return 2 * size**3 / best


def seconds_of(call: Callable[[], Any]) -> float:
    """Wall seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(calls: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call, taken in turn, after one call of each that does not count."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds_of(call))
    return times


def _started(executors: Mapping[str, Executor]) -> dict[str, float]:
    """Start the workers of those that have some; seconds that it took, by name."""
    return {
        name: seconds_of(executor.start)
        for name, executor in executors.items()
        if isinstance(executor, WorkersExecutor)
    }


def _work_table(
    work: Work,
    x: torch.Tensor,
    y: torch.Tensor,
    clients: int,
    repeats: int,
    rate: float,
    data_dir: Path | None,
    memory: bool,
) -> Rows:
    data, objective = dealt(x, y, clients), Objective.of(work.module)
    executors = {name: build(way, objective, data) for name, way in ways().items()}
    started = _started(executors)
    job = job_of(objective, clients)
    calls: dict[str, Callable[[], Any]] = {
        PLAIN: lambda: with_threads(1, lambda: plain_loop(work.module, data))
    }
    for name, executor in executors.items():
        threads = 1 if isinstance(executor, WorkersExecutor) else torch.get_num_threads()
        calls[name] = lambda e=executor, t=threads: with_threads(t, lambda: trained(e, job))  # type: ignore[misc]
    try:
        times = interleaved(calls, repeats)
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
                "peak_mb": peak_mb(work.name, name, clients, chunk or 1, data_dir)
                if memory
                else None,
            }
        )
    rows.append({**dict.fromkeys(rows[0]), "way": "floor", "seconds": floor})
    rows[-1] |= {"ratio": rows[0]["seconds"] / floor, "%_of_floor": 100.0}
    return rows


def _scaling(
    x: torch.Tensor,
    y: torch.Tensor,
    sizes: tuple[int, ...],
    repeats: int,
    data_dir: Path | None,
    memory: bool,
) -> Rows:
    work, rows = works()["W1"], []
    objective = Objective.of(work.module)
    for name, way in ((GENERAL, ways()[GENERAL]), (FAST, ways()[FAST])):
        for clients in sizes:
            data = dealt(x, y, clients)
            seen, chunk = _times_alone(way, objective, data, clients, repeats)
            median = statistics.median(seen)
            rows.append(
                {
                    "way": name,
                    "clients": clients,
                    "samples_each": len(data.source.parts[0]),
                    "seconds": median,
                    "ms_a_client": 1e3 * median / clients,
                    "chunk": chunk,
                    "peak_mb": peak_mb("W1", name, clients, chunk, data_dir) if memory else None,
                }
            )
    return rows


def _times_alone(
    way: Way, objective: Objective, data: Any, clients: int, repeats: int
) -> tuple[list[float], int]:
    executor, job = build(way, objective, data), job_of(objective, clients)
    _started({"": executor})
    try:
        calls = {"": lambda: with_threads(1, lambda: trained(executor, job))}
        return interleaved(calls, repeats)[""], executor.chunk
    finally:
        executor.close()


def _submodels(x: torch.Tensor, y: torch.Tensor, clients: int, repeats: int) -> Rows:
    """One edge round of local training: HFedAvg, and HIST with several numbers of cells."""
    data, objective = dealt(x, y, clients), Objective.of(works()["W1"].module)
    executor = build(ways()[FAST], objective, data)
    _started({"": executor})
    jobs = {"HFedAvg": job_of(objective, clients)}
    jobs |= {f"HIST, N = {n}": submodel_job(objective, clients, n) for n in (2, 4, 8)}
    calls: dict[str, Callable[[], Any]] = {
        name: lambda j=job: with_threads(1, lambda: trained(executor, j))  # type: ignore[misc]
        for name, job in jobs.items()
    }
    try:
        times = interleaved(calls, repeats)
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
    """Each goal beside what was measured."""

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
    most = scaled[-1]["clients"]
    rows.append(_goal(f"{most} clients: at most 1.1x the time of each", growth, 1.1, below=True))
    peaks = [row["peak_mb"] for row in tables["W1 with more clients"] if row["clients"] == most]
    if None not in peaks:
        rows.append(_goal(f"{most} clients: 200 MB over the data", max(peaks), 200, below=True))
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
