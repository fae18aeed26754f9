"""The learner of a task: its server, the updates of its clients, and their merges."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels import ChannelDraw, Load
from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.plan import RoundWork
from wirelessfl.air.traffic import Traffic
from wirelessfl.algorithms.fedavg import Averaging
from wirelessfl.algorithms.step_sizes import unchanged
from wirelessfl.engine.rounds.global_round import compressed
from wirelessfl.engine.rounds.local_training import LocalTraining
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.tasks.deferred_training import DeferredTraining, Pending, joined, separated
from wirelessfl.engine.tasks.request import Request, RequestSubmodels, spread
from wirelessfl.models.submodels import ClientSubmodels, Submodels
from wirelessfl.training.evaluation import Evaluation, logits_of
from wirelessfl.training.rules import State


@dataclass(frozen=True, kw_only=True)
class TaskWork(RoundWork):
    """A common round of a task, or a merge of requests.

    Args:
        channels: channel draw if the clients send simultaneously; None if each sends separately.
    """

    channels: ChannelDraw | None

    def draw(self, edge_round: int) -> ChannelDraw | None:
        """The channel draw of the only edge round."""
        return self.channels


class TaskLearner(Learner):
    """A task's model at the server of a star, and the training of its clients.

    Masks, step sizes and noise use the model's version as the round number.

    Args:
        server: server of the model.
        local: local training of the clients; None if they do not train, and only their costs count.
        submodels: submodels of the clients.
        evaluation: what the model is evaluated on; None if it is not evaluated.
        stream: random stream of the task.
        traffic: bits of uploads and downloads, and the compression of the model.
        gives_up: whether requests may be dropped: they miss a cut-off, or their clients leave.
        lr_share: maps the version of the received model to a factor of the rule's step size.
        spread_updates: V, number of latest updates whose spread is measured; None to measure none.
        by_version: whether an update's weight in a merge is 1 / |A| instead of 1 / b, with the
            number |A| of requests that received the same version of the model (Askin et al., UAI
            2024, Remark 7).
        name: name of the task.
    """

    def __init__(
        self,
        server: Server,
        local: LocalTraining | None,
        submodels: RequestSubmodels,
        evaluation: Evaluation | None,
        stream: Stream,
        traffic: Traffic,
        *,
        gives_up: bool = False,
        lr_share: Callable[[int], float] = unchanged,
        spread_updates: int | None = None,
        by_version: bool = False,
        name: str = "",
    ) -> None:
        title = f"task {name}" if name else "task"
        super().__init__(
            server, local, submodels.model.spec, stream, f"{title}, round", evaluation, traffic.down
        )
        self.name, self.submodels, self.lr_share = name, submodels, lr_share
        self.traffic = traffic
        self._deferred: DeferredTraining | None = None
        if local is not None:
            self._deferred = DeferredTraining(
                local, server.rule, server.states, submodels, lr_share, title, gives_up
            )
        self._splits = submodels.assigner.of_clients
        self.node_weights = [1.0]  # of the only node of a star: no product of weights rounds
        self.begun: set[int] = set()
        """Clients that have trained, or will train a pending request."""
        self.issued: dict[int, tuple[int, int]] = {}
        """Client and version of each request, until its update is merged."""
        self.back: list[int] = []
        """Requests whose updates have returned and are not merged yet."""
        self.spread_updates = spread_updates
        self.recent: deque[State] = deque(maxlen=spread_updates or 0)
        self.sent: dict[int, int] | None = {} if by_version else None
        """Number of requests of each version that clients may still return."""
        self.errors: dict[int, float] = {}
        """Compression error of each version that clients of pending requests have received."""
        self._whole = Submodels.whole(self.spec, 1)

    @property
    def deferred(self) -> DeferredTraining:
        """Training of requests, when their updates are needed."""
        assert self._deferred is not None, "clients do not train"
        return self._deferred

    @property
    def side_elements(self) -> int:
        """Number of values that each update sends besides its payloads."""
        return self.server.uplink.side_elements * len(self.server.rule.payloads)

    def _broadcast(self) -> State:
        """Tensors that clients receive now, [1, P] by name."""
        servers = self.server.rule.outgoing(self.server.at_nodes(self._whole))
        # The stream has the same name as in rounds.
        stream = self.stream.child("round", self.server.version, "edge", 0)
        received, error = compressed(servers, self.compression, self._whole, stream)
        if error:
            self.errors[self.server.version] = error["compression_error"]
        return received

    def _error(self, versions: Collection[int]) -> dict[str, float]:
        """Mean compression error of the models that merged updates started from."""
        if self.compression is None:
            return {}
        errors = [self.errors[version] for version in versions]
        pending = {version for _, version in self.issued.values()}
        self.errors = {v: error for v, error in self.errors.items() if v in pending}
        return {"compression_error": sum(errors) / len(errors)}

    def share(self, client: int) -> float:
        """Fraction of the model's parameters that a request would train at a client now."""
        if not self._splits:  # simulations ask for each request
            return 1.0
        return self.submodels.share(client, self.server.version)

    def shares(self, clients: IntArray) -> FloatArray:
        """Fraction of the model's parameters that each client would train in a common round."""
        return self.submodels.shares(clients, self.server.version)

    def issue(self, request: Request) -> None:
        """Send the current model to a client."""
        if not self.trains:
            return
        client, version = request.client, request.version
        if self.sent is not None:
            self.sent[version] = self.sent.get(version, 0) + 1
        first = self.steps_done[client]
        self.steps_done[client] += self.local.steps.of(client)
        if request.lost_after is None:  # otherwise the update will be lost: do not train
            self.issued[request.number] = client, version
            if self.deferred.lacks_model(version):
                self.deferred.keep_model(version, self._broadcast())
            fresh = client not in self.begun
            self.begun.add(client)
            self.deferred.add(request.number, Pending(client, first, version, fresh))

    def end(self) -> None:
        """Drop all requests and updates."""
        self.issued.clear()
        self.back.clear()
        self.recent.clear()
        self.errors.clear()
        if self.trains:
            self.deferred.clear()
        if self.sent is not None:
            self.sent.clear()

    def came_back(self, number: int) -> None:
        """Record that a request's update has arrived; it is computed only when it is needed."""
        if self.trains:
            self.back.append(number)
            self.deferred.came_back(number)

    def gave_up(self, number: int) -> None:
        """Drop a request whose update does not arrive in time; its client's state is unchanged."""
        if number not in self.issued:  # its client would have dropped out
            return
        client, _ = self.issued.pop(number)
        if self.deferred.drop(number):
            self.begun.discard(client)

    def drop(self, number: int) -> None:
        """Drop an update that has returned; its client keeps the state that its training left."""
        if not self.trains:
            return
        self.back.remove(number)
        client, _ = self.issued.pop(number)
        if self.deferred.keeps_state:
            self.deferred.take((number,))
        elif self.deferred.drop(number):
            self.begun.discard(client)

    def air_load(self, requests: Sequence[Request]) -> Load:
        """Load of a simultaneous transmission by the clients of these requests."""
        clients = [request.client for request in requests]
        versions = [request.version for request in requests]
        return self._air_load(np.array(clients), self.submodels.of_requests(clients, versions))

    def air_load_of_round(self, clients: IntArray, chosen: IntArray) -> Load:
        """Load of a simultaneous transmission by ``clients`` among those ``chosen`` for a round."""
        submodels = self.submodels.of_round(chosen, self.server.version)
        if submodels is not None:
            submodels = submodels.of_rows(np.searchsorted(chosen, clients))
        return self._air_load(clients, submodels)

    def _air_load(self, clients: IntArray, submodels: ClientSubmodels | None) -> Load:
        """Load of clients that send all elements that at least one of them trains."""
        vectors, size = len(self.server.rule.payloads), self.spec.size
        count, weights = len(clients), self.server.weights.of(clients)
        if submodels is None:
            return Load(elements=np.full(count, size), vectors=vectors, weights=weights)
        equal = np.full(count, 1 / count).tolist()
        _, covering = submodels.cover(np.zeros(count, dtype=np.int64), equal, 1)
        jointly = int((covering > 0).sum())
        return Load(elements=submodels.lengths, vectors=vectors, jointly=jointly, weights=weights)

    def merge_updates(
        self,
        requests: Sequence[int],
        staleness: Sequence[int],
        *,
        draw: ChannelDraw | None = None,
    ) -> None:
        """Merge the updates of these requests, in this order.

        Args:
            requests: numbers of the requests.
            staleness: by request, merges since it was issued.
            draw: channel draw if the clients sent simultaneously; None if each sent separately. Its
                rows are in the order of ``requests``, which are then sorted by client.
        """
        if not self.trains:
            self.server.version += 1
            return
        updates = self.deferred.take(requests)
        merged = set(requests)
        self.back = [number for number in self.back if number not in merged]
        clients, versions = zip(*(self.issued.pop(number) for number in requests), strict=True)
        self.recent.extend(map(self._in_steps, updates, versions))
        submodels = self.submodels.of_requests(clients, versions)
        stale = np.array(staleness, dtype=np.int64)
        work = self._work(np.array(clients), submodels, draw, staleness=stale)
        merge = self.begin(work, self.server.cloud)
        merge.open(0)
        for row, (update, version) in enumerate(zip(updates, versions, strict=True)):
            sent = len(updates) if self.sent is None else self.sent[version]
            merge.add(slice(row, row + 1), self._scaled(update, sent / len(updates)))
        merge.end(self._error(versions))
        self.merge(merge)
        if self.sent is not None:
            pending = {version for _, version in self.issued.values()}
            self.sent = {v: count for v, count in self.sent.items() if v in pending}

    def train_round(
        self, clients: IntArray, chosen: IntArray | None = None, *, draw: ChannelDraw | None = None
    ) -> None:
        """Train these clients from the current model, and merge their updates.

        Args:
            clients: [clients], sorted; clients whose updates are awaited.
            chosen: all clients of the round, sorted; None if these are ``clients``.
            draw: channel draw if they send simultaneously; None if each sends separately.
        """
        if not self.trains:
            self.server.version += 1
            return
        version = self.server.version
        submodels = self.submodels.of_round(clients if chosen is None else chosen, version)
        if submodels is not None and chosen is not None:
            submodels = submodels.of_rows(np.searchsorted(chosen, clients))
        fresh = np.array([c not in self.begun for c in clients.tolist()], dtype=np.bool_)
        self.learn(self._work(clients, submodels, draw, fresh=fresh), self.server.cloud)
        self.begun.update(clients.tolist())

    def _work(
        self,
        clients: IntArray,
        submodels: ClientSubmodels | None,
        draw: ChannelDraw | None,
        *,
        fresh: BoolArray | None = None,
        staleness: IntArray | None = None,
    ) -> TaskWork:
        """The next round of the model, whose number is the model's version."""
        version = self.server.version
        return TaskWork(
            round=version,
            clients=clients,
            tracking=np.ones(len(clients), dtype=np.bool_),
            node=np.zeros(len(clients), dtype=np.int64),
            submodels=self._whole,
            lr_share=self.lr_share(version),
            client_submodels=submodels,
            fresh=fresh,
            staleness=staleness,
            channels=draw,
        )

    def spread(self) -> float | None:
        """Spread of the latest V updates; None if there are fewer, or if clients do not train."""
        count, rule = self.spread_updates, self.server.rule
        if count is None or not self.trains:
            return None
        versions = [self.issued[number][1] for number in self.back]
        back = map(self._in_steps, self.deferred.updates(self.back), versions)
        latest = [*self.recent, *back][-count:]
        if len(latest) < count:
            return None
        updates = torch.cat([update[rule.payloads[0].name] for update in latest])
        lr = self.lr_share(self.server.version) * rule.lr
        step = rule.server_lr if isinstance(rule, Averaging) else 1.0
        return spread(updates, lr, step, self.local.steps.common)

    def _in_steps(self, update: State, version: int) -> State:
        """The update at full step size: Delta times a factor that all updates share."""
        return self._scaled(update, self.lr_share(version))

    def _scaled(self, update: State, divisor: float) -> State:
        """The update with its change of the model divided by ``divisor``."""
        name = self.server.rule.payloads[0].name
        return update if divisor == 1.0 else {**update, name: update[name] / divisor}

    @torch.no_grad()
    def mean_losses(self, clients: IntArray) -> FloatArray:
        """Loss of the current model on the samples of each client, [clients]; 1 if untrained."""
        if not self.trains:
            return np.ones(len(clients))
        objective, flat = self.evaluation.deployed(self.server.cloud["params"])
        data, losses = self.local.executor.data, []
        params = objective.spec.views(flat)
        objective.module.eval()
        for client in clients.tolist():
            rows = torch.from_numpy(np.asarray(data.source.client_samples[client], dtype=np.int64))
            x, y = data.batch(rows.to(data.inputs.device))
            logits = logits_of(objective, params, x, y)
            losses.append(float(objective.criterion.reduced(logits, y, "mean")))
        return np.array(losses)

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint."""
        return {
            **super().tensors(),
            **self.deferred.tensors(),
            **joined("recent", self.recent),
            "begun": torch.tensor(sorted(self.begun), dtype=torch.int64),
        }

    def snapshot(self) -> dict[str, Any]:
        """The state that ``tensors`` does not contain, as plain numbers and lists."""
        return {
            **super().snapshot(),
            "ahead": self.deferred.snapshot(),
            "back": self.back,
            "issued": [[number, *request] for number, request in self.issued.items()],
            "errors": [*self.errors.items()],
            "sent": None if self.sent is None else [*self.sent.items()],
        }

    def restore(self, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint."""
        super().restore(tensors, state)
        device = self.server.cloud["params"].device
        self.deferred.restore(tensors, state["ahead"], device)
        self.recent.clear()
        self.recent.extend(separated("recent", tensors, device))
        self.begun = set(map(operator.index, tensors["begun"].tolist()))  # no other numbers
        self.back = list(state["back"])
        self.errors = dict(state["errors"])
        self.sent = None if self.sent is None else dict(state["sent"])
        self.issued = {number: (client, version) for number, client, version in state["issued"]}
