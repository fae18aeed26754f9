"""The merge of received updates at the nodes, and the coverage of coordinates by submodels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from channels.arrays import BoolArray
from wirelessfl.air.uplinks import AirRound
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.server.upload import Senders, Upload
from wirelessfl.models.submodels import ClientSubmodels, Submodels
from wirelessfl.models.submodels.extract import covered_mean
from wirelessfl.training.payloads import Received
from wirelessfl.training.rules import State
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
        each: ClientSubmodels | None,
        air: AirRound,
        payloads: Sequence[str],
        like: torch.Tensor,
    ) -> Cover | None:
        """Coverage of an upload; None if clients train the complete model of their node.

        Args:
            each: submodel of each sender; None if all train the complete model of their node.
            air: the upload.
            payloads: names of all payloads.
            like: a tensor on the target device.
        """
        if each is None:
            return None
        common, count = each.cover(air.node, air.weights.tolist(), air.nodes)
        found = dict.fromkeys(payloads, common.to(like.device))
        for name in air.silent:
            weight, _ = each.cover(air.node, air.weights_of(name).tolist(), air.nodes)
            found[name] = weight.to(like.device)
        return cls(each, found, count)

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
        upload: upload of the clients.
        cover: coordinates that they cover; None if they train the complete model of their node.
        idle: [nodes] boolean, nodes without senders, which do not change.
    """

    server: Server
    submodels: Submodels
    upload: Upload
    cover: Cover | None
    idle: BoolArray

    @classmethod
    def of(
        cls,
        server: Server,
        submodels: Submodels,
        senders: Senders,
        each: ClientSubmodels | None,
        like: torch.Tensor,
    ) -> NodeMerge:
        """The merge of the updates of ``senders``.

        Args:
            server: the server whose nodes receive and merge.
            submodels: submodel of each node.
            senders: senders in order of arrival; in a star a client can occur more than once.
            each: submodel of each sender; None for the complete model of its node.
            like: a tensor on the device of the nodes.
        """
        upload = server.upload(senders)
        cover = Cover.of(each, upload.air, senders.payloads, like)
        exchanged = submodels.exchanged() if cover is None else cover.exchanged()
        upload = upload.exchanging(
            None if exchanged is None else exchanged.to(like.device),
            None if each is None else each.lengths,
        )
        idle = np.bincount(upload.air.node, minlength=submodels.nodes) == 0
        return cls(server, submodels, upload, cover, idle)

    def coverage(self) -> dict[str, float]:
        """Metrics of the coverage at nodes with a nonempty submodel; none without submodels."""
        if self.cover is None:
            return {}
        nonempty = torch.from_numpy(self.submodels.lengths > 0)
        return replace(self.cover, count=self.cover.count[nonempty]).metrics()

    def merged(
        self, reception: Reception, nodes: State, shards: Shards = ALONE
    ) -> tuple[State, Mapping[str, float]]:
        """Merge the updates that have been added to ``reception``.

        Args:
            reception: the reception that ``upload`` has opened.
            nodes: state of the nodes, as from ``Server.at_nodes``.
            shards: the processes that share the clients.

        Returns:
            The next state of the nodes, and the metrics of the upload.
        """
        reception.finish(shards, self.upload.senders.payloads, nodes["params"])
        received = self.upload.received(reception)
        for value in (*received.mean.values(), *received.each.values()):
            self.submodels.silence(value)
        if self.cover is not None:
            received = self.cover.of_those_who_cover(received)
        merged = {
            # Reset the padding to 0: the algorithm may map zeros to other values.
            name: self.submodels.blank(value)
            for name, value in self.server.merge(self.upload.senders.rule, nodes, received).items()
        }
        if self.idle.any():
            unchanged = torch.from_numpy(self.idle)[:, None].to(nodes["params"].device)
            merged = {
                name: torch.where(unchanged, nodes[name], value) for name, value in merged.items()
            }
        return merged, received.metrics
