"""The state that rounds change: the cloud's model, the clients' progress, the running totals."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.data.client_samples import sample_counts
from wirelessfl.rounds.compression import Compression
from wirelessfl.rounds.global_round import GlobalRound
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.together import PADDING
from wirelessfl.server.client_states import ClientStates, Overlay
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.executor import Executor
from wirelessfl.training.shards import Shards
from wirelessfl.uplinks import Uplink


@dataclass
class Totals:
    """Running sums of what rounds cost."""

    uplink_mib: float = 0.0
    downlink_mib: float = 0.0
    backhaul_mib: float = 0.0
    joules: float = 0.0

    def add(self, plan: Plan) -> None:
        """Count one more round."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(plan.cost, entry.name))


@dataclass(frozen=True)
class TrainingSettings:
    """How clients train in every round.

    Args:
        local_steps: H.
        edge_rounds: E.
        weight_by_samples: merge clients and cells by their samples, not uniformly.
        padding: share of padding in a batch of clients with submodels of different widths.
        compression: of the model on its way to the clients.
    """

    local_steps: int
    edge_rounds: int
    weight_by_samples: bool
    padding: float = PADDING
    compression: Compression | None = None


class World:
    """Clients, edge servers and cloud, and the training that a plan asks of them.

    Args:
        algorithm: client and server rules.
        uplink: how updates cross the air.
        executor: where they are computed.
        settings: steps, rounds, weights.
        parts: each client's samples, clients in the order of the network.
        params: initial parameters [P].
        node_of: [clients], the server that each reports to, counted from 0.
        stream: the run's stream.
        states: what clients keep between their turns.
        shards: the processes that share the clients.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        uplink: Uplink,
        executor: Executor,
        settings: TrainingSettings,
        parts: Sequence[IntArray],
        params: Tensor,
        node_of: IntArray,
        stream: Stream,
        states: ClientStates,
        shards: Shards = Shards(),  # noqa: B008, frozen
    ) -> None:
        self.algorithm = algorithm
        self.uplink = uplink
        self.executor = executor
        self.settings = settings
        self.parts = parts
        self.sizes = sample_counts(parts).astype(np.float64)
        self.stream = stream
        self.states = states
        self.node_of = node_of
        self.shards = shards
        self.there: BoolArray = np.ones(len(node_of), dtype=np.bool_)
        self.penalties: tuple[Penalty, ...] = ()
        self.teacher: Tensor | None = None
        self.title = "round"
        self.cloud, self.nodes = self._initial(params)
        self.steps_done = np.zeros(len(parts), dtype=np.int64)
        self.totals = Totals()
        self.metrics: dict[str, float] = {}

    def _initial(self, params: Tensor) -> tuple[State, State]:
        """The state of the cloud and of the nodes when training begins at ``params`` [P]."""
        state, nodes = self.algorithm.initial(params), int(self.node_of.max()) + 1
        at_nodes = [name for name in state if name != "params" and self.algorithm.node_state]
        return (
            {name: state[name] for name in state if name not in at_nodes},
            {name: state[name].repeat(nodes, 1) for name in at_nodes},
        )

    def begin(self, params: Tensor) -> None:
        """Begin anew at ``params`` [P] with the clients who are there, who keep what is theirs.

        The server's moments begin as in the first round; its sums over all clients are made again.
        """
        self.cloud, self.nodes = self._initial(params)
        self.recount()

    def recount(self) -> None:
        """Make the servers' means of what clients keep again, over those who are there."""
        who = np.flatnonzero(self.there)
        weight = self._sizes(who)
        for name in self.algorithm.recounted:
            at_nodes = name in self.nodes
            old = self.nodes[name] if at_nodes else self.cloud[name][None]
            node = self.node_of[who] if at_nodes else np.zeros_like(who)
            whole = np.bincount(node, weight, len(old))
            means = torch.zeros_like(old)
            for client, own, share in zip(who.tolist(), node.tolist(), weight, strict=True):
                kept = self.states.get(name, client)
                if kept is not None:
                    means[own].add_(kept.to(means.device), alpha=float(share / whole[own]))
            if at_nodes:
                self.nodes[name] = means
            else:
                self.cloud[name] = means[0]

    def branch(self, stream: Stream) -> World:
        """A copy to be trained on trial: this one, and what its clients keep, stay as they are.

        Args:
            stream: the copy's own randomness.
        """
        twin = copy.copy(self)
        twin.cloud, twin.nodes = dict(self.cloud), dict(self.nodes)
        twin.steps_done, twin.there = self.steps_done.copy(), self.there.copy()
        twin.states, twin.totals, twin.stream = Overlay(self.states), Totals(), stream
        twin.penalties, twin.teacher, twin.title = (), None, "trial round"
        return twin

    def train(self, plan: Plan, sent: State) -> None:
        """Run the global round ``plan``: E edge rounds at every node, then the cloud's merge.

        Args:
            plan: who trains what.
            sent: the cloud's state when the work was given out.
        """
        if len(plan.clients) == 0:  # all have left
            self.totals.add(plan)
            return
        under_way = GlobalRound(self, plan, sent)
        for edge_round in range(self.settings.edge_rounds):
            under_way.train(edge_round)
        nodes, submodels = under_way.nodes, plan.submodels
        for name, value in self.nodes.items():
            self.nodes[name] = submodels.scatter_each(value, nodes.pop(name))
        weights = self.node_weights(plan)
        self.cloud = under_way.algorithm.combine(self.cloud, nodes, submodels, weights)
        self.totals.add(plan)
        self.metrics = under_way.metrics()

    def _sizes(self, clients: IntArray) -> FloatArray:
        """Weight of each of the ``clients`` in means."""
        if not self.settings.weight_by_samples:
            return np.ones(len(clients))
        return self.sizes[clients]

    def client_weights(self, plan: Plan) -> FloatArray:
        """Weights [senders] of the clients at their node, which sum to 1 there."""
        size = self._sizes(plan.clients)
        return np.asarray(size / np.bincount(plan.node, size, plan.submodels.nodes)[plan.node])

    def node_weights(self, plan: Plan) -> list[float]:
        """Weights of the nodes; those without a client have none."""
        in_node = np.bincount(plan.node, self._sizes(plan.clients), plan.submodels.nodes)
        weights: list[float] = in_node.tolist()
        return weights if self.settings.weight_by_samples else [float(own > 0) for own in weights]

    def share(self, plan: Plan) -> dict[str, Tensor]:
        """By payload, [nodes, 1]: the weight of its senders over that of all who are there."""
        nodes, who = plan.submodels.nodes, np.flatnonzero(self.there)
        whole = np.bincount(self.node_of[who], self._sizes(who), nodes)
        whole = np.where(whole > 0, whole, 1.0)
        share = {}
        for payload in self.algorithm.payloads:
            sends = plan.tracking if payload.senders == "tracking" else np.ones(len(plan.clients))
            sent = np.bincount(plan.node, self._sizes(plan.clients) * sends, nodes)
            ratio = torch.from_numpy(sent / whole).float()[:, None]
            share[payload.name] = ratio.to(self.cloud["params"].device)
        return share

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors, for a checkpoint."""
        steps = torch.from_numpy(self.steps_done.copy())
        return {
            **{f"cloud.{name}": value for name, value in self.cloud.items()},
            **{f"nodes.{name}": value for name, value in self.nodes.items()},
            **self.states.tensors(),
            "steps_done": steps,
        }

    def restore(self, tensors: dict[str, Tensor], totals: dict[str, float]) -> None:
        """Go on from the ``tensors`` and running totals of a checkpoint."""
        device = self.cloud["params"].device
        self.cloud, self.nodes = (
            {n.removeprefix(kind): v.to(device) for n, v in tensors.items() if n.startswith(kind)}
            for kind in ("cloud.", "nodes.")
        )
        self.states.restore(tensors)
        self.steps_done = tensors["steps_done"].numpy().copy()
        self.totals = Totals(**totals)
