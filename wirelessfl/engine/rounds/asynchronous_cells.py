"""Asynchronous cells: the cloud merges whenever B cells have finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from wirelessfl.air.participants import ConsecutiveClients
from wirelessfl.air.plan import Plan
from wirelessfl.engine.events import (
    Aggregate,
    Ask,
    Cancel,
    Decision,
    Event,
    Report,
    Returned,
)
from wirelessfl.engine.loop import RowFields, restored_event, stored_event
from wirelessfl.engine.rounds.model_rounds import OneModel
from wirelessfl.engine.rounds.planner import Planner
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.training.rules import State

PREFIX = "cells."
"""Prefix of the names of these tensors in a checkpoint."""
INDEX = f"{PREFIX}index"
STATUS = ("version", "staleness_mean", "staleness_max", "updates")
"""Fields of rows: merges, staleness since the previous row, and number of finished cell rounds."""


class AsynchronousCells(OneModel):
    """Carries out the decisions of ``BufferedScheduler`` for the cells of one model.

    Each cell has one request, whose number is the cell's index. The cell runs a global round of E
    edge rounds from the cloud's model that it received, and then waits. When B cells have finished,
    the cloud changes each coordinate by the weighted mean change of the finished cells that cover
    it,

        x_k += sum_j w_j (returned_jk - sent_jk) / sum_j w_j,

    and only these cells receive the new model. Channels, batches, noise and client masks depend on
    the cell's round number; step sizes depend on the version of the received model. A cell's result
    depends only on its round number, received model and submodel, so training is deferred until the
    merge, and the clients of its cells train together. All clients of a cell participate.

    Args:
        planner: plans the rounds of a cell and their durations.
        learner: trains the rounds, and contains the server.
        clock: virtual clock.
        ledger: costs of the rounds.
    """

    starts_again = False

    def __init__(self, planner: Planner, learner: Learner, clock: Clock, ledger: Ledger) -> None:
        super().__init__(planner, learner, clock, ledger)
        cells = planner.network.cells
        self.parts: Submodels = planner.plan(0).submodels
        """Submodel of each cell in its current or next round."""
        self.rounds_done = [0] * cells
        """Number of merged rounds of each cell."""
        self.sent: dict[int, int] = {}
        """Version of the model that each busy cell received, by cell."""
        self._models: dict[int, State] = {}
        self._asked = 0

    def carry_out(self, decision: Decision) -> None:
        """Issue work to cells, merge finished cells, or discard all work at the end of the run."""
        match decision:
            case Ask(_, count):
                self._asked += count
            case Aggregate(_, cells, _):
                self._merge(sorted(cells))
            case Cancel():
                self.sent, self._models, self._asked = {}, {}, 0

    def settle(self) -> None:
        """Send the cloud's model to the cells without work, after all events at this time."""
        if not self._asked:
            return
        free = [cell for cell in range(len(self.rounds_done)) if cell not in self.sent]
        assert len(free) == self._asked, "the schedule issues work to all merged cells"
        self._asked = 0
        server = self.learner.server
        self._models[server.version] = server.cloud
        for cell in free:
            self.sent[cell] = server.version
            seconds = float(self.plan(cell).price.seconds[cell])
            self.clock.after(seconds, Returned(cell, 0, server.version))

    def plan(self, cell: int) -> Plan:
        """Plan a cell's current round, which depends only on the cell's work and the settings."""
        return replace(
            self.planner.plan(
                self.rounds_done[cell],
                self._clients(cell),
                self.parts.only([cell]),
            ),
            lr_share=self.planner.lr_share(self.sent[cell]),
        )

    def _clients(self, cell: int) -> ConsecutiveClients:
        network = self.planner.network
        first = int(network.cell_starts[cell])
        return ConsecutiveClients(first, int(network.cell_sizes[cell]))

    def _merge(self, cells: Sequence[int]) -> None:
        """Train the rounds of ``cells``, merge them, and reassign their submodels."""
        self._train(cells)
        for cell in cells:
            self.rounds_done[cell] += 1
            del self.sent[cell]
        versions = set(self.sent.values())
        self._models = {version: m for version, m in self._models.items() if version in versions}
        self.parts = self.planner.redealt(self.learner.server.version, self.parts, cells)

    def _train(self, cells: Sequence[int]) -> None:
        server = self.learner.server
        issued = [(self.plan(cell), self._models[self.sent[cell]]) for cell in cells]
        for plan, _ in issued:
            self.ledger.count(plan)
        if not self.learner.trains:
            server.version += 1
            return
        rounds = self.learner.train(issued)
        # Merged nodes get the cloud's state plus their change; the others keep the cloud's state.
        nodes = server.at_nodes(self.parts)
        for cell, (_, model), trained in zip(cells, issued, rounds, strict=True):
            for name, returned in trained.nodes.items():
                if name in model:
                    nodes[name][cell] += returned[cell] - self.parts.gather_one(model[name], cell)
                else:
                    nodes[name][cell] = returned[cell]
        metrics = [trained.metrics() for trained in rounds]
        clients = np.concatenate([plan.clients for plan, _ in issued])
        server.combine(nodes, self.parts, server.weights.at_nodes(clients))
        self.learner.metrics = {
            name: sum(row[name] for row in metrics) / len(metrics) for name in metrics[0]
        }

    def under_way(self) -> Mapping[int, Plan]:
        """Plans of the rounds in progress, by cell."""
        return {cell: self.plan(cell) for cell in sorted(self.sent)}

    def fields(self, report: Report) -> RowFields:
        """Number of merges, costs so far, and what the schedule reports."""
        status = {name: report.status[name] for name in STATUS}
        return RowFields({"round": report.round}, self.costs(), status)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The models that cells received, each stored once, and the submodels of the cells.

        The server stores the cloud's current model.
        """
        current = self.learner.server.version
        models = {
            f"{PREFIX}model.{version}.{name}": value
            for version, model in self._models.items()
            if version != current
            for name, value in model.items()
        }
        index = {} if self.parts.index is None else {INDEX: self.parts.index}
        return {**super().tensors(), **models, **index}

    def snapshot(self) -> dict[str, Any]:
        """Work of the cells, clock entries, and neurons of the submodels."""
        return {
            **super().snapshot(),
            "now": self.clock.now,
            "future": [[seconds, *_stored(event)] for seconds, event in self.clock.queued()],
            "rounds_done": self.rounds_done,
            "sent": list(self.sent.items()),
            "parts": _stored_parts(self.parts),
        }

    def restore(self, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint, after learner, schedule and clock."""
        super().restore(tensors, state)
        server = self.learner.server
        device = server.cloud["params"].device
        self.rounds_done = list(state["rounds_done"])
        self.sent = dict(state["sent"])
        self._models = {
            version: server.cloud
            if version == server.version
            else {
                name: tensors[f"{PREFIX}model.{version}.{name}"].to(device) for name in server.cloud
            }
            for version in sorted(set(self.sent.values()))
        }
        self.parts = _restored_parts(state["parts"], tensors.get(INDEX), self.parts)
        future = [
            (seconds, _event(kind, *map(int, numbers)))
            for seconds, kind, *numbers in state["future"]
        ]
        self.clock.requeue(state["now"], future)


def _stored(event: Event) -> list[Any]:
    """Encode a clock entry as a name and numbers."""
    if isinstance(event, Returned):
        return ["returned", event.request, event.version]
    return stored_event(event)


def _event(name: str, *numbers: int) -> Event:
    """The inverse of ``_stored``."""
    if name == "returned":
        cell, version = numbers
        return Returned(cell, 0, version)
    return restored_event(name, *numbers)


def _stored_parts(parts: Submodels) -> dict[str, Any] | None:
    """Encode submodels without their index tensor; None if all cells have the full model."""
    if parts.index is None:
        return None
    neurons = parts.neurons
    return {
        "shapes": parts.spec.shapes,
        "lengths": parts.lengths.tolist(),
        "kept": parts.kept,
        "neurons": neurons and [[held.tolist() for held in layers] for layers in neurons],
    }


def _restored_parts(
    stored: Mapping[str, Any] | None, index: torch.Tensor | None, first: Submodels
) -> Submodels:
    """The inverse of ``_stored_parts``; ``first`` are the initial submodels of the run."""
    if stored is None or index is None:
        return first
    neurons = stored["neurons"]
    return replace(
        first,
        spec=ParamSpec({name: tuple(shape) for name, shape in stored["shapes"].items()}),
        lengths=np.array(stored["lengths"], dtype=np.int64),
        places=index.numpy(),
        kept=tuple(stored["kept"]),
        neurons=neurons
        and tuple(tuple(np.array(held, dtype=np.int64) for held in layers) for layers in neurons),
    )
