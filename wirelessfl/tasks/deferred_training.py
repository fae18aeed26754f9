"""Deferred training: updates of requests are computed when one is needed, many at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wirelessfl.tasks.local_steps import LocalSteps
from wirelessfl.training.cohort import State

RESULT_BYTES = 1 << 30
"""Approximate memory limit of updates that are trained before they are needed."""


@dataclass(frozen=True, eq=False)
class Pending:
    """A request that is not trained yet.

    Args:
        client: that trains.
        first_step: local steps that it was asked for before, where its batches begin.
        version: of the model that it was sent.
    """

    client: int
    first_step: int
    version: int


class DeferredTraining:
    """The updates of requests, [1, P] by payload.

    A request's update depends only on the model that was sent and on named streams. So training is
    deferred until an update is needed, and then done for all pending requests at once.

    Args:
        local: how clients train.
    """

    def __init__(self, local: LocalSteps) -> None:
        self.local = local
        self.trained = 0
        """Requests that have been trained so far."""
        self._models: dict[int, State] = {}
        self._pending: dict[int, Pending] = {}
        self._ready: dict[int, State] = {}

    @property
    def max_ready(self) -> int:
        """Maximum number of updates that are trained and not merged, beside those needed now."""
        update_bytes = 4 * self.local.objective.spec.size * len(self.local.rule.payloads)
        return max(RESULT_BYTES // update_bytes, self.local.executor.chunk)

    def lacks_model(self, version: int) -> bool:
        """Whether ``keep_model`` must come before a request of this version."""
        return version not in self._models

    def keep_model(self, version: int, broadcast: State) -> None:
        """What clients are sent at this version, [1, P] by name; kept while requests need it."""
        self._models[version] = broadcast

    def add(self, number: int, request: Pending) -> None:
        """Request ``number`` is issued."""
        self._pending[number] = request

    def clear(self) -> None:
        """Drop all pending requests, models and updates."""
        self._models, self._pending, self._ready = {}, {}, {}

    def updates(self, numbers: Sequence[int]) -> list[State]:
        """The updates of these requests, kept here."""
        self._train(numbers)
        return [self._ready[number] for number in numbers]

    def take(self, numbers: Sequence[int]) -> list[State]:
        """The updates of these requests, removed from here."""
        self._train(numbers)
        return [self._ready.pop(number) for number in numbers]

    def _train(self, numbers: Sequence[int]) -> None:
        """Train these requests together with the oldest pending ones, a power of two in all.

        Recorded programs are made for a number of clients: few numbers reuse them.
        """
        needed = dict.fromkeys(n for n in numbers if n not in self._ready)
        if not needed:
            return
        room = max(self.max_ready - len(self._ready), len(needed))
        size = 1 << (min(len(self._pending), room).bit_length() - 1)
        others = (number for number in self._pending if number not in needed)
        chosen = [*needed, *itertools.islice(others, max(size - len(needed), 0))]
        requests = [self._pending.pop(number) for number in chosen]
        versions = sorted({request.version for request in requests})
        place = {version: i for i, version in enumerate(versions)}
        node = np.array([place[request.version] for request in requests])
        order = np.argsort(node, kind="stable")  # those of one model stand together
        job = self.local.job(
            {
                name: torch.cat([self._models[version][name] for version in versions])
                for name in self.local.rule.sends
            },
            np.array([requests[i].client for i in order]),
            np.array([requests[i].first_step for i in order]),
            f"requests {min(chosen)} to {max(chosen)}",
            node[order],
        )
        in_order = [chosen[i] for i in order]
        for chunk in self.local.executor.train(job):
            for row, number in enumerate(in_order[chunk.part]):
                self._ready[number] = {
                    name: value[row : row + 1].clone() for name, value in chunk.payloads.items()
                }
        self.trained += len(chosen)
        wanted = {request.version for request in self._pending.values()}
        self._models = {v: model for v, model in self._models.items() if v in wanted}

    def tensors(self) -> dict[str, Tensor]:
        """Models and updates, for a checkpoint."""
        return joined("models", self._models.values()) | joined("ready", self._ready.values())

    def snapshot(self) -> dict[str, Any]:
        """All other state, as plain numbers and lists."""
        return {
            "trained": self.trained,
            "models": list(self._models),
            "ready": list(self._ready),
            "pending": [[n, r.client, r.first_step, r.version] for n, r in self._pending.items()],
        }

    def restore(
        self, tensors: dict[str, Tensor], state: dict[str, Any], device: torch.device
    ) -> None:
        """Continue from a checkpoint."""
        self.trained = state["trained"]
        models, ready = (separated(kind, tensors, device) for kind in ("models", "ready"))
        self._models = dict(zip(state["models"], models, strict=True))
        self._ready = dict(zip(state["ready"], ready, strict=True))
        self._pending = {number: Pending(*request) for number, *request in state["pending"]}


def joined(kind: str, rows: Iterable[State]) -> dict[str, Tensor]:
    """Rows [1, P] by name as tensors [rows, P] of a checkpoint, by ``kind`` and name."""
    states = list(rows)
    names = states[0] if states else ()
    return {f"{kind}.{name}": torch.cat([row[name] for row in states]) for name in names}


def separated(kind: str, tensors: dict[str, Tensor], device: torch.device) -> list[State]:
    """The rows that ``joined`` concatenated."""
    mark = f"{kind}."
    found = {n.removeprefix(mark): v for n, v in tensors.items() if n.startswith(mark)}
    count = len(next(iter(found.values()))) if found else 0
    return [{n: v[i : i + 1].to(device) for n, v in found.items()} for i in range(count)]
