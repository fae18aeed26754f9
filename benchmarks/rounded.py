"""Benchmark of rounded products on a CPU: a round of W1 and W2 in bfloat16 and in float32."""

from __future__ import annotations

import statistics
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.executors import FAST, build, variants
from benchmarks.timing import Rows, interleaved, with_threads
from benchmarks.workloads import client_data, job_of, trained, workloads
from wirelessfl.training.objective import Objective
from wirelessfl.training.precision import reduced

METHODS = ("stacked, one thread", FAST)
PRECISIONS = ("float32", "bf16")


def rounded_table(x: Tensor, y: Tensor, clients: int, repeats: int) -> Rows:
    """Time a round in both precisions, interleaved; no rows on a CPU without bfloat16 products.

    Args:
        x: inputs [samples, ...].
        y: labels [samples].
        clients: number of clients.
        repeats: timed runs of each method; medians are reported.

    Returns:
        Rows with seconds, and the speed relative to float32 in the same run; the chunk is the
        default of a run.
    """
    if not reduced(torch.device("cpu")):
        return []
    rows: Rows = []
    for name, work in workloads().items():
        data, objective = client_data(x, y, clients), Objective.of(work.module)
        job = job_of(objective, clients)
        executors = {
            (method, precision): build(
                variants()[method], replace(objective, precision=precision), data
            )
            for method in METHODS
            for precision in PRECISIONS
        }
        calls = {
            " ".join(key): lambda e=executor, j=job: with_threads(1, lambda: trained(e, j))
            for key, executor in executors.items()
        }
        try:
            times = interleaved(calls, repeats)
        finally:
            for executor in executors.values():
                executor.close()
        for (method, precision), executor in executors.items():
            median = statistics.median(times[f"{method} {precision}"])
            exact = statistics.median(times[f"{method} float32"])
            rows.append(
                {
                    "work": name,
                    "method": method,
                    "precision": precision,
                    "chunk": executor.chunk,
                    "seconds": median,
                    "ratio_to_float32": exact / median,
                }
            )
    return rows
