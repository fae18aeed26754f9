"""One of several tasks: its model at the server, and the training of what clients were sent."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from channels.arrays import FloatArray, IntArray
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.algorithms.timing import Reallocation
from wirelessfl.errors import ConfigError
from wirelessfl.tasks.requests import Request
from wirelessfl.training.cohort import State
from wirelessfl.training.evaluate import evaluate
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.objective import Objective
from wirelessfl.training.payloads import Received

RESULT_BYTES = 1 << 30
"""Updates of requests that are trained ahead of their time take no more than this, about."""


@dataclass(frozen=True, eq=False)
class Sent:
    """A request that is not trained yet: whose, where its batches begin, what it was sent."""

    client: int
    first_step: int
    version: int


class Learner:
    """A model, its server's state, and the updates of its clients.

    What a request trains depends on the model it was sent and on named streams alone. So training
    waits until an update is needed, and then goes for all requests that are out, together.

    Args:
        name: of the task.
        algorithm: client and server rules.
        task: model and loss.
        executor: where updates are computed.
        local_steps: tau.
        samples: [clients], samples of each; None: updates weigh alike.
        params: initial parameters [P].
        clients: N.
        test_inputs: test samples on the device.
        test_labels: their labels.
        reallocation: by which spread of the latest updates requests are dealt out anew; None: not.
    """

    def __init__(
        self,
        name: str,
        algorithm: Algorithm,
        task: Objective,
        executor: Executor,
        *,
        local_steps: int,
        samples: FloatArray | None,
        params: Tensor,
        clients: int,
        test_inputs: Tensor,
        test_labels: Tensor,
        reallocation: Reallocation | None = None,
    ) -> None:
        self.name, self.algorithm, self.objective, self.executor = name, algorithm, task, executor
        self.local_steps, self.samples = local_steps, samples
        self.test_inputs, self.test_labels = test_inputs, test_labels
        self.state: State = algorithm.initial(params)
        self.version = 0
        self.steps_done = np.zeros(clients, dtype=np.int64)
        self.models: dict[int, State] = {}
        self.waiting: dict[int, Sent] = {}
        self.ready: dict[int, State] = {}
        self.clients: dict[int, int] = {}
        self.back: list[int] = []
        self.reallocation = reallocation
        kept = 0 if reallocation is None else reallocation.updates
        self.recent: deque[State] = deque(maxlen=kept)
        self.trained = 0

    @property
    def most_ahead(self) -> int:
        """Updates that are trained and not merged yet, at most, beside those that are needed."""
        own = 4 * self.objective.spec.size * len(self.algorithm.payloads)
        return max(RESULT_BYTES // own, self.executor.chunk)

    def issue(self, request: Request) -> None:
        """Send the present model to a client."""
        first = int(self.steps_done[request.client])
        self.steps_done[request.client] += self.local_steps
        if request.lost_after is None:  # else nobody will see the update
            self.models.setdefault(request.version, self._sent())
            self.waiting[request.number] = Sent(request.client, first, request.version)
            self.clients[request.number] = request.client

    def _sent(self) -> State:
        return self.algorithm.outgoing(self.state)

    def end(self) -> None:
        """Nothing that is out is wanted any more."""
        for table in (self.waiting, self.ready, self.clients, self.models):
            table.clear()
        self.back.clear()
        self.recent.clear()

    def _forget_models(self) -> None:
        wanted = {sent.version for sent in self.waiting.values()}
        self.models = {version: own for version, own in self.models.items() if version in wanted}

    def came_back(self, number: int) -> None:
        """The update of a request is in; it is trained when somebody looks at it."""
        self.back.append(number)

    def _train(self, numbers: Sequence[int]) -> None:
        """Train these requests, and with them the oldest of those that wait: a power of two.

        Recorded programs are made for a number of clients: few numbers serve again.
        """
        needed = dict.fromkeys(n for n in numbers if n not in self.ready)
        if not needed:
            return
        room = max(self.most_ahead - len(self.ready), len(needed))
        most = min(len(self.waiting), room)
        size = 1 << (most.bit_length() - 1)
        others = (own for own in self.waiting if own not in needed)
        chosen = [*needed, *itertools.islice(others, max(size - len(needed), 0))]
        sent = [self.waiting.pop(own) for own in chosen]
        versions = sorted({own.version for own in sent})
        place = {version: i for i, version in enumerate(versions)}
        node = np.array([place[own.version] for own in sent])
        order = np.argsort(node, kind="stable")  # those of one model stand together
        job = Job(
            rule=self.algorithm,
            spec=self.objective.spec,
            servers={
                name: torch.stack([self.models[version][name] for version in versions])
                for name in self.algorithm.sends
            },
            node=node[order],
            clients=np.array([sent[i].client for i in order]),
            first_steps=np.array([sent[i].first_step for i in order]),
            local_steps=self.local_steps,
            label=f"task {self.name}, requests {min(chosen)} to {max(chosen)}",
            penalties=self.algorithm.penalties,
        )
        numbers = [chosen[i] for i in order]
        for chunk in self.executor.train(job):
            for row, own in enumerate(numbers[chunk.part]):
                self.ready[own] = {
                    name: value[row].clone() for name, value in chunk.payloads.items()
                }
        self.trained += len(numbers)
        self._forget_models()

    def merge(self, requests: Sequence[int], staleness: Sequence[int]) -> None:
        """Merge the updates of these requests, in this order."""
        self._train(requests)
        if self.recent.maxlen:
            self.recent.extend(self.ready[number] for number in requests)
        self.back.clear()
        own = [self.ready.pop(number) for number in requests]
        clients = np.array([self.clients.pop(number) for number in requests])
        each = {name: torch.stack([value[name] for value in own]) for name in own[0]}
        sums: dict[str, Tensor] = {}
        _add(sums, each, self._weights(clients))
        self._apply(sums, each, clients, np.array(staleness, dtype=np.int64))

    def train_round(self, clients: IntArray) -> None:
        """Train these clients from the present model, and merge their updates."""
        job = self.round_of(clients)
        self.steps_done[clients] += self.local_steps
        wanted = {payload.name for payload in self.algorithm.payloads if payload.each}
        parts: dict[str, list[Tensor]] = {}
        sums: dict[str, Tensor] = {}
        weights = self._weights(clients)
        for chunk in self.executor.train(job):
            _add(sums, chunk.payloads, weights[chunk.part])
            for name in wanted & chunk.payloads.keys():
                parts.setdefault(name, []).append(chunk.payloads[name].clone())
        self.trained += len(clients)
        self._apply(sums, {name: torch.cat(part) for name, part in parts.items()}, clients, None)

    def round_of(self, clients: IntArray) -> Job:
        """The local training of these clients from the present model."""
        return Job(
            rule=self.algorithm,
            spec=self.objective.spec,
            servers={name: value[None] for name, value in self._sent().items()},
            node=np.zeros(len(clients), dtype=np.int64),
            clients=clients,
            first_steps=self.steps_done[clients],
            local_steps=self.local_steps,
            label=f"task {self.name}, version {self.version}",
            penalties=self.algorithm.penalties,
        )

    def _weights(self, clients: IntArray) -> FloatArray:
        if self.samples is None:
            return np.full(len(clients), 1 / len(clients))
        return np.asarray(self.samples[clients] / self.samples[clients].sum())

    def _share(self, clients: IntArray) -> dict[str, Tensor]:
        own = np.ones(len(self.steps_done)) if self.samples is None else self.samples
        share = self.state["params"].new_full((1, 1), float(own[clients].sum() / own.sum()))
        return {payload.name: share for payload in self.algorithm.payloads}

    def _apply(
        self,
        sums: State,
        each: State,
        clients: IntArray,
        staleness: IntArray | None,
    ) -> None:
        """The server's next state, from weighted means [P] and updates [clients, P]."""
        received = Received(
            {name: value[None] for name, value in sums.items()},
            each,
            clients,
            np.zeros(len(clients), dtype=np.int64),
            local_steps=self.local_steps,
            share=self._share(clients),
            staleness=staleness,
        )
        before = {name: value[None] for name, value in self.state.items()}
        merged = self.algorithm.merge(before, received)
        if merged.keys() != before.keys():
            raise ConfigError(
                f"algorithm {self.algorithm.name!r} begins with the server state {sorted(before)}, "
                f"and its merge gives {sorted(merged)}: they must agree."
            )
        self.state = {name: value[0] for name, value in merged.items()}
        self.version += 1

    def spread(self) -> float | None:
        """How far the latest V updates lie apart; None before there are as many."""
        if self.reallocation is None:
            return None
        self._train(self.back)
        latest = [*self.recent, *(self.ready[number] for number in self.back)]
        if len(latest) < self.reallocation.updates:
            return None
        name = self.algorithm.payloads[0].name
        updates = torch.stack([own[name] for own in latest[-self.reallocation.updates :]])
        return self.reallocation.spread(updates, self.local_steps)

    @torch.no_grad()
    def losses(self, clients: IntArray) -> FloatArray:
        """[clients], loss of the present model on all samples of each."""
        params = self.objective.spec.views(self.state["params"])
        data, found = self.executor.data, []
        self.objective.module.eval()
        for client in clients.tolist():
            rows = torch.from_numpy(np.asarray(data.source.parts[client], dtype=np.int64))
            x, y = data.batch(rows.to(data.inputs.device))
            found.append(float(F.cross_entropy(self.objective.call(params, x), y)))
        return np.array(found)

    def evaluate(self) -> tuple[float, float]:
        """Accuracy and loss on the test set."""
        return evaluate(self.objective, self.state["params"], self.test_inputs, self.test_labels)

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors, for a checkpoint."""
        found = {f"state.{name}": value for name, value in self.state.items()}
        found["steps_done"] = torch.from_numpy(self.steps_done.copy())
        for kind, rows in (
            ("models", list(self.models.values())),
            ("ready", list(self.ready.values())),
            ("recent", list(self.recent)),
        ):
            for name in rows[0] if rows else ():
                found[f"{kind}.{name}"] = torch.stack([own[name] for own in rows])
        return found

    def snapshot(self) -> dict[str, Any]:
        """All other state, as plain numbers and lists."""
        return {
            "version": self.version,
            "trained": self.trained,
            "models": list(self.models),
            "ready": list(self.ready),
            "back": self.back,
            "waiting": [[n, s.client, s.first_step, s.version] for n, s in self.waiting.items()],
            "clients": [[n, client] for n, client in self.clients.items()],
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        device = self.state["params"].device

        def rows(kind: str) -> list[State]:
            own = {n.removeprefix(kind): v for n, v in tensors.items() if n.startswith(kind)}
            count = len(next(iter(own.values()))) if own else 0
            return [{n: v[i].to(device) for n, v in own.items()} for i in range(count)]

        self.state = {
            n.removeprefix("state."): v.to(device)
            for n, v in tensors.items()
            if n.startswith("state.")
        }
        self.steps_done = tensors["steps_done"].numpy().copy()
        self.version, self.trained = state["version"], state["trained"]
        self.models = dict(zip(state["models"], rows("models."), strict=True))
        self.ready = dict(zip(state["ready"], rows("ready."), strict=True))
        self.recent.clear()
        self.recent.extend(rows("recent."))
        self.back = list(state["back"])
        self.waiting = {n: Sent(*own) for n, *own in state["waiting"]}
        self.clients = dict(state["clients"])


def _add(sums: State, values: State, weights: FloatArray) -> None:
    """Add weighted rows [clients, P] to sums [P], client by client, whatever the chunks."""
    for name, value in values.items():
        total = sums.setdefault(name, torch.zeros_like(value[0]))
        for weight, own in zip(weights.tolist(), value, strict=True):
            total.add_(own, alpha=weight)
