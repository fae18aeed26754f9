"""A worker process: receives orders through a pipe, trains, and replies."""

from __future__ import annotations

import math
import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.base.errors import ConfigError, DataError, TrainingError
from wirelessfl.base.guard import failure
from wirelessfl.base.signals import ENDING
from wirelessfl.base.torch_state import warn_of_fallbacks
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import State
from wirelessfl.training.workers.fork_server import keep_freed_memory
from wirelessfl.training.workers.processes import end_with_parent

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
    """Train and reply until the pipe is closed."""
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
