"""Deferred training: when an update is needed, many pending requests are trained together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.algorithms.step_sizes import with_step_size
from wirelessfl.engine.rounds.local_training import LocalTraining, LocalWork
from wirelessfl.engine.server.client_states import ClientStates, Overlay
from wirelessfl.engine.tasks.request import RequestSubmodels
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.rules import ClientRule, State

RESULT_BYTES = 1 << 30
"""Approximate memory limit, in bytes, for updates that are trained before they are needed."""


@dataclass(frozen=True, eq=False)
class Pending:
    """A request that is not trained yet.

    Args:
        client: client of the request.
        first_step: local steps of the client's earlier requests; its batches continue from there.
        version: version of the received model.
        fresh: whether the client has never trained before.
    """

    client: int
    first_step: int
    version: int
    fresh: bool


class DeferredTraining:
    """The updates of requests, [1, P] by payload.

    A request's update depends only on the received model, on named streams, and on the client's
    state after its previous request. So training is deferred until an update is needed, and then
    many pending requests are trained together. If clients keep state, a batch contains at most one
    request per client, so that each request starts from the state after the previous one.

    Args:
        local: local training of the clients.
        rule: client rule of the algorithm.
        states: state that clients keep between requests.
        submodels: submodels of the requests.
        lr_share: maps the version of the received model to a factor of the rule's step size.
        title: name of the task in messages.
        gives_up: whether requests may be dropped. If clients keep state, a request then trains only
            when its update is needed, because the next one may start from another state. So it does
            if the executor keeps the state.
    """

    def __init__(
        self,
        local: LocalTraining,
        rule: ClientRule,
        states: ClientStates,
        submodels: RequestSubmodels,
        lr_share: Callable[[int], float],
        title: str,
        gives_up: bool = False,
    ) -> None:
        self._kept = local.kept(rule)
        self.keeps_state = bool(self._kept) or local.executor.stateful
        """Whether a request depends on the client's state after its previous one."""
        self.ahead = not (local.executor.stateful or (gives_up and self._kept))
        """Whether requests may train before their updates are needed."""
        self.local, self.submodels = local, submodels
        self.rule, self.lr_share, self.title = rule, lr_share, title
        self.states = TentativeStates(states)
        self.trained = 0
        """Number of requests trained so far."""
        self._models: dict[int, State] = {}
        self._pending: dict[int, Pending] = {}
        self._ready: dict[int, State] = {}

    @property
    def max_ready(self) -> int:
        """Maximum number of trained updates that wait for a merge, besides those needed now."""
        vectors = len(self.rule.payloads) + len(self._kept)
        update_bytes = 4 * self.local.executor.objective.spec.size * vectors
        return max(RESULT_BYTES // update_bytes, self.local.executor.chunk)

    def lacks_model(self, version: int) -> bool:
        """Whether ``keep_model`` must be called before a request of this version is added."""
        return version not in self._models

    def keep_model(self, version: int, broadcast: State) -> None:
        """Store the tensors sent at this version, [1, P] by name, until no request needs them."""
        self._models[version] = broadcast

    def add(self, number: int, request: Pending) -> None:
        """Add request ``number``; numbers must increase."""
        self._pending[number] = request

    def came_back(self, number: int) -> None:
        """Confirm the client state of a request whose update has returned."""
        if self._kept:
            self.states.confirm(number)

    def drop(self, number: int) -> bool:
        """Drop a request; returns whether its client has then never trained, nor will train."""
        request = self._pending.pop(number, None)
        self._ready.pop(number, None)
        if request is None or not request.fresh:
            return False
        for other, later in self._pending.items():
            if later.client == request.client:
                self._pending[other] = replace(later, fresh=True)
                return False
        return True

    def clear(self) -> None:
        """Drop all pending requests, models, updates, and tentative client states."""
        self._models, self._pending, self._ready = {}, {}, {}
        self.states.clear()

    def updates(self, numbers: Sequence[int]) -> list[State]:
        """Return the updates of these requests without removing them."""
        self._train(numbers)
        return [self._ready[number] for number in numbers]

    def take(self, numbers: Sequence[int]) -> list[State]:
        """Remove and return the updates of these requests."""
        self._train(numbers)
        return [self._ready.pop(number) for number in numbers]

    def _train(self, numbers: Sequence[int]) -> None:
        """Train these requests together with the oldest pending ones.

        Batch sizes are powers of two if possible: programs are recorded per number of clients.
        """
        needed = self._with_earlier(dict.fromkeys(n for n in numbers if n not in self._ready))
        while needed:
            possible = self._possible()
            now = [number for number in needed if number in possible]
            room = max(self.max_ready - len(self._ready), len(now))
            most = min(len(possible), room) if self.ahead else len(now)
            size = 1 << (most.bit_length() - 1)
            others = (number for number in possible if self.ahead and number not in needed)
            chosen = [*now, *itertools.islice(others, max(size - len(now), 0))]
            self._train_together(chosen)
            for number in now:
                del needed[number]

    def _with_earlier(self, needed: dict[int, None]) -> dict[int, None]:
        """Add the earlier requests of the same clients, whose states these requests need."""
        if not self.keeps_state or not needed:
            return needed
        last: dict[int, int] = {}
        for number in needed:
            client = self._pending[number].client
            last[client] = max(number, last.get(client, number))
        return dict.fromkeys(n for n, r in self._pending.items() if n <= last.get(r.client, -1))

    def _possible(self) -> dict[int, None]:
        """Pending requests that can train now, oldest first; with client state, one per client."""
        if not self.keeps_state:
            return dict.fromkeys(self._pending)
        first: dict[int, int] = {}
        for number, request in self._pending.items():
            first.setdefault(request.client, number)
        return dict.fromkeys(first.values())

    def _train_together(self, chosen: Sequence[int]) -> None:
        requests = {number: self._pending.pop(number) for number in chosen}
        shares: dict[float, list[int]] = {}
        for number, request in requests.items():
            shares.setdefault(self.lr_share(request.version), []).append(number)
        for share, numbers in shares.items():
            self._train_with_share({number: requests[number] for number in numbers}, share)
        self.trained += len(chosen)
        versions = {request.version for request in self._pending.values()}
        self._models = {v: model for v, model in self._models.items() if v in versions}

    def _train_with_share(self, requests: dict[int, Pending], share: float) -> None:
        """Train requests whose step size has the factor ``share``."""
        versions = sorted({request.version for request in requests.values()})
        index = {version: i for i, version in enumerate(versions)}
        # Requests of one model must be consecutive.
        numbers = sorted(requests, key=lambda number: requests[number].version)
        ordered = [requests[number] for number in numbers]
        clients = [request.client for request in ordered]
        work = LocalWork(
            clients=np.array(clients),
            tracking=np.ones(len(ordered), dtype=np.bool_),
            node=np.array([index[request.version] for request in ordered]),
            submodels=Submodels.whole(self.local.executor.objective.spec, len(versions)),
            client_submodels=self.submodels.of_requests(clients, [r.version for r in ordered]),
            first_steps=np.array([request.first_step for request in ordered]),
            rounds=np.array([request.version for request in ordered]),
            fresh=np.array([request.fresh for request in ordered]),
        )
        servers = {
            name: torch.cat([self._models[version][name] for version in versions])
            for name in self.rule.sends
        }
        label = f"{self.title}, requests {min(numbers)} to {max(numbers)}"
        self.states.expect(dict(zip(clients, numbers, strict=True)))
        rule = with_step_size(self.rule, share)
        for rows, payloads in self.local.train(rule, work, servers, self.states, label):
            for row, place in enumerate(rows):
                self._ready[numbers[place]] = {
                    name: value[row : row + 1].clone() for name, value in payloads.items()
                }

    def tensors(self) -> dict[str, Tensor]:
        """Models, updates and states, for a checkpoint."""
        return {
            **joined("models", self._models.values()),
            **joined("ready", self._ready.values()),
            **joined("tentative", self.states.rows()),
        }

    def snapshot(self) -> dict[str, Any]:
        """The remaining state, as plain numbers and lists."""
        return {
            "trained": self.trained,
            "models": list(self._models),
            "ready": list(self._ready),
            "pending": [[n, *astuple(request)] for n, request in self._pending.items()],
            "tentative": self.states.snapshot(),
        }

    def restore(
        self, tensors: dict[str, Tensor], state: dict[str, Any], device: torch.device
    ) -> None:
        """Continue from a checkpoint; the confirmed states are restored separately."""
        self.trained = state["trained"]
        models, ready = (separated(kind, tensors, device) for kind in ("models", "ready"))
        self._models = dict(zip(state["models"], models, strict=True))
        self._ready = dict(zip(state["ready"], ready, strict=True))
        self._pending = {number: Pending(*request) for number, *request in state["pending"]}
        if not {request.version for request in self._pending.values()} <= self._models.keys():
            raise ValueError("a request has a model that is missing")
        tentative = separated("tentative", tensors, torch.device("cpu"))
        self.states.resume(tentative, state["tentative"])


def joined(kind: str, rows: Iterable[State]) -> dict[str, Tensor]:
    """Concatenate the rows [1, P] of each name into a tensor [rows, P], named ``kind.name``."""
    states = list(rows)
    names = states[0] if states else ()
    return {f"{kind}.{name}": torch.cat([row[name] for row in states]) for name in names}


def separated(kind: str, tensors: dict[str, Tensor], device: torch.device) -> list[State]:
    """Split the tensors of ``kind`` into the rows that ``joined`` concatenated."""
    mark = f"{kind}."
    stacked = {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}
    for name, value in stacked.items():
        if value.dim() != 2 or (name == "params" and value.dtype != torch.float32):
            raise ValueError(f"{mark}{name} is {value.dtype} {list(value.shape)}")
    count = len(next(iter(stacked.values()))) if stacked else 0
    return [{n: v[i : i + 1].to(device) for n, v in stacked.items()} for i in range(count)]


class TentativeStates(Overlay):
    """Tentative client states after the latest trained requests, on top of confirmed states.

    When the update of a request returns, its state is written to the confirmed states, so cancelled
    requests do not change these. A client's requests train and return in the order of their
    numbers.

    Args:
        below: the confirmed states.
    """

    def __init__(self, below: ClientStates) -> None:
        super().__init__(below)
        self._left: dict[int, tuple[int, State]] = {}
        self._returned: set[int] = set()
        self._training: Mapping[int, int] = {}

    def expect(self, numbers: Mapping[int, int]) -> None:
        """Note the request that each client trains now, whose state ``scatter`` will store."""
        self._training = numbers

    def scatter(self, submodels: Submodels, clients: IntArray, node: IntArray, kept: State) -> None:
        """Store the states of trained requests, tentatively if they have not returned."""
        super().scatter(submodels, clients, node, kept)
        if not kept:
            return
        for client in clients.tolist():
            number = self._training[client]
            self._left[number] = client, {n: self._vectors[n][client] for n in kept}
            if number in self._returned:
                self._returned.remove(number)
                self._confirm(number)

    def confirm(self, number: int) -> None:
        """Confirm the state of a request that has returned, now or when it is trained."""
        if number in self._left:
            self._confirm(number)
        else:
            self._returned.add(number)

    def _confirm(self, number: int) -> None:
        client, state = self._left.pop(number)
        for name, value in state.items():
            self.below.put(name, client, value)
            if self._vectors[name][client] is value:  # no later request has been trained
                del self._vectors[name][client]

    def clear(self) -> None:
        """Drop all tentative states."""
        self._left, self._returned = {}, set()
        self._vectors = {name: {} for name in self.names}

    def rows(self) -> Iterator[State]:
        """States of active requests, [1, P] by name, for a checkpoint."""
        for _, state in self._left.values():
            yield {name: value[None] for name, value in state.items()}

    def snapshot(self) -> dict[str, Any]:
        """The remaining state, as plain numbers and lists."""
        return {
            "left": [[number, client] for number, (client, _) in self._left.items()],
            "returned": sorted(self._returned),
        }

    def resume(self, rows: Sequence[State], state: dict[str, Any]) -> None:
        """Continue from ``rows`` and ``snapshot``."""
        self.clear()
        self._returned = set(state["returned"])
        for (number, client), row in zip(state["left"], rows, strict=True):
            state_of: dict[str, Tensor] = {name: value[0] for name, value in row.items()}
            self._left[number] = client, state_of
            for name, value in state_of.items():  # a client's later requests come later in the list
                self._vectors[name][client] = value
