"""Chunks in processes of one thread each: on a CPU two of these beat two threads in one process.

On Linux, workers are forked from one process that has done the imports, which can be started early,
while data load. They are fed through pipes with words alone: parameters go in, and payloads come
out, by shared memory.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch import multiprocessing as torch_multiprocessing

from wirelessfl.errors import ConfigError, TrainingError
from wirelessfl.training.executor import KEPT, Chunk, Executor, Job, even_parts
from wirelessfl.training.rules import ClientRule
from wirelessfl.training.worker_process import Order, Places, Shapes, end_of, serve, views_in

SLOTS = 2  # results a worker may have waiting: it goes on while one is being added up
SERVERS = 16  # models that edge servers send at once: room that is asked for before it is known
SHARED_MEMORY = Path("/dev/shm")
GRACE_SECONDS = 5.0
PRELOADED = ["wirelessfl.models", *(f"wirelessfl.training.{n}" for n in ("stacked", "vmapped"))]
UNGUARDED = (
    "worker processes could not start. Each of them imports the script again that asks for them: "
    'put what starts the run below `if __name__ == "__main__":`, or choose workers=1.'
)
BROKEN = (
    "worker processes could not start; their own error is printed above. Can they import all that "
    "the model and the algorithm need? Otherwise choose workers=1."
)
UNGUARDED_CODE = 77
"""Exit code of a worker whose script asks for workers while it is imported."""
NAME = "wirelessfl worker"


class WorkerDiedError(TrainingError):
    """A worker process ended by itself, or was killed."""


class _ForkServer:
    """The process that workers are forked from, one for each process that has workers."""

    def __init__(self) -> None:
        self.owner = 0  # a process forked from another cannot use that one's server

    def start(self) -> bool:
        """Start it where it does not run yet; False where there can be none."""
        if not sys.platform.startswith("linux") or self.owner not in (0, os.getpid()):
            return False
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([serve.__module__, *PRELOADED])
        try:
            with _deaf_to_interrupts():
                forkserver.ensure_running()
        except OSError:  # no room for its socket, or a path too long for one
            return False
        self.owner = os.getpid()
        return True


_fork_server = _ForkServer()


def prepare_workers() -> None:
    """Start the process that workers are forked from; it imports what they need meanwhile.

    Calling it is never necessary: it saves time where workers will probably be used.
    """
    _fork_server.start()


def leave_if_worker() -> None:
    """End this process if it is a worker that imports the script which asks for workers."""
    process = multiprocessing.current_process()
    if process.name == NAME and getattr(process, "_inheriting", False):
        os._exit(UNGUARDED_CODE)


class Worker:
    """One process, and the parent's end of its pipe."""

    def __init__(self, executor: Executor, threads: int) -> None:
        forked = _fork_server.start()
        context: Any = torch_multiprocessing.get_context("forkserver" if forked else "spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, executor, threads), daemon=True, name=NAME
        )
        try:
            with ExitStack() as stack:
                if not forked:  # what is forked is deaf to interrupts as its server is
                    stack.enter_context(_deaf_to_interrupts())
                self.process.start()
        except (RuntimeError, EOFError, OSError) as error:
            raise ConfigError(BROKEN) from error
        theirs.close()
        self.ready = False
        self.slots = torch.empty(0)
        self.free = deque(range(SLOTS))
        self.waiting: deque[int] = deque()  # the chunks it has been given, by number

    def send(self, message: object) -> None:
        """Put a message into the pipe.

        Raises:
            WorkerDiedError: nobody reads it.
        """
        try:
            self.pipe.send(message)
        except OSError:
            self.reply()
            raise

    def reply(self) -> Any:
        """The next message of the process.

        Raises:
            WorkerDiedError: it has ended.
        """
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(GRACE_SECONDS)
            code = self.process.exitcode
            if not self.ready and code in (1, UNGUARDED_CODE):
                raise ConfigError(BROKEN if code == 1 else UNGUARDED) from None
            how = f"exit code {code}"
            if code is not None and code < 0:
                how += f", {signal.Signals(-code).name}"
            raise WorkerDiedError(
                f"worker process {self.process.pid} has ended ({how}), and with it what it was "
                "training. Was it killed, or short of memory?"
            ) from None

    def close(self) -> None:
        """End the process."""
        self.pipe.close()  # it leaves when it reads this
        self.process.join(0.1 if self.waiting else GRACE_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


class WorkersExecutor(Executor):
    """An executor's work, done by several processes.

    They start with the first job. A worker that dies ends the run with its exit code; workers end
    with the run, whatever ends it, and with their parent, even if that is killed.

    Args:
        inner: what each worker has; it and the model must be picklable.
        workers: how many.
        threads: of each.
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
        """The processes that run now."""
        return [worker.process.pid or 0 for worker in self._workers]

    def train(self, job: Job) -> Iterator[Chunk]:
        """What all clients of ``job`` send and keep, in client order, whoever finishes first.

        Raises:
            WorkerDiedError: a worker ended before it was asked to.
            TrainingError: a client failed.
        """
        self.start()
        parts = even_parts(len(job.clients), self.chunk)
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
        except BaseException:  # also a consumer that stops half way: replies would be left over
            self.close()
            raise

    def _hand_out(
        self, orders: deque[tuple[int, slice]], job: Job, bare: Job, servers: Shapes
    ) -> None:
        """Give the next chunks to whoever has the least to do, while there is room."""
        while orders:
            worker = min(self._workers, key=lambda worker: len(worker.waiting))
            if not worker.free:
                return
            number, part = orders.popleft()
            slot, kept = worker.free.popleft(), job.of(part).kept()
            shapes = {name: tuple(value.shape) for name, value in kept.items()}
            for name, place in views_in(end_of(worker.slots[slot], shapes), shapes).items():
                place.copy_(kept[name])
            worker.send(Order(bare.of(part), servers, shapes, slot))
            worker.waiting.append(number)

    def _take_in(self, done: dict[int, tuple[Worker, int, Shapes]]) -> None:
        """Wait for at least one result."""
        by_pipe = {id(worker.pipe): worker for worker in self._workers}
        for pipe in wait([worker.pipe for worker in self._workers]):
            worker = by_pipe[id(pipe)]
            answer = worker.reply()  # of one that waits for orders, only its end can be heard
            number = worker.waiting.popleft()
            if isinstance(answer, BaseException):
                raise answer
            slot, shapes = answer
            done[number] = worker, slot, shapes

    def start(self) -> None:
        """Start the processes, where they do not run yet.

        Raises:
            ConfigError: they cannot start.
        """
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
        """Put what the servers send into shared memory, and make sure that results have room."""
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
                worker.send(Places(self._servers, worker.slots))
                worker.reply()
        shapes = {name: tuple(value.shape) for name, value in job.servers.items()}
        for name, place in views_in(self._servers, shapes).items():
            place.copy_(job.servers[name])
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


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that start meanwhile do not hear Ctrl-C: it is for the parent, which ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _shared(*shape: int) -> Tensor:
    shared: Tensor = torch.empty(shape).share_memory_()  # type: ignore[no-untyped-call]
    return shared


def slot_vectors(rule: ClientRule) -> int:
    """Vectors of a client that a slot holds: what it sends, and what it keeps, before and after."""
    return len(rule.payloads) + 2 * len(rule.client_state)


def why_no_workers(executor: Executor, workers: int, vectors: int) -> str | None:
    """Why ``executor`` cannot run in worker processes here; None where it can.

    Args:
        executor: what each of them would have.
        workers: how many.
        vectors: of a client that a slot holds, see ``slot_vectors``.
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
            f"{SHARED_MEMORY} has less than the {needed / 1e6:.0f} MB of shared memory they need "
            "(in a container: --shm-size)"
        )
    try:
        pickle.dumps(executor.objective)
    except Exception as error:  # whatever a user's module raises
        return f"the model cannot be sent to other processes ({error})"
    return _session(executor)


def _session(executor: Executor) -> str | None:
    """Why other processes cannot read the program, or a part of the model; None where they can."""
    main = __import__("__main__")
    file = getattr(main, "__file__", None)
    if file is not None and Path(file).is_file():
        return None
    if file is not None:
        return "the program comes from standard input, which other processes cannot read"
    kinds = {type(module) for module in executor.objective.module.modules()}
    if any(kind.__module__ == "__main__" for kind in kinds):
        return "the model is defined in a session that other processes cannot read: use a module"
    return None
