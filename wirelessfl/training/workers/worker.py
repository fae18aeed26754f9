"""A worker process: what it does with orders, and the parent's end of its pipe."""

from __future__ import annotations

import math
import signal
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from channels.concurrency import process_state
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.guard import failure
from wirelessfl.base.signals import ENDING, ignored
from wirelessfl.base.torch_state import warn_of_fallbacks
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import State
from wirelessfl.training.workers.processes import (
    CHILD,
    UNGUARDED_CODE,
    broken,
    end_with_parent,
    fork_server,
    keep_freed_memory,
    start,
    unguarded,
)

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class SharedMemory:
    """Shared tensors: the servers' tensors for all workers, and one worker's result slots."""

    servers: Tensor
    slots: Tensor


@dataclass(frozen=True)
class Order:
    """An order to train a chunk.

    Args:
        job: the chunk's job, without the servers' tensors.
        servers: shapes of the servers' tensors, which are stored consecutively in shared memory.
        kept: shapes of the clients' state, which is stored at the end of the slot.
        slot: index of the result slot.
    """

    job: Job
    servers: Shapes
    kept: Shapes
    slot: int


def views_in(memory: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """Views of tensors that are stored consecutively in ``memory``."""
    views, position = {}, 0
    for name, shape in shapes.items():
        end = position + math.prod(shape)
        views[name] = memory[position:end].view(shape)
        position = end
    return views


def end_of(memory: Tensor, shapes: Shapes) -> Tensor:
    """The last part of ``memory``, with room for exactly tensors of these shapes."""
    return memory[len(memory) - sum(map(math.prod, shapes.values())) :]


def serve(pipe: Connection, executor: Executor, threads: int) -> None:
    """Main function of a worker process."""
    for number in ENDING:  # in case the parent could not set this
        signal.signal(number, signal.SIG_IGN)
    end_with_parent()
    torch.set_num_threads(threads)
    warn_of_fallbacks(False)
    keep_freed_memory()
    with suppress(EOFError, OSError):  # the parent has closed its end
        _take_orders(pipe, executor)


def _take_orders(pipe: Connection, executor: Executor) -> None:
    memory = SharedMemory(torch.empty(0), torch.empty(0))
    executor.warm_up()
    pipe.send(True)  # ready
    while True:
        message = pipe.recv()
        if isinstance(message, SharedMemory):
            memory = message
            pipe.send(True)
            continue
        try:
            answer: object = _carry_out(message, executor, memory)
        except (ConfigError, DataError, TrainingError) as error:
            answer = error
        except Exception as error:
            answer = failure(message.job.title, error)
        pipe.send(answer)


def _carry_out(order: Order, executor: Executor, memory: SharedMemory) -> tuple[int, Shapes]:
    """Train a chunk and store its results in its slot."""
    slot = memory.slots[order.slot]
    kept, whole = views_in(end_of(slot, order.kept), order.kept), order.job.clients

    def recall(clients: IntArray, node: IntArray) -> State:
        """State of some of the chunk's clients, or of all of them without a copy."""
        if len(clients) == len(whole):
            return kept
        rows = torch.from_numpy(np.flatnonzero(np.isin(whole, clients)))
        return {name: value[rows] for name, value in kept.items()}

    job = replace(order.job, servers=views_in(memory.servers, order.servers), recall=recall)
    results = executor.results(job)
    shapes = {name: tuple(value.shape) for name, value in results.items()}
    for name, view in views_in(slot, shapes).items():
        view.copy_(results[name])
    return order.slot, shapes


SLOTS = 2  # result slots per worker: it trains the next chunk while one result is merged
GRACE_SECONDS = 5.0
ONE = "workers=1"
"""The setting that needs no worker processes."""


class WorkerDiedError(TrainingError):
    """A worker process ended unexpectedly or was killed."""


class Worker:
    """One worker process and the parent's end of its pipe."""

    def __init__(self, executor: Executor, threads: int) -> None:
        context = fork_server.context()
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, executor, threads), daemon=True, name=CHILD
        )
        with ignored():  # this process ends the worker
            start(self.process, ONE)
        theirs.close()
        self.ready = False
        self.slots = torch.empty(0)
        self.free = deque(range(SLOTS))
        self.waiting: deque[int] = deque()  # indices of its pending chunks

    def send(self, message: object) -> None:
        """Send a message to the process.

        Raises:
            WorkerDiedError: the process has ended.
        """
        try:
            self.pipe.send(message)
        except OSError:
            while True:  # its last answers come before the end of the pipe
                self.reply()

    def reply(self) -> Any:
        """Receive the next message of the process.

        Raises:
            WorkerDiedError: the process has ended.
            ConfigError: the process could not start.
        """
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(GRACE_SECONDS)
            code = self.process.exitcode
            if not self.ready and code in (1, UNGUARDED_CODE):
                raise ConfigError(broken(ONE) if code == 1 else unguarded(ONE)) from None
            how = f"exit code {code}"
            if code is not None and code < 0:
                how += f", {signal.Signals(-code).name}"
            raise WorkerDiedError(
                f"worker process {self.process.pid} has ended ({how}), and its results are lost: "
                "check whether it was killed or ran out of memory."
            ) from None

    def close(self) -> None:
        """End the process."""
        self.pipe.close()  # the worker exits when it notices
        self.process.join(0.1 if self.waiting else GRACE_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        with process_state:  # a process that another thread starts looks at all processes
            self.process.close()
