"""The state that rounds change: the cloud's model, the clients' progress, the running totals."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.simulation.plan import Plan
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.batches import draw_batches
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import State
from wirelessfl.uplinks import AirRound, Uplink


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
        batch_size: b.
        weight_by_samples: merge clients and cells by their samples, not uniformly.
    """

    local_steps: int
    edge_rounds: int
    batch_size: int
    weight_by_samples: bool


class World:
    """Clients, edge servers and cloud, and the training that a plan asks of them.

    Args:
        algorithm: client and server rules.
        uplink: how updates cross the air.
        executor: where they are computed.
        settings: steps, rounds, batches, weights.
        parts: each client's samples, clients in the order of the network.
        cell_of: [clients], sorted.
        params: initial parameters [P].
        stream: the run's stream.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        uplink: Uplink,
        executor: Executor,
        settings: TrainingSettings,
        parts: list[IntArray],
        cell_of: IntArray,
        params: Tensor,
        stream: Stream,
    ) -> None:
        self.algorithm = algorithm
        self.uplink = uplink
        self.executor = executor
        self.settings = settings
        self.parts = parts
        self.cell_of = np.array(cell_of)  # a writable copy, which torch asks for
        self.stream = stream
        self.cloud: State = algorithm.initial(params)
        self.steps_done = np.zeros(len(parts), dtype=np.int64)
        self.totals = Totals()

    def train(self, plan: Plan) -> None:
        """Run the global round ``plan``: E edge rounds at every node, then the cloud's merge."""
        algorithm, settings = self.algorithm, self.settings
        client_weights, node_weights = self._weights(plan.submodels.nodes)
        nodes = {name: plan.submodels.gather(value) for name, value in self.cloud.items()}
        clients = np.arange(len(self.parts))
        for edge_round in range(settings.edge_rounds):
            job = Job(
                algorithm=algorithm,
                spec=plan.submodels.spec,
                servers=nodes,
                node=self.cell_of,
                clients=clients,
                batches=draw_batches(
                    self.parts,
                    clients,
                    self.steps_done,
                    settings.local_steps,
                    settings.batch_size,
                    self.stream,
                ),
                label=f"round {plan.round + 1}, edge round {edge_round + 1}",
            )
            reception = self.uplink.receive(
                AirRound(
                    nodes=plan.submodels.nodes,
                    node=self.cell_of,
                    clients=clients,
                    weights=client_weights,
                    each=frozenset(p.name for p in algorithm.payloads if p.each),
                    draw=plan.draw(edge_round),
                    stream=self.stream.child("round", plan.round, "edge", edge_round, "air"),
                )
            )
            for chunk in self.executor.train(job):
                reception.add(chunk.part, chunk.payloads)
            nodes = algorithm.merge(nodes, reception.result())
            self.steps_done += settings.local_steps
        self.cloud = algorithm.combine(self.cloud, nodes, plan.submodels, node_weights)
        self.totals.add(plan)

    def _weights(self, nodes: int) -> tuple[np.ndarray, list[float]]:
        """Weights of the clients at their node, which sum to 1 there, and of the nodes."""
        size = np.ones(len(self.parts))
        if self.settings.weight_by_samples:
            size = np.array([len(part) for part in self.parts], dtype=np.float64)
        in_node = np.bincount(self.cell_of, weights=size, minlength=nodes)
        by_node = in_node.tolist() if self.settings.weight_by_samples else [1.0] * nodes
        return size / in_node[self.cell_of], by_node

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
