"""The merge of received updates at the nodes, and the coverage of coordinates by submodels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from channels import ChannelDraw
from channels.arrays import BoolArray, ComplexArray, FloatArray, IntArray
from channels.streams import Name, Stream
from wirelessfl.air.uplinks import Transmission
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.engine.server.server import Server
from wirelessfl.models.submodels import ClientSubmodels, Submodels
from wirelessfl.models.submodels.extract import covered_mean
from wirelessfl.training.rules import Payload, Received, State
from wirelessfl.training.workers.shards import ALONE, Shards


@dataclass(frozen=True, eq=False)
class Cover:
    """Weight of the clients that cover each coordinate, by payload.

    Args:
        submodels: submodels of the clients.
        weight: by payload, [nodes, P], weight of the clients that cover a coordinate, relative to
            all senders of the node.
        count: [nodes, P], number of clients that cover each coordinate, Gamma^i.
    """

    submodels: ClientSubmodels
    weight: dict[str, torch.Tensor]
    count: torch.Tensor

    @classmethod
    def of(
        cls,
        submodels: ClientSubmodels,
        sent: Transmission,
        payloads: Sequence[Payload],
        device: torch.device,
    ) -> Cover:
        """Coverage by the submodels of the senders, on ``device``."""
        common, count = submodels.cover(sent.node, sent.weights.tolist(), sent.nodes)
        weight = dict.fromkeys((payload.name for payload in payloads), common.to(device))
        for name in sent.silent:
            covered, _ = submodels.cover(sent.node, sent.weights_of(name).tolist(), sent.nodes)
            weight[name] = covered.to(device)
        return cls(submodels, weight, count)

    def exchanged(self) -> torch.Tensor | None:
        """Elements that at least one client sends, [nodes, P] boolean; None if all are sent.

        Over the air, the clients of a node transmit these elements together; a client is silent on
        elements that it does not train.
        """
        covered = self.count > 0
        return None if covered.all() else covered

    def metrics(self) -> dict[str, float]:
        """Minimum number of clients per covered coordinate, and fraction of uncovered coordinates.

        The first is Gamma_q; its minimum over the rounds is Gamma*.
        """
        covered = self.count[self.count > 0]
        fewest = int(covered.min()) if len(covered) else 0
        return {"coverage": float(fewest), "uncovered": 1 - len(covered) / self.count.numel()}

    def of_those_who_cover(self, received: Received) -> Received:
        """Change each mean to that of the clients that cover the coordinate; 0 if none does."""
        mean = {
            name: covered_mean(value, self.weight[name], 0.0)
            for name, value in received.mean.items()
        }
        share = {name: value * self.weight[name] for name, value in received.share.items()}
        covers = None
        if received.each:
            rows = np.arange(len(received.clients))
            covers = self.submodels.covers(rows).to(next(iter(mean.values())).device)
        return replace(received, mean=mean, share=share, covers=covers)


@dataclass(frozen=True, eq=False)
class NodeMerge:
    """The merge of some clients' updates at their nodes, once or in several edge rounds.

    Args:
        server: the server whose nodes receive and merge.
        submodels: submodel of each node.
        rule: the algorithm, with the step size of the clients' training.
        local_steps: H, local steps of each client; their mean if they differ.
        steps: [senders], local steps of each.
        staleness: [senders], merges since each client received its model; None in rounds.
        transmission: what the clients send, for the uplink.
        cover: coordinates that they cover; None if they train the complete model of their node.
    """

    server: Server
    submodels: Submodels
    rule: Algorithm
    local_steps: float
    steps: Sequence[int]
    staleness: IntArray | None
    transmission: Transmission
    cover: Cover | None

    @classmethod
    def of(
        cls,
        server: Server,
        submodels: Submodels,
        clients: IntArray,
        rule: Algorithm,
        local_steps: float,
        stream: Stream,
        *,
        client_submodels: ClientSubmodels | None = None,
        tracking: BoolArray | None = None,
        node: IntArray | None = None,
        staleness: IntArray | None = None,
        steps: Sequence[int] = (),
    ) -> NodeMerge:
        """The merge of the updates of ``clients``.

        Args:
            server, submodels, rule, local_steps, staleness, steps: see the class.
            clients: [senders], client numbers in order of arrival; clients of a node are
                consecutive. In a star a client can occur more than once.
            stream: random stream of their uploads.
            client_submodels: submodel of each sender; None for the complete model of its node.
            tracking: [senders] boolean, clients that send tracking terms; None for all.
            node: [senders], node that each reports to; None for the one of its cell.
        """
        weights, device = server.weights, server.cloud["params"].device
        silent: dict[str, BoolArray] = {}
        if tracking is not None:
            silent = {p.name: ~tracking for p in rule.payloads if p.senders == "tracking"}
        node = weights.nodes_of(clients) if node is None else node
        transmission = Transmission(
            nodes=weights.nodes,
            node=node,
            clients=clients,
            weights=weights.in_means(clients, node),
            each=frozenset(payload.name for payload in rule.payloads if payload.each),
            units={payload.name: payload.unit_of(rule, local_steps) for payload in rule.payloads},
            stream=stream,
            silent=silent,
            pilot_symbols=server.pilot_symbols,
        )
        cover = None
        if client_submodels is None:
            exchanged = submodels.exchanged()
        else:
            cover = Cover.of(client_submodels, transmission, rule.payloads, device)
            transmission = replace(transmission, lengths=client_submodels.lengths)
            exchanged = cover.exchanged()
        if exchanged is not None:
            transmission = replace(transmission, exchanged=exchanged.to(device))
        return cls(server, submodels, rule, local_steps, steps, staleness, transmission, cover)

    def coverage(self) -> dict[str, float]:
        """Metrics of the coverage at nodes with a nonempty submodel; none without submodels."""
        if self.cover is None:
            return {}
        nonempty = torch.from_numpy(self.submodels.lengths > 0)
        return replace(self.cover, count=self.cover.count[nonempty]).metrics()

    def open(
        self,
        *names: Name,
        draw: ChannelDraw | None = None,
        beamformers: ComplexArray | None = None,
    ) -> Reception:
        """Start the reception of a transmission.

        Args:
            names: path of the transmission's random stream below that of the uploads.
            draw: channel draw; None if clients upload at different times.
            beamformers: [nodes, antennas], receive beamformers of the plan; None if there are none.
        """
        stream = self.transmission.stream.child(*names)
        return self.server.uplink.receive(
            replace(self.transmission, draw=draw, stream=stream, beamformers=beamformers)
        )

    def received(self, reception: Reception) -> Received:
        """Received payloads, with the facts about the senders that the algorithm needs."""
        return replace(
            reception.result(),
            local_steps=self.local_steps,
            steps=self.steps,
            share=self.server.share(self.rule, self.transmission),
            weights=self.transmission.weights.tolist(),
            staleness=self.staleness,
        )

    def _weighted(self, received: Received, factors: FloatArray) -> Received:
        """Divide by the senders' mean factor at each node, so that the weights sum to 1 again."""
        sent = self.transmission
        weights = sent.weights * factors
        sums = np.bincount(sent.node, weights, sent.nodes)
        scale = np.where(sums > 0, sums, 1.0)
        if (scale == 1).all():
            return received
        of_nodes = torch.from_numpy(scale).float()[:, None]
        of_senders = of_nodes[sent.node]
        return replace(
            received,
            mean={name: v / of_nodes.to(v.device) for name, v in received.mean.items()},
            each={name: v / of_senders.to(v.device) for name, v in received.each.items()},
        )

    def merged(
        self,
        reception: Reception,
        nodes: State,
        shards: Shards = ALONE,
        weights: FloatArray | None = None,
    ) -> tuple[State, Mapping[str, float]]:
        """Merge the updates that have been added to ``reception``.

        Args:
            reception: the reception that ``open`` has started.
            nodes: state of the nodes, as from ``Server.at_nodes``.
            shards: the processes that share the clients.
            weights: [senders], factors of the senders' payloads, by which they change their weights
                in the means; None for none.

        Returns:
            The next state of the nodes, and the metrics of the transmission.
        """
        params = nodes["params"]
        reception.finish(shards, [payload.name for payload in self.rule.payloads], params)
        received = self.received(reception)
        if weights is not None:
            received = self._weighted(received, weights)
        for value in (*received.mean.values(), *received.each.values()):
            self.submodels.silence(value)
        if self.cover is not None:
            received = self.cover.of_those_who_cover(received)
        merged = {
            # Reset the padding to 0: the algorithm may map zeros to other values.
            name: self.submodels.blank(value)
            for name, value in self.server.merge(self.rule, nodes, received).items()
        }
        idle = np.bincount(self.transmission.node, minlength=self.submodels.nodes) == 0
        if idle.any():  # nodes without senders do not change
            unchanged = torch.from_numpy(idle)[:, None].to(params.device)
            merged = {
                name: torch.where(unchanged, nodes[name], value) for name, value in merged.items()
            }
        return merged, received.metrics
