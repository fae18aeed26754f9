"""Benchmark of clients with submodels of different widths, for several limits on padding."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.executors import FAST, ExecutorChoice, build, variants
from benchmarks.timing import Rows, interleaved, with_threads
from benchmarks.workloads import STEPS, client_data, job_of, random_samples
from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.air.links import PADDING
from wirelessfl.models import MLP, LeNet5
from wirelessfl.models.submodels import (
    ClientSubmodels,
    Dealing,
    deal_masks,
    dealt_capacities,
    find_neurons,
    levels_of,
)
from wirelessfl.models.submodels.client_submodels import SOME
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.module_executors import VmapExecutor
from wirelessfl.training.objective import Objective
from wirelessfl.training.stacked import StackedExecutor

CLIENTS = 40
EQUAL, WIDEST, MASKED = "equal widths only", "all padded to the widest", "full model, masked"
PADDINGS: Mapping[str, float | None] = {
    EQUAL: 0.0,
    f"padding up to {PADDING:g}": PADDING,
    "padding up to 0.3": 0.3,
    WIDEST: 1.0,
    MASKED: None,
}


class Updates(NamedTuple):
    """Updates of some clients after their local steps.

    Args:
        rows: indices of the clients.
        update: their updates in full coordinates, [rows, P].
    """

    rows: IntArray
    update: Tensor


@dataclass(frozen=True, eq=False)
class Mixture:
    """Clients with random masks of several widths.

    Args:
        submodels: the submodel of each client.
        whole: the job in which each client trains the full model.
        masked: [clients, P], the full model with zeros outside each client's submodel.
    """

    submodels: ClientSubmodels
    whole: Job
    masked: Tensor

    @classmethod
    def of(
        cls, objective: Objective, sample: Tensor, capacities: Sequence[float], whole: Job
    ) -> Mixture:
        """Assign the width ratios ``capacities`` evenly to the clients of the job ``whole``."""
        neurons, stream = find_neurons(objective.module, objective.spec, sample), Stream(0)
        levels = levels_of(neurons)
        shares = dealt_capacities(capacities, len(whole.clients), stream).tolist()
        counts = levels.widths[[levels.at(share) for share in shares]]
        dealing = Dealing(0, whole.clients, stream.child("round"), stream)
        submodels = ClientSubmodels(neurons, deal_masks("random", neurons.layers, counts, dealing))
        start = whole.servers["params"][0]
        return cls(submodels, whole, submodels.covers(whole.clients) * start)

    def jobs(self, padding: float | None, chunk: int) -> list[IntArray]:
        """Batches of clients that train together; arguments as in ``train``."""
        if padding is None or padding == 1:
            return [self.whole.clients]
        return self.submodels.batches(padding, max(SOME, chunk))

    def trained_share(self, jobs: Sequence[IntArray]) -> float:
        """Fraction of the full models' parameters that ``jobs`` train, including padding."""
        neurons, widths = self.submodels.neurons, self.submodels.widths
        trained = sum(len(rows) * neurons.parameters(widths[rows].max(0).tolist()) for rows in jobs)
        return trained / self.masked.numel()

    def train(self, executor: Executor, padding: float | None) -> Iterator[Updates]:
        """Train all clients.

        Args:
            executor: executor for the full model.
            padding: maximum padded fraction of a batch's parameters. 1 trains all clients in one
                batch, padded to the widest; None trains masked full models, which needs no further
                masking because zero weights before and after a ReLU stay zero.
        """
        everyone, start = self.whole.clients, self.whole.servers["params"][0]
        if padding is None:
            job = replace(self.whole, servers={"params": self.masked}, node=everyone)
            for chunk in executor.train(job):
                yield Updates(everyone[chunk.part], chunk.payloads["update"])
            return
        for rows in self.jobs(padding, executor.chunk):
            submodels = self.submodels.of(rows)
            job = replace(
                self.whole.of(slice(len(rows))),
                spec=submodels.spec,
                servers={"params": submodels.gather(start)},
                node=np.arange(len(rows)),
                clients=rows,
            )
            for chunk in executor.train(job):
                update = submodels.spread(chunk.payloads["update"], chunk.part)
                yield Updates(rows[chunk.part], update)

    def total(self, executor: Executor, padding: float | None) -> Tensor:
        """Train all clients; returns the sum of their updates, [P], the result of a round."""
        total = torch.zeros(self.masked.shape[1])
        for some in self.train(executor, padding):
            total += some.update.sum(0)
        return total


def models() -> dict[str, nn.Module]:
    """The models to train, with fixed initial weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return {"MLP": MLP((1, 28, 28), 10), "LeNet-5": LeNet5((1, 28, 28), 10)}


def mixtures(clients: int) -> dict[str, Sequence[float]]:
    """Width ratios by name, to be assigned evenly to clients."""
    return {
        "1, 1/2, 1/4, 1/8": (1.0, 0.5, 0.25, 0.125),
        "all different from 1/8 to 1": np.linspace(0.125, 1, clients).tolist(),
    }


def engines() -> dict[str, ExecutorChoice]:
    """The executors to measure; the chunk size is that of the full model, as in a run."""
    return {
        "stacked, one thread": ExecutorChoice(StackedExecutor, None),
        FAST: variants()[FAST],
        "vmap, one thread": ExecutorChoice(VmapExecutor, None),
    }


def submodel_bench(
    repeats: int = 5, clients: int = CLIENTS, steps: int = STEPS, samples: int = 1000
) -> dict[str, Rows]:
    """Time the local training of a round for several limits on padding, in interleaved runs.

    Seconds include computing the submodels' indices, extracting them and inserting the updates, but
    not choosing the masks.

    Args:
        repeats: timed runs of each method.
        clients: number of clients, with random data.
        steps: H, local steps.
        samples: samples per client.

    Returns:
        A table for each model, mixture of widths and executor. ``jobs`` is the number of batches of
        similar widths; ``percent_of_parameters`` is the trained fraction of all clients' full
        models, including padding; ``ratio_to_equal`` and ``ratio_to_masked`` are times relative to
        "equal widths only" and "full model, masked" in the same run.
    """
    x, y = random_samples(clients * samples)
    data = client_data(x, y, clients)
    tables: dict[str, Rows] = {}
    for name, module in models().items():
        objective = Objective.of(module)
        whole = job_of(objective, clients, steps)
        mixed = {
            widths: Mixture.of(objective, x[:2], capacities, whole)
            for widths, capacities in mixtures(clients).items()
        }
        for engine, way in engines().items():
            executor = with_threads(1, partial(build, way, objective, data))
            try:
                executor.start()
                for widths, mixture in mixed.items():
                    title = f"{name}, {clients} clients, widths {widths}: {engine}, random data"
                    tables[title] = _measure(mixture, executor, repeats)
            finally:
                executor.close()
    return tables


def _measure(mixture: Mixture, executor: Executor, repeats: int) -> Rows:
    calls: dict[str, Callable[[], Any]] = {
        way: partial(with_threads, 1, partial(mixture.total, executor, padding))
        for way, padding in PADDINGS.items()
    }
    times = interleaved(calls, repeats)
    seconds = {way: statistics.median(seen) for way, seen in times.items()}
    rows: Rows = []
    for way, padding in PADDINGS.items():
        jobs = mixture.jobs(padding, executor.chunk)
        rows.append(
            {
                "method": way,
                "chunk": executor.chunk,
                "jobs": len(jobs),
                "percent_of_parameters": 100 * mixture.trained_share(jobs),
                "seconds": seconds[way],
                "range": f"{min(times[way]):.3g} - {max(times[way]):.3g}",
                "ratio_to_equal": seconds[way] / seconds[EQUAL],
                "ratio_to_masked": seconds[way] / seconds[MASKED],
            }
        )
    return rows
