"""Training in worker processes: on a CPU, two processes are faster than one with two threads.

Pipes carry only small messages; parameters and payloads are exchanged through shared memory.
"""

from __future__ import annotations

import pickle
import shutil
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

import torch
from torch import Tensor

from wirelessfl.training.executor import KEPT, Chunk, Executor, Job
from wirelessfl.training.rules import ClientRule
from wirelessfl.training.workers.processes import (
    from_standard_input,
)
from wirelessfl.training.workers.worker import (
    SLOTS,
    Order,
    Shapes,
    SharedMemory,
    Worker,
    end_of,
    views_in,
)

SERVERS = 16  # memory reserved for servers' tensors, in models; their number is not yet known
SHARED_MEMORY = Path("/dev/shm")


class WorkersExecutor(Executor):
    """Distributes the work of an executor over several processes.

    The processes start with the first job. If a worker dies, the run ends with an error that states
    its exit code. Workers end with the run or with their parent process, even if that is killed.

    Args:
        inner: executor of each worker; it must be picklable, including its model.
        workers: number of processes.
        threads: CPU threads per process.
    """

    name = "workers"

    def __init__(self, inner: Executor, workers: int, threads: int = 1) -> None:
        super().__init__(inner.objective, inner.data, inner.chunk)
        self.inner = inner
        self.count, self.threads = workers, threads
        self._workers: list[Worker] = []
        self._servers = torch.empty(0)

    @property
    def pids(self) -> list[int]:
        """Ids of the running processes."""
        return [worker.process.pid or 0 for worker in self._workers]

    def train(self, job: Job) -> Iterator[Chunk]:
        """Train the clients of ``job``; yields chunks in client order, not as they finish.

        Raises:
            WorkerDiedError: a worker ended unexpectedly.
            TrainingError: a client failed.
        """
        self.start()
        parts = job.parts(self.chunk)
        servers = self._share(job)
        bare = replace(job, servers={}, recall=None)
        orders = deque(enumerate(parts))
        done: dict[int, tuple[Worker, int, Shapes]] = {}
        try:
            for number, part in enumerate(parts):
                while number not in done:
                    self._hand_out(orders, job, bare, servers)
                    self._take_in(done)
                worker, slot, shapes = done.pop(number)
                yield Chunk.of(part, views_in(worker.slots[slot], shapes))
                worker.free.append(slot)
        except BaseException:  # including an early stop, which would leave replies in the pipes
            self.close()
            raise

    def _hand_out(
        self, orders: deque[tuple[int, slice]], job: Job, bare: Job, servers: Shapes
    ) -> None:
        """Send chunks to the workers with the fewest pending chunks while slots are free."""
        while orders:
            worker = min(self._workers, key=lambda worker: len(worker.waiting))
            if not worker.free:
                return
            number, part = orders.popleft()
            slot, kept = worker.free.popleft(), job.of(part).kept()
            shapes = {name: tuple(value.shape) for name, value in kept.items()}
            for name, view in views_in(end_of(worker.slots[slot], shapes), shapes).items():
                view.copy_(kept[name])
            worker.send(Order(bare.of(part), servers, shapes, slot))
            worker.waiting.append(number)

    def _take_in(self, done: dict[int, tuple[Worker, int, Shapes]]) -> None:
        """Wait for at least one result and add the results to ``done``."""
        by_pipe = {id(worker.pipe): worker for worker in self._workers}
        for pipe in wait([worker.pipe for worker in self._workers]):
            worker = by_pipe[id(pipe)]
            answer = worker.reply()  # an idle worker's pipe is ready only if the worker has ended
            number = worker.waiting.popleft()
            if isinstance(answer, BaseException):
                raise answer
            slot, shapes = answer
            done[number] = worker, slot, shapes

    def start(self) -> None:
        """Start the processes if they are not running."""
        if self._workers:
            return
        try:
            self._workers = [Worker(self.inner, self.threads) for _ in range(self.count)]
            for worker in self._workers:
                worker.ready = worker.reply()
        except BaseException:
            self.close()
            raise

    def _share(self, job: Job) -> Shapes:
        """Copy the servers' tensors to shared memory, and enlarge the result slots if needed."""
        needed = sum(value.numel() for value in job.servers.values())
        vectors = slot_vectors(job.rule)
        room = min(self.chunk, len(job.clients)) * job.spec.size * vectors
        small = room > max(worker.slots.shape[-1] for worker in self._workers)
        if small or needed > len(self._servers):
            if needed > len(self._servers):
                self._servers = _shared(needed)
            for worker in self._workers:
                if small:
                    worker.slots = _shared(SLOTS, room)
                worker.send(SharedMemory(self._servers, worker.slots))
                worker.reply()
        shapes = {name: tuple(value.shape) for name, value in job.servers.items()}
        for name, view in views_in(self._servers, shapes).items():
            view.copy_(job.servers[name])
        return shapes

    def _train(self, job: Job) -> dict[str, Tensor]:
        chunks = []
        for part in self.train(job):
            results = part.payloads | {KEPT + n: value for n, value in part.kept.items()}
            chunks.append({name: value.clone() for name, value in results.items()})
        return {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]}

    def close(self) -> None:
        """End the processes."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()
        self._servers = torch.empty(0)
        self.inner.close()


def _shared(*shape: int) -> Tensor:
    shared: Tensor = torch.empty(shape).share_memory_()  # type: ignore[no-untyped-call]
    return shared


def slot_vectors(rule: ClientRule) -> int:
    """Number of vectors per client in a slot: its payloads, and its state before and after."""
    return len(rule.payloads) + 2 * len(rule.client_state)


def why_no_workers(executor: Executor, workers: int, vectors: int) -> str | None:
    """Why ``executor`` cannot run in worker processes here; None if it can.

    Args:
        executor: executor of each worker.
        workers: number of workers.
        vectors: number of vectors per client in a slot, see ``slot_vectors``.
    """
    needed = executor.data.inputs.numel() * executor.data.inputs.element_size()
    if executor.data.inputs.is_shared():  # type: ignore[no-untyped-call]
        needed = 0
    frozen = [p for p in executor.objective.module.parameters() if not p.requires_grad]
    needed += sum(parameter.numel() * parameter.element_size() for parameter in frozen)
    held = workers * SLOTS * executor.chunk * vectors + SERVERS
    needed += 4 * executor.objective.spec.size * held
    if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free < needed:
        return (
            f"{SHARED_MEMORY} has less than the {needed / 1e6:.0f} MB of free shared memory that "
            "the processes need (in a container: set --shm-size)"
        )
    try:
        pickle.dumps(executor.objective.criterion)
    except Exception as error:  # a user's function may be a lambda
        return f"the loss cannot be sent to other processes ({error}): define it in a module file"
    try:
        pickle.dumps(executor.data.source.augmentation)
    except Exception as error:
        return f"augment cannot be sent to other processes ({error}): define it in a module file"
    try:
        pickle.dumps(executor.objective)
    except Exception as error:  # a user's module may raise anything
        return f"the model cannot be sent to other processes ({error})"
    return _session(executor)


def _session(executor: Executor) -> str | None:
    """Why other processes cannot import the main program, model or loss; None if they can."""
    if from_standard_input():
        return "the program comes from standard input, which worker processes cannot read"
    if getattr(__import__("__main__"), "__file__", None) is not None:
        return None
    kinds = {type(module) for module in executor.objective.module.modules()}
    if any(kind.__module__ == "__main__" for kind in kinds):
        return "the model is defined in an interactive session: define it in a module file"
    criterion = executor.objective.criterion
    source = getattr(criterion, "function", type(criterion))
    if getattr(source, "__module__", None) == "__main__":
        return "the loss is defined in an interactive session: define it in a module file"
    augmentation = executor.data.source.augmentation
    if getattr(getattr(augmentation, "function", None), "__module__", None) == "__main__":
        return "augment is defined in an interactive session: define it in a module file"
    return None
