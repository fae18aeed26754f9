"""The state that rounds change: the cloud's model, the clients' progress, the running totals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.simulation.plan import Plan
from wirelessfl.simulation.shards import Shards
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import State
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
        stream: the run's stream.
        shards: the processes that share the clients.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        uplink: Uplink,
        executor: Executor,
        settings: TrainingSettings,
        parts: list[IntArray],
        params: Tensor,
        stream: Stream,
        shards: Shards = Shards(),  # noqa: B008, frozen
    ) -> None:
        self.algorithm = algorithm
        self.uplink = uplink
        self.executor = executor
        self.settings = settings
        self.parts = parts
        self.stream = stream
        self.shards = shards
        self.cloud: State = algorithm.initial(params)
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
        exchanged = submodels.exchanged()
        if exchanged is not None:
            exchanged = exchanged.to(nodes["params"].device)
        metrics: list[Mapping[str, float]] = []
        for edge_round in range(settings.edge_rounds):
            job = Job(
                algorithm=algorithm,
                spec=submodels.spec,
                servers=nodes,
                node=plan.node,
                clients=plan.clients,
                first_steps=self.steps_done[plan.clients],
                local_steps=settings.local_steps,
                label=f"round {plan.round + 1}, edge round {edge_round + 1}",
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
                        p.name: getattr(algorithm, p.unit) for p in algorithm.payloads if p.unit
                    },
                    draw=plan.draw(edge_round),
                    stream=self.stream.child("round", plan.round, "edge", edge_round, "air"),
                )
            )
            mine = self.shards.share(len(plan.clients))
            for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
                part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
                reception.add(part, chunk.payloads)
            reception.share(self.shards, [p.name for p in algorithm.payloads], nodes["params"])
            received = reception.result()
            for value in (*received.mean.values(), *received.each.values()):
                submodels.silence(value)
            nodes = algorithm.merge(nodes, received)
            metrics.append(received.metrics)
            self.steps_done[plan.clients] += settings.local_steps
        self.cloud = algorithm.combine(self.cloud, nodes, submodels, node_weights)
        self.totals.add(plan)
        self.metrics = {
            name: sum(own[name] for own in metrics) / len(metrics) for name in metrics[0]
        }

    def _weights(self, plan: Plan) -> tuple[FloatArray, list[float]]:
        """Weights of the clients at their node, which sum to 1 there, and of the nodes."""
        nodes, size = plan.submodels.nodes, np.ones(len(plan.clients))
        if self.settings.weight_by_samples:
            size = np.array([len(self.parts[c]) for c in plan.clients], dtype=np.float64)
        in_node = np.bincount(plan.node, weights=size, minlength=nodes)
        by_node = in_node.tolist() if self.settings.weight_by_samples else [1.0] * nodes
        return size / in_node[plan.node], by_node

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors, for a checkpoint."""
        steps = torch.from_numpy(self.steps_done.copy())
        return {f"cloud.{k}": v for k, v in self.cloud.items()} | {"steps_done": steps}

    def restore(self, tensors: dict[str, Tensor], totals: dict[str, float]) -> None:
        """Go on from the ``tensors`` and running totals of a checkpoint."""
        device = self.cloud["params"].device
        self.cloud = {
            name.removeprefix("cloud."): value.to(device)
            for name, value in tensors.items()
            if name.startswith("cloud.")
        }
        self.steps_done = tensors["steps_done"].numpy().copy()
        self.totals = Totals(**totals)
