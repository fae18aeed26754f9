"""A merge of a task's model: its server receives updates of some clients, and merges them."""

from __future__ import annotations

from channels import ChannelDraw
from wirelessfl.rounds.cover import Cover
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders
from wirelessfl.submodels import ClientSubmodels, Submodels
from wirelessfl.training.shards import ALONE


class StarMerge:
    """One upload to the server of a star: ``reception`` receives updates, ``finish`` merges them.

    Args:
        server: the server that receives and merges.
        whole: the full model.
        senders: senders in order of arrival; a client can occur more than once.
        each: submodel of each sender; None for the full model.
        draw: channel draw if clients send simultaneously; None if each sends separately.
    """

    def __init__(
        self,
        server: Server,
        whole: Submodels,
        senders: Senders,
        each: ClientSubmodels | None,
        draw: ChannelDraw | None,
    ) -> None:
        self.server, self._whole, self._senders = server, whole, senders
        self._nodes = server.at_nodes(whole)
        like, upload = self._nodes["params"], server.upload(senders)
        self._cover = Cover.of(each, upload.air, senders.payloads, like)
        exchanged = None if self._cover is None else self._cover.exchanged()
        self._upload = upload.exchanging(
            None if exchanged is None else exchanged.to(like.device),
            None if each is None else each.lengths,
        )
        # The stream has the same name as in rounds.
        self.reception = self._upload.open("edge", 0, "air", draw=draw)

    def finish(self) -> dict[str, float]:
        """Merge the received updates, and return the metrics of this merge."""
        server, rule, cover = self.server, self._senders.rule, self._cover
        # Tasks run in one process.
        self.reception.finish(ALONE, self._senders.payloads, self._nodes["params"])
        received = self._upload.received(self.reception)
        metrics = dict(received.metrics)
        if cover is not None:
            received = cover.of_those_who_cover(received)
            metrics = cover.metrics() | metrics
        merged = server.merge(rule, self._nodes, received)
        server.combine(rule, merged, self._whole, [1.0])  # a star has one node
        return metrics
