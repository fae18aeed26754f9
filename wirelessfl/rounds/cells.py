"""Asynchronous cells: the cloud merges cells as they come, some at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from wirelessfl.rounds.plan import Plan, Planner
from wirelessfl.rounds.training import RoundTraining
from wirelessfl.schedules import Clock
from wirelessfl.schedules.events import (
    Aggregate,
    Ask,
    Cancel,
    Deadline,
    Decision,
    Event,
    Returned,
    Started,
    Tick,
)
from wirelessfl.submodels import ParamSpec, Submodels
from wirelessfl.training.cohort import State

PREFIX = "cells."
"""What the names of this regime's tensors in a checkpoint begin with."""
INDEX = f"{PREFIX}index"


class AsynchronousCells:
    """Carries out what ``BufferedScheduler`` decides for the cells of one model.

    A cell is a request, named by its number. It trains a global round of its own, E edge rounds
    from the cloud's model that it was sent, and waits. When B cells are in, the cloud moves each
    coordinate by the weighted mean change of those that cover it,

        x_k += sum_j w_j (returned_jk - sent_jk) / sum_j w_j,

    and these cells alone get the new model. Channels, batches, noise and masks of clients are those
    of the cell's own round count; step sizes those of the merges behind the model that it was sent.
    What a cell trains follows from that count, that model and its part of the model, so it is
    trained when it is merged. The clients of a cell all take part.

    Args:
        planner: plans the rounds of a cell with their durations.
        training: trains them, and holds the server.
        clock: virtual seconds.
    """

    def __init__(self, planner: Planner, training: RoundTraining, clock: Clock) -> None:
        self.planner, self.training, self.clock = planner, training, clock
        cells = planner.network.cells
        self.parts: Submodels = planner.plan(0).submodels
        """What each cell trains: at work, or when it next gets work."""
        self.rounds_done = [0] * cells
        """Rounds of each cell that have been merged."""
        self.sent: dict[int, int] = {}
        """By cell with work, or waiting: merges behind the model that it was sent."""
        self._models: dict[int, State] = {}
        self._asked = 0

    def happened(self, what: Event) -> Event:
        """All that happens are events."""
        return what

    def carry_out(self, decision: Decision) -> None:
        """Ask, or merge; in the end, drop all work."""
        match decision:
            case Ask(_, count):
                self._asked += count
            case Aggregate(_, cells, _):
                self._merge(sorted(cells))
            case Cancel():
                self.sent, self._models, self._asked = {}, {}, 0

    def settle(self) -> None:
        """Cells without work get the cloud's model as it is at the end of the instant."""
        if not self._asked:
            return
        free = [cell for cell in range(len(self.rounds_done)) if cell not in self.sent]
        assert len(free) == self._asked, "the schedule asks all cells that it has merged"
        self._asked = 0
        server = self.training.server
        self._models[server.version] = server.cloud
        for cell in free:
            self.sent[cell] = server.version
            seconds = float(self.plan(cell).cost.seconds[cell])
            self.clock.after(seconds, Returned(cell, 0, server.version))

    def plan(self, cell: int) -> Plan:
        """The round of a cell with work; it depends on that work and the settings alone."""
        return replace(
            self.planner.plan(
                self.rounds_done[cell],
                self.planner.network.cell_of == cell,
                self.parts.only([cell]),
            ),
            lr_share=self.planner.lr_share(self.sent[cell]),
        )

    def _merge(self, cells: Sequence[int]) -> None:
        """Train the rounds of ``cells``, merge them, and deal their parts anew."""
        server = self.training.server
        # The cloud combines nodes that stand where it is, and those merged by their change further.
        nodes = server.at_nodes(self.parts)
        clients, metrics = [], list[Mapping[str, float]]()
        for cell in cells:
            plan, model = self.plan(cell), self._models[self.sent[cell]]
            trained = self.training.trained(plan, model)
            for name, returned in trained.nodes.items():
                if name in model:
                    nodes[name][cell] += returned[cell] - self.parts.gather_one(model[name], cell)
                else:
                    nodes[name][cell] = returned[cell]
            clients.append(plan.clients)
            metrics.append(trained.metrics())
        weights = server.weights.at_nodes(np.concatenate(clients))
        server.combine(server.algorithm, nodes, self.parts, weights)
        self.training.metrics = {
            name: sum(each[name] for each in metrics) / len(metrics) for name in metrics[0]
        }
        for cell in cells:
            self.rounds_done[cell] += 1
            del self.sent[cell]
        still = set(self.sent.values())
        self._models = {version: m for version, m in self._models.items() if version in still}
        self.parts = self.planner.redealt(server.version, self.parts, cells)

    def tensors(self) -> dict[str, Tensor]:
        """Models that cells were sent, once each, and their parts, between two instants.

        The cloud's present model is with the server's tensors.
        """
        now = self.training.server.version
        found = {
            f"{PREFIX}model.{version}.{name}": value
            for version, model in self._models.items()
            if version != now
            for name, value in model.items()
        }
        return found if self.parts.index is None else found | {INDEX: self.parts.index}

    def snapshot(self) -> dict[str, Any]:
        """Work of the cells, the clock's entries, and what the parts are made of."""
        return {
            "now": self.clock.now,
            "future": [[seconds, *_stored(event)] for seconds, event in self.clock.queued()],
            "rounds_done": self.rounds_done,
            "sent": list(self.sent.items()),
            "parts": _stored_parts(self.parts),
        }

    def restore(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from a snapshot; the server has been restored before."""
        server = self.training.server
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
        future = [(seconds, _event(*stored)) for seconds, *stored in state["future"]]
        self.clock.requeue(state["now"], future)


def _stored(event: Event) -> list[Any]:
    """An entry of the clock as a text and numbers."""
    match event:
        case Returned(cell, _, version):
            return ["returned", cell, version]
        case Tick(number):
            return ["tick", number]
        case Deadline():
            return ["deadline"]
        case Started():
            return ["started"]
    raise AssertionError(f"{event} is nothing that the clock holds between instants")


def _event(kind: str, *numbers: int) -> Event:
    """The inverse of ``_stored``."""
    match kind:
        case "returned":
            cell, version = numbers
            return Returned(cell, 0, version)
        case "tick":
            return Tick(*numbers)
        case "deadline":
            return Deadline()
    return Started()


def _stored_parts(parts: Submodels) -> dict[str, Any] | None:
    """Parts but for their index; None where all cells have the whole model."""
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
    stored: Mapping[str, Any] | None, index: Tensor | None, first: Submodels
) -> Submodels:
    """The inverse of ``_stored_parts``; ``first`` are the parts that the run began with."""
    if stored is None or index is None:
        return first
    neurons = stored["neurons"]
    return Submodels(
        ParamSpec({name: tuple(shape) for name, shape in stored["shapes"].items()}),
        np.array(stored["lengths"], dtype=np.int64),
        index,
        first.full_size,
        tuple(stored["kept"]),
        neurons
        and tuple(tuple(np.array(held, dtype=np.int64) for held in layers) for layers in neurons),
    )
