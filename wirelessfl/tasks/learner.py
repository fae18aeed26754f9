"""One of several tasks: its server, the updates of its clients, and tests of its model."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from channels import ChannelDraw
from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.timing import Reallocation
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders, Upload
from wirelessfl.submodels import Submodels
from wirelessfl.tasks.deferred_training import DeferredTraining, Pending, joined, separated
from wirelessfl.tasks.local_steps import LocalSteps
from wirelessfl.tasks.request import Request
from wirelessfl.training.cohort import State
from wirelessfl.training.evaluate import evaluate
from wirelessfl.training.executor import Job
from wirelessfl.training.shards import ALONE
from wirelessfl.uplinks.base import Reception


@dataclass(frozen=True, eq=False)
class EvaluationSet:
    """What a model is tested on.

    Args:
        inputs: [samples, ...] on the device.
        labels: [samples] on the device.
    """

    inputs: Tensor
    labels: Tensor


class Learner:
    """A task's model at the server, and the training of its clients.

    Its server is that of a star.

    Args:
        server: the model's.
        local: how clients train.
        test: what the model is tested on.
        stream: randomness of uploads.
        reallocation: how requests are reallocated by the spread of the latest updates; None: never.
    """

    def __init__(
        self,
        server: Server,
        local: LocalSteps,
        test: EvaluationSet,
        stream: Stream,
        reallocation: Reallocation | None = None,
    ) -> None:
        self.server, self.local, self.test, self.stream = server, local, test, stream
        self.deferred = DeferredTraining(local)
        self.steps_done = np.zeros(len(server.present), dtype=np.int64)
        self.clients: dict[int, int] = {}
        """Client of each request, until its update is merged."""
        self.back: list[int] = []
        """Requests whose updates have returned since the last merge."""
        self.reallocation = reallocation
        kept = 0 if reallocation is None else reallocation.updates
        self.recent: deque[State] = deque(maxlen=kept)
        self._whole = Submodels.whole(local.objective.spec, 1)

    def _broadcast(self) -> State:
        """The state that clients are sent now, [1, P] by name."""
        return self.server.algorithm.outgoing(self.server.at_nodes(self._whole))

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""
        first = int(self.steps_done[request.client])
        self.steps_done[request.client] += self.local.count
        if request.lost_after is None:  # otherwise the update is lost
            if self.deferred.lacks_model(request.version):
                self.deferred.keep_model(request.version, self._broadcast())
            self.deferred.add(request.number, Pending(request.client, first, request.version))
            self.clients[request.number] = request.client

    def end(self) -> None:
        """Drop all requests and updates."""
        self.deferred.clear()
        self.clients.clear()
        self.back.clear()
        self.recent.clear()

    def came_back(self, number: int) -> None:
        """The update of a request has returned; it is trained when it is needed."""
        self.back.append(number)

    def elements_on_air(self, requests: Sequence[int]) -> int:
        """Numbers that an upload lasts in which the clients of these requests send at once."""
        return self.local.objective.spec.size * len(self.server.algorithm.payloads)

    def elements_of_round(self, clients: IntArray) -> int:
        """Numbers that an upload lasts in which these clients send at once what they train now."""
        return self.local.objective.spec.size * len(self.server.algorithm.payloads)

    def merge(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Merge the updates of these requests, in this order, as sent over ``draw``, if any."""
        updates = self.deferred.take(requests)
        self.recent.extend(updates)
        self.back.clear()
        clients = np.array([self.clients.pop(number) for number in requests])
        upload = self._upload(clients, np.array(staleness, dtype=np.int64))
        reception = self._open(upload, draw)
        for row, update in enumerate(updates):
            reception.add(slice(row, row + 1), update)
        self._merge(upload, reception)

    def train_round(self, clients: IntArray, *, draw: ChannelDraw | None = None) -> None:
        """Train these clients from the current model, and merge what they send over ``draw``."""
        job = self.round_of(clients)
        self.steps_done[clients] += self.local.count
        upload = self._upload(clients)
        reception = self._open(upload, draw)
        for chunk in self.local.executor.train(job):
            reception.add(chunk.part, chunk.payloads)
        self._merge(upload, reception)

    def round_of(self, clients: IntArray) -> Job:
        """The local training of these clients from the current model."""
        first_steps, what = self.steps_done[clients], f"version {self.server.version}"
        return self.local.job(self._broadcast(), clients, first_steps, what)

    def _upload(self, clients: IntArray, staleness: IntArray | None = None) -> Upload:
        rule, steps = self.server.algorithm, self.local.count
        return self.server.upload(Senders(clients, rule, steps, self.stream, staleness=staleness))

    def _open(self, upload: Upload, draw: ChannelDraw | None) -> Reception:
        return upload.open("round", self.server.version, "edge", 0, "air", draw=draw)

    def _merge(self, upload: Upload, reception: Reception) -> None:
        """The server's next state, from what it has received."""
        rule, nodes = self.server.algorithm, self.server.at_nodes(self._whole)
        # Tasks run in one process.
        reception.finish(ALONE, upload.senders.payloads, nodes["params"])
        merged = self.server.merge(rule, nodes, upload.received(reception))
        self.server.combine(rule, merged, self._whole, [1.0])  # a mean of one node

    def spread(self) -> float | None:
        """How far the latest V updates lie apart; None before there are as many."""
        if self.reallocation is None:
            return None
        latest = [*self.recent, *self.deferred.updates(self.back)]
        if len(latest) < self.reallocation.updates:
            return None
        name = self.server.algorithm.payloads[0].name
        updates = torch.cat([update[name] for update in latest[-self.reallocation.updates :]])
        return self.reallocation.spread(updates, self.local.count)

    @torch.no_grad()
    def losses(self, clients: IntArray) -> FloatArray:
        """[clients], loss of the current model on all samples of each."""
        objective, data, found = self.local.objective, self.local.executor.data, []
        params = objective.spec.views(self.server.cloud["params"])
        objective.module.eval()
        for client in clients.tolist():
            rows = torch.from_numpy(np.asarray(data.source.client_samples[client], dtype=np.int64))
            x, y = data.batch(rows.to(data.inputs.device))
            found.append(float(F.cross_entropy(objective.call(params, x), y)))
        return np.array(found)

    def evaluate(self) -> tuple[float, float]:
        """Accuracy and loss on the test set."""
        params, test = self.server.cloud["params"], self.test
        return evaluate(self.local.objective, params, test.inputs, test.labels)

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors, for a checkpoint."""
        return {
            **self.server.tensors(),
            **self.deferred.tensors(),
            **joined("recent", self.recent),
            "steps_done": torch.from_numpy(self.steps_done.copy()),
        }

    def snapshot(self) -> dict[str, Any]:
        """All other state, as plain numbers and lists."""
        return {
            "ahead": self.deferred.snapshot(),
            "back": self.back,
            "clients": [[number, client] for number, client in self.clients.items()],
        }

    def restore(self, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.server.restore(tensors)
        device = self.server.cloud["params"].device
        self.deferred.restore(tensors, state["ahead"], device)
        self.recent.clear()
        self.recent.extend(separated("recent", tensors, device))
        self.steps_done = tensors["steps_done"].numpy().copy()
        self.back, self.clients = list(state["back"]), dict(state["clients"])
