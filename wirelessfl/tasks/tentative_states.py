"""Client states of requests that are trained ahead, confirmed when their updates return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.server.client_states import ClientStates, Overlay
from wirelessfl.submodels import Submodels
from wirelessfl.training.cohort import State


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
            found: dict[str, Tensor] = {name: value[0] for name, value in row.items()}
            self._left[number] = client, found
            for name, value in found.items():  # a client's later requests come later in the list
                self._vectors[name][client] = value
