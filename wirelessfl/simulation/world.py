"""The state that rounds change: the cloud's model, the clients' progress, the running totals."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from channels.streams import Stream
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.data.parts import part_sizes
from wirelessfl.errors import ConfigError
from wirelessfl.simulation.client_states import ClientStates, Overlay
from wirelessfl.simulation.compression import Compression, relative_error
from wirelessfl.simulation.cover import Cover
from wirelessfl.simulation.plan import Plan
from wirelessfl.simulation.shards import Shards
from wirelessfl.simulation.together import PADDING, Together, together
from wirelessfl.submodels import Submodels
from wirelessfl.submodels.partition import IntArray
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.penalties import Penalty
from wirelessfl.training.rules import Received, State
from wirelessfl.uplinks import AirRound, Uplink
from wirelessfl.uplinks.base import BoolArray, FloatArray, Reception


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
        self.sizes = part_sizes(parts).astype(np.float64)
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
        algorithm, settings, submodels = self.algorithm, self.settings, plan.submodels
        if plan.lr_share != 1.0:
            algorithm = replace(algorithm, lr=plan.lr_share * algorithm.lr)
        client_weights, node_weights = self._weights(plan)
        nodes = {name: submodels.gather(value) for name, value in sent.items()}
        nodes |= {name: submodels.gather_each(value) for name, value in self.nodes.items()}
        like = nodes["params"]
        silent = {p.name: ~plan.tracking for p in algorithm.payloads if p.senders == "tracking"}
        air = AirRound(
            nodes=submodels.nodes,
            node=plan.node,
            clients=plan.clients,
            weights=client_weights,
            each=frozenset(p.name for p in algorithm.payloads if p.each),
            sent=None,
            units={p.name: algorithm.unit(p, settings.local_steps) for p in algorithm.payloads},
            silent=silent,
            draw=plan.draw(0),
            stream=self.stream,
        )
        cover = Cover.of(plan, air, [p.name for p in algorithm.payloads], like)
        exchanged = cover.sent() if cover is not None else submodels.exchanged()
        if exchanged is not None:
            exchanged = exchanged.to(like.device)
        share = self._share(plan)
        idle = np.bincount(plan.node, minlength=submodels.nodes) == 0
        teacher = {} if self.teacher is None else {"teacher": submodels.gather(self.teacher)}
        covering = {} if cover is None else cover.metrics()
        metrics: list[Mapping[str, float]] = []
        for edge_round in range(settings.edge_rounds):
            label = f"{self.title} {plan.round + 1}, edge round {edge_round + 1}"
            stream = self.stream.child("round", plan.round, "edge", edge_round)
            reception = self.uplink.receive(
                replace(air, sent=exchanged, draw=plan.draw(edge_round), stream=stream.child("air"))
            )
            servers, lost = self._sent(algorithm.outgoing(nodes), submodels, stream)
            servers |= teacher
            for jobs in together(plan, servers, settings.padding, self.executor.chunk):
                self._train_together(algorithm, plan, jobs, label, reception)
            reception.share(self.shards, [p.name for p in algorithm.payloads], like)
            received = replace(
                reception.result(),
                local_steps=settings.local_steps,
                share=share,
                weights=client_weights.tolist(),
            )
            for value in (*received.mean.values(), *received.each.values()):
                submodels.silence(value)
            if cover is not None:
                received = cover.of_those_who_cover(received)
            received = self._with_memory(algorithm, received)
            merged = self._merged(algorithm, nodes, received, submodels)
            nodes = _kept_where(idle, nodes, merged) if idle.any() else merged
            metrics.append({**received.metrics, **lost, **covering})
            self.steps_done[plan.clients] += settings.local_steps
        for name, value in self.nodes.items():
            self.nodes[name] = submodels.scatter_each(value, nodes.pop(name))
        self.cloud = algorithm.combine(self.cloud, nodes, submodels, node_weights)
        self.totals.add(plan)
        self.metrics = {
            name: sum(own[name] for own in metrics) / len(metrics) for name in metrics[0]
        }

    def _sent(
        self, servers: State, submodels: Submodels, stream: Stream
    ) -> tuple[State, dict[str, float]]:
        """What reaches the clients, and the error of compression w_2."""
        compression = self.settings.compression
        if compression is None:
            return dict(servers), {}
        before = servers["params"]
        after = compression.compress(before, submodels.spec, stream.child("compression"))
        return {**servers, "params": after}, {"compression_error": relative_error(before, after)}

    def _train_together(
        self, algorithm: Algorithm, plan: Plan, some: Together, label: str, reception: Reception
    ) -> None:
        """Train the clients of one job; what they send goes to ``reception``."""
        like, submodels = some.servers["params"], some.submodels
        clients = plan.clients[some.rows]
        job = Job(
            algorithm=algorithm,
            spec=submodels.spec,
            servers=some.servers,
            node=some.node,
            clients=clients,
            first_steps=self.steps_done[clients],
            local_steps=self.settings.local_steps,
            label=label,
            tracking=plan.tracking[some.rows],
            own=lambda who, node: self.states.gather(
                algorithm.client_state, submodels, who, node, like
            ),
            penalties=(*algorithm.penalties, *self.penalties),
        )
        mine = self.shards.share(len(clients))
        others: dict[str, list[Tensor]] = {name: [] for name in algorithm.client_state}
        for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
            part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
            reception.add(some.rows[part], some.sent(chunk.payloads, part))
            if self.shards.count == 1:
                self._keep(some, clients, part, chunk.kept)
                continue
            for name, value in chunk.kept.items():
                others[name].append(value.clone())
        if self.shards.count > 1:
            kept = {
                name: self.shards.gather(torch.cat([like[:0], *own]), len(clients))
                for name, own in others.items()
            }
            self._keep(some, clients, slice(None), kept)

    def _keep(self, some: Together, clients: IntArray, part: slice, kept: State) -> None:
        """Store what some of the clients that have trained together keep."""
        # What a client keeps of something that it also sends stays zero where nothing is sent:
        # its server knows nothing there.
        sent = {payload.name for payload in self.algorithm.payloads}
        for name, value in kept.items():
            own = some.submodels.silence(value.clone()) if name in sent else value
            self.states.scatter(some.submodels, clients[part], some.node[part], {name: own})

    def _with_memory(self, algorithm: Algorithm, received: Received) -> Received:
        """With what the server remembers of the senders; what it is to remember is stored."""
        if not algorithm.remembers:
            return received
        like = next(iter(received.mean.values()))
        clients = received.clients.tolist()
        remembered = {}
        for name in algorithm.remembers:
            rows = torch.zeros(len(clients), like.shape[1])
            for row, client in zip(rows, clients, strict=True):
                before = self.states.get(name, client)
                if before is not None:
                    row.copy_(before)
            remembered[name] = rows.to(like.device)
        received = replace(received, remembered=remembered)
        for name, now in algorithm.remember(received).items():
            for row, client in zip(now.detach().cpu(), clients, strict=True):
                self.states.put(name, client, row)
        return received

    def _merged(
        self, algorithm: Algorithm, nodes: State, received: Received, submodels: Submodels
    ) -> State:
        """The nodes' next state, zero where padded, whatever the algorithm makes of zeros.

        Raises:
            ConfigError: the algorithm has lost a part of it.
        """
        merged = algorithm.merge(nodes, received)
        if merged.keys() != nodes.keys():
            raise ConfigError(
                f"algorithm {algorithm.name!r} begins with the server state {sorted(nodes)}, "
                f"and its merge gives {sorted(merged)}: they must agree."
            )
        return {name: submodels.blank(value) for name, value in merged.items()}

    def _sizes(self, clients: IntArray) -> FloatArray:
        """Weight of each of the ``clients`` in means."""
        if not self.settings.weight_by_samples:
            return np.ones(len(clients))
        return self.sizes[clients]

    def _weights(self, plan: Plan) -> tuple[FloatArray, list[float]]:
        """Weights of the clients at their node, which sum to 1 there, and of the nodes."""
        nodes, size = plan.submodels.nodes, self._sizes(plan.clients)
        in_node = np.bincount(plan.node, weights=size, minlength=nodes)
        by_node = in_node if self.settings.weight_by_samples else (in_node > 0).astype(float)
        return size / in_node[plan.node], by_node.tolist()

    def _share(self, plan: Plan) -> dict[str, Tensor]:
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


def _kept_where(idle: BoolArray, before: State, after: State) -> State:
    """``after`` [nodes, P_max] by name, but as ``before`` at nodes that have heard nobody."""
    quiet = torch.from_numpy(idle)[:, None].to(before["params"].device)
    return {name: torch.where(quiet, before[name], value) for name, value in after.items()}
