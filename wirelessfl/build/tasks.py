"""From a configuration with tasks to the objects of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from channels import Network
from channels.streams import Stream
from wirelessfl.algorithms.task_rule import BufferedRule
from wirelessfl.build.basis import Basis, Loaded, prepare
from wirelessfl.build.given import with_given
from wirelessfl.build.network import build_network
from wirelessfl.config import Config
from wirelessfl.config.tasks import OWN
from wirelessfl.data import Dataset
from wirelessfl.data.client_samples import part_sizes
from wirelessfl.errors import ConfigError
from wirelessfl.server.client_states import InMemory
from wirelessfl.server.server import Server
from wirelessfl.server.weights import Weights
from wirelessfl.tasks.delays import (
    PUBLISHED_STEP_SECONDS,
    Delays,
    ShiftedExponential,
    Wireless,
    client_speeds,
)
from wirelessfl.tasks.learner import EvaluationSet, Learner
from wirelessfl.tasks.local_steps import LocalSteps
from wirelessfl.training.shards import Shards

MOST_WITH_WORKERS = 2
"""Tasks that get worker processes by themselves, each its own; more would crowd the memory."""


@dataclass(frozen=True, eq=False)
class TaskParts:
    """What a run of several tasks is made of.

    Args:
        config: of the run, with device, executor, chunk and threads resolved.
        tasks: by name, what each is trained with.
        bases: of each task, in their order.
        learners: likewise.
        network: cells and clients.
        stream: the run's.
        notes: what the user should know, a line each.
    """

    config: Config
    tasks: dict[str, Config]
    bases: list[Basis]
    learners: list[Learner]
    network: Network
    stream: Stream
    notes: list[str]

    @property
    def elements(self) -> list[int]:
        """Numbers in an update of each task."""
        return [
            own.objective.spec.size * len(learner.server.algorithm.payloads)
            for own, learner in zip(self.bases, self.learners, strict=True)
        ]


def build_tasks(
    config: Config,
    *,
    model: nn.Module | None = None,
    data: Dataset | None = None,
    network: Network | None = None,
    shards: Shards = Shards(),  # noqa: B008
) -> TaskParts:
    """The objects of the run that ``config`` describes.

    Tasks with the same data settings share the data and their split: their clients hold the same
    samples for all of them.

    Args:
        config: the settings.
        model: used instead of the configured one, where there is but one task and no table.
        data: used instead of the configured data set, likewise.
        network: used instead of the configured network and the settings that describe it.
        shards: the processes that share the clients; one is all that is possible here.

    Raises:
        ConfigError: settings that do not go together.
        DataError: no such data, or a split that cannot be made.
    """
    name = config.algorithm["name"]
    if shards.count > 1:
        raise ConfigError(
            f'torchrun has started {shards.count} processes, and algorithm "{name}" runs in one. '
            "Start it without torchrun."
        )
    for thing, given in (("model", model), ("data", data)):
        if given is not None and config.task:
            raise ConfigError(
                f"{thing} was given to wirelessfl.run, and the configuration has tasks: name it in "
                'their tables, as "module:name".'
            )
    config = with_given(config, model=model, data=data, network=network)
    stream = Stream(config.run.seed)
    if network is None:
        network = build_network(config.network, stream)
    few = len(config.task) <= MOST_WITH_WORKERS
    workers = config.run.workers if few or config.run.workers != "auto" else 1
    run = config.run.model_copy(update={"workers": workers, "client_states": "memory"})
    config = config.model_copy(update={"run": run})
    loaded, bases, learners = Loaded(), list[Basis](), list[Learner]()
    resolved: dict[str, Config] = {}
    for task, own in config.tasks.items():
        algorithm = own.build_algorithm()
        # A run without tables is that of one model, to the last stream.
        named = stream.child("task", task) if config.task else stream
        together = getattr(algorithm, "requests", own.training.clients_per_round)
        basis = prepare(
            own,
            network,
            algorithm,
            stream,
            model=model,
            data=data,
            own=named,
            together=together,
            updates=getattr(algorithm, "buffer", None),
            loaded=loaded,
        )
        resolved[task] = basis.config
        bases.append(basis)
        device = basis.config.run.device
        samples = None
        if own.training.weighting == "samples":
            samples = part_sizes(basis.parts).astype(np.float64)
        server = Server(
            algorithm,
            own.build_uplink(),
            Weights(np.zeros(network.clients, dtype=np.int64), samples),
            InMemory(algorithm.remembers, basis.objective.spec.size),
            basis.start.to(device),
        )
        local_steps = own.training.local_steps
        learners.append(
            Learner(
                server,
                LocalSteps(task, algorithm, basis.objective, basis.executor, local_steps),
                EvaluationSet(basis.data.test_inputs.to(device), basis.data.test_labels.to(device)),
                named,
                recent=algorithm.reallocation.updates if isinstance(algorithm, BufferedRule) else 0,
            )
        )
    first = next(iter(resolved.values()))
    if config.task:
        tables = tuple(
            table | {key: getattr(own.run, key) for key in OWN["run"]}
            for table, own in zip(config.task, resolved.values(), strict=True)
        )
        settled = {"device": first.run.device, "threads": first.run.threads}
        run = config.run.model_copy(update=settled)
        config = config.model_copy(update={"task": tables, "run": run})
    else:
        config = first
    notes = [
        note if len(bases) == 1 else f"task {task}: {note}"
        for task, basis in zip(resolved, bases, strict=True)
        for note in basis.notes
    ]
    return TaskParts(config, resolved, bases, learners, network, stream, notes)


def build_delays(
    config: Config,
    tasks: dict[str, Config],
    network: Network,
    elements: list[int],
    stream: Stream,
) -> Delays:
    """How long trainings take.

    Args:
        config: the run's settings; a task's table may say what a step of its own model costs.
        tasks: by name, what each is trained with.
        network: cells and clients, and what a step costs otherwise.
        elements: [tasks], numbers in an update.
        stream: the run's.
    """
    steps = [own.training.local_steps for own in tasks.values()]
    first = next(iter(tasks.values()))
    if first.network.delays == "shifted-exponential":
        least = [own.training.local_steps * _beta(own) for own in tasks.values()]
        speeds = client_speeds(network.clients, stream.child("client speeds"))
        return ShiftedExponential(least, speeds, stream.child("durations"))
    seconds = [_step_seconds(table, network) for table in config.task or ({},)]
    uplink, down = first.build_uplink(), first.network.downlink_mbps
    rate = 1e6 * down if down else uplink.downlink_bps
    return Wireless(network, uplink, steps, seconds, elements, rate, stream.child("uploads"))


def _step_seconds(table: Mapping[str, Any], network: Network) -> NDArray[np.float64]:
    """[clients], seconds of a step of a task: the network's, unless its table has its own."""
    if table.get("step_seconds") is not None:
        return np.full(network.clients, float(table["step_seconds"]))
    cycles = table.get("cycles_per_step", network.cycles_per_step)
    return np.asarray(cycles / network.cpu_hz)


def _beta(own: Config) -> float:
    """Least seconds of a step on a normal client."""
    if own.network.step_seconds is not None:
        return own.network.step_seconds
    return own.network.delay_scale * PUBLISHED_STEP_SECONDS[own.data.dataset]
