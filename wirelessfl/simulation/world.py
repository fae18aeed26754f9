"""The state that rounds change: the cloud's model, the clients' progress, the running totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.data.parts import part_sizes
from wirelessfl.errors import ConfigError
from wirelessfl.simulation.client_states import ClientStates
from wirelessfl.simulation.plan import Plan
from wirelessfl.simulation.shards import Shards
from wirelessfl.submodels import Submodels
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import Received, State
from wirelessfl.uplinks import AirRound, Uplink
from wirelessfl.uplinks.base import FloatArray


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
    """

    local_steps: int
    edge_rounds: int
    weight_by_samples: bool


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
        self.sizes = part_sizes(parts).astype(np.float64)
        self.stream = stream
        self.states = states
        self.node_of = node_of
        self.shards = shards
        state = algorithm.initial(params)
        at_nodes = [name for name in state if name != "params" and algorithm.node_state]
        self.nodes: State = {
            name: state[name].repeat(int(node_of.max()) + 1, 1) for name in at_nodes
        }
        self.cloud: State = {name: state[name] for name in state if name not in at_nodes}
        self.steps_done = np.zeros(len(parts), dtype=np.int64)
        self.totals = Totals()
        self.metrics: dict[str, float] = {}

    def train(self, plan: Plan, sent: State) -> None:
        """Run the global round ``plan``: E edge rounds at every node, then the cloud's merge.

        Args:
            plan: who trains what.
            sent: the cloud's state when the work was given out.
        """
        algorithm, settings, submodels = self.algorithm, self.settings, plan.submodels
        client_weights, node_weights = self._weights(plan)
        nodes = {name: submodels.gather(value) for name, value in sent.items()}
        nodes |= {name: submodels.gather_each(value) for name, value in self.nodes.items()}
        exchanged = submodels.exchanged()
        if exchanged is not None:
            exchanged = exchanged.to(nodes["params"].device)
        like = nodes["params"]
        silent = {p.name: ~plan.tracking for p in algorithm.payloads if p.senders == "tracking"}
        share = self._share(plan)
        metrics: list[Mapping[str, float]] = []
        for edge_round in range(settings.edge_rounds):
            job = Job(
                algorithm=algorithm,
                spec=submodels.spec,
                servers=algorithm.outgoing(nodes),
                node=plan.node,
                clients=plan.clients,
                first_steps=self.steps_done[plan.clients],
                local_steps=settings.local_steps,
                label=f"round {plan.round + 1}, edge round {edge_round + 1}",
                tracking=plan.tracking,
                own=lambda who, node: self.states.gather(submodels, who, node, like),
                penalties=algorithm.penalties,
            )
            reception = self.uplink.receive(
                AirRound(
                    nodes=submodels.nodes,
                    node=plan.node,
                    clients=plan.clients,
                    weights=client_weights,
                    each=frozenset(p.name for p in algorithm.payloads if p.each),
                    sent=exchanged,
                    units={
                        p.name: algorithm.unit(p, settings.local_steps) for p in algorithm.payloads
                    },
                    silent=silent,
                    draw=plan.draw(edge_round),
                    stream=self.stream.child("round", plan.round, "edge", edge_round, "air"),
                )
            )
            mine = self.shards.share(len(plan.clients))
            others: dict[str, list[Tensor]] = {name: [] for name in algorithm.client_state}
            for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
                part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
                reception.add(part, chunk.payloads)
                self._keep(plan, part, chunk.kept, others)
            reception.share(self.shards, [p.name for p in algorithm.payloads], like)
            self._share_kept(plan, others, like)
            received = replace(reception.result(), local_steps=settings.local_steps, share=share)
            for value in (*received.mean.values(), *received.each.values()):
                submodels.silence(value)
            nodes = self._merged(nodes, received, submodels)
            metrics.append(received.metrics)
            self.steps_done[plan.clients] += settings.local_steps
        for name, value in self.nodes.items():
            self.nodes[name] = submodels.scatter_each(value, nodes.pop(name))
        self.cloud = algorithm.combine(self.cloud, nodes, submodels, node_weights)
        self.totals.add(plan)
        self.metrics = {
            name: sum(own[name] for own in metrics) / len(metrics) for name in metrics[0]
        }

    def _merged(self, nodes: State, received: Received, submodels: Submodels) -> State:
        """The nodes' next state, zero where padded, whatever the algorithm makes of zeros.

        Raises:
            ConfigError: the algorithm has lost a part of it.
        """
        merged = self.algorithm.merge(nodes, received)
        if merged.keys() != nodes.keys():
            raise ConfigError(
                f"algorithm {self.algorithm.name!r} begins with the server state {sorted(nodes)}, "
                f"and its merge gives {sorted(merged)}: they must agree."
            )
        return {name: submodels.blank(value) for name, value in merged.items()}

    def _keep(self, plan: Plan, part: slice, kept: State, others: dict[str, list[Tensor]]) -> None:
        """Store what the clients in ``part`` keep, or set it aside for the other processes."""
        if self.shards.count == 1:
            self._scatter(plan, part, kept)
            return
        for name, value in kept.items():
            others[name].append(value.clone())

    def _share_kept(self, plan: Plan, others: dict[str, list[Tensor]], like: Tensor) -> None:
        """Store what the clients of all processes keep, in each of them."""
        if self.shards.count > 1:
            kept = {
                name: self.shards.gather(torch.cat([like[:0], *own]), len(plan.clients))
                for name, own in others.items()
            }
            self._scatter(plan, slice(None), kept)

    def _scatter(self, plan: Plan, part: slice, kept: State) -> None:
        # What a client keeps of something that it also sends stays zero where nothing is sent:
        # its server knows nothing there.
        sent = {payload.name for payload in self.algorithm.payloads}
        for name, value in kept.items():
            own = plan.submodels.silence(value.clone()) if name in sent else value
            self.states.scatter(plan.submodels, plan.clients[part], plan.node[part], {name: own})

    def _sizes(self, clients: IntArray) -> FloatArray:
        """Weight of each of the ``clients`` in means."""
        if not self.settings.weight_by_samples:
            return np.ones(len(clients))
        return self.sizes[clients]

    def _weights(self, plan: Plan) -> tuple[FloatArray, list[float]]:
        """Weights of the clients at their node, which sum to 1 there, and of the nodes."""
        nodes, size = plan.submodels.nodes, self._sizes(plan.clients)
        in_node = np.bincount(plan.node, weights=size, minlength=nodes)
        by_node = in_node.tolist() if self.settings.weight_by_samples else [1.0] * nodes
        return size / in_node[plan.node], by_node

    def _share(self, plan: Plan) -> dict[str, Tensor]:
        """By payload, [nodes, 1]: the weight of its senders over that of all registered."""
        nodes = plan.submodels.nodes
        whole = np.bincount(self.node_of, self._sizes(np.arange(len(self.node_of))), nodes)
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
