"""The path of received updates to the merge of the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from channels.arrays import BoolArray
from wirelessfl.rounds.cover import Cover
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders, Upload
from wirelessfl.submodels import ClientSubmodels, Submodels
from wirelessfl.training.cohort import State
from wirelessfl.training.shards import ALONE, Shards
from wirelessfl.uplinks.uplink import Reception


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
