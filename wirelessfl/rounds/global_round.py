"""A global round under way: edge rounds in which clients train, send, and are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from channels.streams import Stream
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.compression import relative_error
from wirelessfl.rounds.cover import Cover
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.together import Together, together
from wirelessfl.training.cohort import State
from wirelessfl.training.executor import Job
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks import AirRound
from wirelessfl.uplinks.base import Reception

if TYPE_CHECKING:
    from wirelessfl.rounds.world import World


class GlobalRound:
    """A global round at every node; the world's clients make progress, its servers do not yet.

    Args:
        world: clients, servers, and how they train.
        plan: who trains what.
        sent: the cloud's state when the work was given out.
    """

    def __init__(self, world: World, plan: Plan, sent: State) -> None:
        self.world, self.plan = world, plan
        algorithm, submodels = world.algorithm, plan.submodels
        if plan.lr_share != 1.0:
            algorithm = replace(algorithm, lr=plan.lr_share * algorithm.lr)
        self.algorithm = algorithm
        self.nodes: State = {name: submodels.gather(value) for name, value in sent.items()}
        self.nodes |= {name: submodels.gather_each(value) for name, value in world.nodes.items()}
        self._like = self.nodes["params"]
        self._payloads = [payload.name for payload in algorithm.payloads]
        steps, payloads = world.settings.local_steps, algorithm.payloads
        air = AirRound(
            nodes=submodels.nodes,
            node=plan.node,
            clients=plan.clients,
            weights=world.client_weights(plan),
            each=frozenset(payload.name for payload in payloads if payload.each),
            sent=None,
            units={payload.name: algorithm.unit(payload, steps) for payload in payloads},
            silent={p.name: ~plan.tracking for p in payloads if p.senders == "tracking"},
            draw=plan.draw(0),
            stream=world.stream,
        )
        self._cover = Cover.of(plan, air, self._payloads, self._like)
        exchanged = submodels.exchanged() if self._cover is None else self._cover.sent()
        if exchanged is not None:
            exchanged = exchanged.to(self._like.device)
        self._air = replace(air, sent=exchanged)
        self._share = world.share(plan)
        self._idle = np.bincount(plan.node, minlength=submodels.nodes) == 0
        teacher = world.teacher
        self._teacher = {} if teacher is None else {"teacher": submodels.gather(teacher)}
        self._metrics: list[Mapping[str, float]] = []

    def metrics(self) -> dict[str, float]:
        """What there is to say of the round: means over its edge rounds."""
        covering = {} if self._cover is None else self._cover.metrics()
        return covering | {
            name: sum(own[name] for own in self._metrics) / len(self._metrics)
            for name in self._metrics[0]
        }

    def train(self, edge_round: int) -> None:
        """One edge round: the clients of all nodes train, and each node merges what it receives."""
        world, plan, settings = self.world, self.plan, self.world.settings
        stream = world.stream.child("round", plan.round, "edge", edge_round)
        reception = world.uplink.receive(
            replace(self._air, draw=plan.draw(edge_round), stream=stream.child("air"))
        )
        servers, error = self._sent(stream)
        for some in together(plan, servers, settings.padding, world.executor.chunk):
            label = f"{world.title} {plan.round + 1}, edge round {edge_round + 1}"
            self._train_together(some, label, reception)
        reception.share(world.shards, self._payloads, self._like)
        received = self._received(reception)
        merged = self._merged(received)
        idle = self._idle
        self.nodes = _kept_where(idle, self.nodes, merged) if idle.any() else merged
        self._metrics.append({**received.metrics, **error})
        world.steps_done[plan.clients] += settings.local_steps

    def _sent(self, stream: Stream) -> tuple[State, dict[str, float]]:
        """What reaches the clients, by node, and the error of compression w_2."""
        compression = self.world.settings.compression
        servers = {**self.algorithm.outgoing(self.nodes), **self._teacher}
        if compression is None:
            return servers, {}
        before, spec = servers["params"], self.plan.submodels.spec
        after = compression.compress(before, spec, stream.child("compression"))
        return servers | {"params": after}, {"compression_error": relative_error(before, after)}

    def _train_together(self, some: Together, label: str, reception: Reception) -> None:
        """Train the clients of one job; what they send goes to ``reception``."""
        world, algorithm, like = self.world, self.algorithm, some.servers["params"]
        clients, shards = self.plan.clients[some.rows], world.shards
        job = Job(
            rule=algorithm,
            spec=some.submodels.spec,
            servers=some.servers,
            node=some.node,
            clients=clients,
            first_steps=world.steps_done[clients],
            local_steps=world.settings.local_steps,
            label=label,
            tracking=self.plan.tracking[some.rows],
            recall=lambda who, node: world.states.gather(
                algorithm.client_state, some.submodels, who, node, like
            ),
            penalties=(*algorithm.penalties, *world.penalties),
        )
        mine = shards.share(len(clients))
        others: dict[str, list[Tensor]] = {name: [] for name in algorithm.client_state}
        for chunk in world.executor.train(job.of(mine)) if mine.start < mine.stop else ():
            part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
            reception.add(some.rows[part], some.sent(chunk.payloads, part))
            if shards.count == 1:
                self._keep(some, clients, part, chunk.kept)
                continue
            for name, value in chunk.kept.items():
                others[name].append(value.clone())
        if shards.count > 1:
            kept = {
                name: shards.gather(torch.cat([like[:0], *own]), len(clients))
                for name, own in others.items()
            }
            self._keep(some, clients, slice(None), kept)

    def _keep(self, some: Together, clients: IntArray, part: slice, kept: State) -> None:
        """Store what some of the clients that have trained together keep."""
        # What a client keeps of something that it also sends stays zero where nothing is sent:
        # its server knows nothing there.
        for name, value in kept.items():
            own = some.submodels.silence(value.clone()) if name in self._payloads else value
            self.world.states.scatter(some.submodels, clients[part], some.node[part], {name: own})

    def _received(self, reception: Reception) -> Received:
        """What the nodes have received, with what an algorithm may want to know of it."""
        received = replace(
            reception.result(),
            local_steps=self.world.settings.local_steps,
            share=self._share,
            weights=self._air.weights.tolist(),
        )
        for value in (*received.mean.values(), *received.each.values()):
            self.plan.submodels.silence(value)
        if self._cover is not None:
            received = self._cover.of_those_who_cover(received)
        return self._remembering(received)

    def _remembering(self, received: Received) -> Received:
        """With what the server remembers of the senders; what it is to remember is stored."""
        algorithm, states = self.algorithm, self.world.states
        clients, remembered = received.clients.tolist(), {}
        for name in algorithm.remembers:
            rows = torch.zeros(len(clients), self._like.shape[1])
            for row, client in zip(rows, clients, strict=True):
                before = states.get(name, client)
                if before is not None:
                    row.copy_(before)
            remembered[name] = rows.to(self._like.device)
        received = replace(received, remembered=remembered)
        for name, now in algorithm.remember(received).items():
            for row, client in zip(now.detach().cpu(), clients, strict=True):
                states.put(name, client, row)
        return received

    def _merged(self, received: Received) -> State:
        """The nodes' next state, zero where padded, whatever the algorithm makes of zeros.

        Raises:
            ConfigError: the algorithm has lost a part of it.
        """
        merged = self.algorithm.merge(self.nodes, received)
        if merged.keys() != self.nodes.keys():
            raise ConfigError(
                f"algorithm {self.algorithm.name!r} begins with the server state "
                f"{sorted(self.nodes)}, and its merge gives {sorted(merged)}: they must agree."
            )
        return {name: self.plan.submodels.blank(value) for name, value in merged.items()}


def _kept_where(idle: BoolArray, before: State, after: State) -> State:
    """``after`` [nodes, P_max] by name, but as ``before`` at nodes that have heard nobody."""
    quiet = torch.from_numpy(idle)[:, None].to(before["params"].device)
    return {name: torch.where(quiet, before[name], value) for name, value in after.items()}
