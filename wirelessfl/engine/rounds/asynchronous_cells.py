"""Asynchronous cells: the cloud merges whenever B cells have finished."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from channels.arrays import FloatArray, IntArray
from wirelessfl.air.batteries import Charges
from wirelessfl.air.participants import ConsecutiveClients, ListedClients, PresentClients
from wirelessfl.air.plan import Plan
from wirelessfl.engine.events import (
    Aggregate,
    Ask,
    Cancel,
    Decision,
    Event,
    Exhausted,
    Report,
    Returned,
)
from wirelessfl.engine.loop import RowFields, restored_event, stored_event
from wirelessfl.engine.rounds.model_rounds import Later, OneModel
from wirelessfl.engine.rounds.planner import NoClientError, Planner
from wirelessfl.engine.schedules import Clock
from wirelessfl.engine.server.learner import Learner
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.engine.sessions.attendance import Churn, PresenceChanged
from wirelessfl.models.submodels import ParamSpec, Submodels
from wirelessfl.training.rules import State

PREFIX = "cells."
"""Prefix of the names of these tensors in a checkpoint."""
INDEX = f"{PREFIX}index"
MEMBERS, CHARGES = f"{PREFIX}members.", f"{PREFIX}charges."
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
    merge, and the clients of its cells train together. All available clients of a cell participate:
    a cell without any waits for the first, and a client that leaves before the end of its cell's
    round has used time and energy, and its update is dropped. Batteries pay the whole round of a
    cell when it starts, without the clients that decline; a cell in which all decline waits.

    Args:
        planner: plans the rounds of a cell and their durations.
        learner: trains the rounds, and contains the server.
        clock: virtual clock.
        ledger: costs of the rounds.
        availability: when clients are available; None for always.
    """

    starts_again = False

    def __init__(
        self,
        planner: Planner,
        learner: Learner,
        clock: Clock,
        ledger: Ledger,
        availability: Churn | None = None,
    ) -> None:
        super().__init__(planner, learner, clock, ledger, availability)
        cells = planner.network.cells
        self.parts: Submodels = planner.plan(0).submodels
        """Submodel of each cell in its current or next round."""
        self.rounds_done = [0] * cells
        """Number of merged rounds of each cell."""
        self.sent: dict[int, int] = {}
        """Version of the model that each busy cell received, by cell."""
        self._models: dict[int, State] = {}
        self._asked = 0
        self.members: dict[int, IntArray] = {}
        """Clients of each busy cell, if they are not always available, or have batteries."""
        self.charges: dict[int, FloatArray] = {}
        """Charge that the round leaves in the battery of each of them, J, by cell."""
        self.left: dict[int, list[int]] = {}
        """Those that have left during the round of their cell, by cell."""
        self._ends: dict[int, float] = {}
        limits = planner.participation.energy
        self._limits = limits if limits is not None and limits.capacity is not None else None
        self._wakes_at = 0.0
        self._replanner = replace(
            planner, participation=replace(planner.participation, energy=None)
        )  # whose clients are known

    def carry_out(self, decision: Decision) -> None:
        """Issue work to cells, merge finished cells, or discard all work at the end of the run."""
        match decision:
            case Ask(_, count):
                self._asked += count
            case Aggregate(_, cells, _):
                self._merge(sorted(cells))
            case Cancel():
                self.sent, self._models, self._asked = {}, {}, 0

    def happened(self, what: Any) -> Event | None:
        """Process an entry of the clock: note the clients that have left."""
        if type(what) is Later:
            return None
        if type(what) is not PresenceChanged:
            event: Event = what
            return event
        assert self.availability is not None, "clients are not always available"
        for change in self.availability.new_changes():
            cell = int(self.planner.network.cell_of[change.client])
            takes_part = not change.joins and cell in self.sent
            if takes_part and self.clock.now < self._ends[cell]:
                self.left.setdefault(cell, []).append(change.client)
        return None

    def settle(self) -> None:
        """Send the cloud's model to the cells without work, after all events at this time."""
        if not self._asked:
            return
        free = [cell for cell in range(len(self.rounds_done)) if cell not in self.sent]
        assert len(free) == self._asked, "the schedule issues work to all merged cells"
        server = self.learner.server
        if self.availability is not None:
            free = self._attended(free)
        if self._limits is not None:
            free = [cell for cell in free if self._charged(cell)]
        self._asked -= len(free)
        if free:
            self._models[server.version] = server.cloud
        for cell in free:
            self.sent[cell] = server.version
            seconds = float(self.plan(cell).price.seconds[cell])
            self._ends[cell] = self.clock.now + seconds
            self.clock.after(seconds, Returned(cell, 0, server.version))
        if self._asked:
            self._wait()

    def _attended(self, cells: Sequence[int]) -> list[int]:
        """The cells that have available clients, which take part."""
        assert self.availability is not None, "clients are not always available"
        present, attended = PresentClients(self.availability.present), []
        for cell in cells:
            whole = self._whole(cell)
            first, last = present.below([whole.first, whole.first + whole.count])
            if last > first:
                self.members[cell] = present.at(np.arange(first, last))
                attended.append(cell)
        return attended

    def _charged(self, cell: int) -> bool:
        """Let the available clients of a cell pay for its round; False if all decline."""
        members = self.members.pop(cell, None)
        assert self._limits is not None, "clients have batteries"
        try:
            plan = self.planner.plan(
                self.rounds_done[cell],
                self._whole(cell) if members is None else ListedClients(members),
                self.parts.only([cell]),
                ledger=self.ledger,
                now=self.clock.now,
            )
        except NoClientError as error:
            self.ledger.charges = error.charges
            return False
        assert plan.charges is not None
        self.ledger.charges = plan.charges
        self.members[cell], self.charges[cell] = plan.clients, plan.charges.of(plan.clients)
        return True

    def _wait(self) -> None:
        """Let cells wait for clients; if the next merge never comes, the run ends."""
        available, limits, charges = self.availability, self._limits, self.ledger.charges
        now = self.clock.now
        charged = math.inf if limits is None else limits.next_charged(charges, now)
        if charged < math.inf:
            if charged != self._wakes_at:
                self._wakes_at = charged
                self.clock.at(charged, Later())
            return
        busy = any(self._ends[cell] > now for cell in self.sent)
        changes = available is not None and available.changes_later
        if not (busy or changes or self.ended is not None):
            empty = limits is not None and charges.need.any()
            self.ended = "too few cells have clients that are available"
            if empty:
                self.ended = "the batteries in too many cells hold less than a round takes"
            self.clock.after(0.0, Exhausted())

    def plan(self, cell: int) -> Plan:
        """Plan a cell's current round, which depends only on the cell's work and the settings."""
        members = self.members.get(cell)
        return replace(
            self._replanner.plan(
                self.rounds_done[cell],
                self._whole(cell) if members is None else ListedClients(members),
                self.parts.only([cell]),
            ),
            lr_share=self.planner.lr_share(self.sent[cell]),
        )

    def _whole(self, cell: int) -> ConsecutiveClients:
        network = self.planner.network
        first = int(network.cell_starts[cell])
        return ConsecutiveClients(first, int(network.cell_sizes[cell]))

    def _merge(self, cells: Sequence[int]) -> None:
        """Train the rounds of ``cells``, merge them, and reassign their submodels."""
        self._train(cells)
        for cell in cells:
            self.rounds_done[cell] += 1
            del self.sent[cell]
            self.left.pop(cell, None)
            self.members.pop(cell, None)
            self.charges.pop(cell, None)
        if self.availability is not None:
            self.availability.round_started(self.learner.server.version - 1, 0.0)
        versions = set(self.sent.values())
        self._models = {version: m for version, m in self._models.items() if version in versions}
        self.parts = self.planner.redealt(self.learner.server.version, self.parts, cells)

    def _train(self, cells: Sequence[int]) -> None:
        server = self.learner.server
        plans = {cell: self._ended(cell) for cell in cells}
        charges = self.ledger.charges
        for plan in plans.values():
            self.ledger.count(plan)
        self.ledger.charges = charges  # those of rounds that have started since, too
        cells = [cell for cell in cells if len(plans[cell].clients)]
        if not (self.learner.trains and cells):
            server.version += 1
            # Of their own, as a checkpoint stores the tensors of each version.
            server.cloud = {name: value.clone() for name, value in server.cloud.items()}
            return
        issued = [(plans[cell], self._models[self.sent[cell]]) for cell in cells]
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

    def _ended(self, cell: int) -> Plan:
        """Plan of a cell's round at its end, without the clients that have left."""
        plan, left = self.plan(cell), self.left.get(cell)
        if self._limits is not None:
            members = self.members[cell]
            none = np.zeros(len(members))
            plan = replace(plan, charges=Charges(members, self.charges[cell], none, none))
        return plan if left is None else plan.without(np.array(left))

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
        members = {f"{MEMBERS}{cell}": torch.from_numpy(w) for cell, w in self.members.items()}
        members |= {f"{CHARGES}{cell}": torch.from_numpy(j) for cell, j in self.charges.items()}
        return {**super().tensors(), **models, **index, **members}

    def snapshot(self) -> dict[str, Any]:
        """Work of the cells, clock entries, and neurons of the submodels."""
        return {
            **super().snapshot(),
            "now": self.clock.now,
            "future": [
                [seconds, *_stored(event)]
                for seconds, event in self.clock.queued()
                if type(event) not in (PresenceChanged, Exhausted, Later)
            ],
            "rounds_done": self.rounds_done,
            "sent": list(self.sent.items()),
            **(self._attendance() if self._selects else {}),
            "parts": _stored_parts(self.parts),
        }

    @property
    def _selects(self) -> bool:
        """Whether not all clients of a cell take part in each round."""
        return self.availability is not None or self._limits is not None

    def _attendance(self) -> dict[str, Any]:
        """Cells that wait, ends of the rounds of busy cells, and clients that have left them."""
        ends = [[cell, self._ends[cell]] for cell in self.sent]
        left = [[cell, *clients] for cell, clients in self.left.items()]
        return {"asked": self._asked, "ends": ends, "left": left}

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
        if not self._selects:
            return
        self._asked, self._ends = state["asked"], dict(state["ends"])
        self.left = {cell: clients for cell, *clients in state["left"]}
        self.members = {cell: tensors[f"{MEMBERS}{cell}"].numpy() for cell in self.sent}
        if self._limits is not None:
            self.charges = {cell: tensors[f"{CHARGES}{cell}"].numpy() for cell in self.sent}
        self.start()
        if self._asked:
            self._wait()


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
