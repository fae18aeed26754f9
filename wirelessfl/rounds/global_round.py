"""A global round in progress: in each edge round clients train and send, and nodes merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from channels.streams import Stream
from wirelessfl.rounds.arrivals import Arrivals
from wirelessfl.rounds.compression import relative_error
from wirelessfl.rounds.cover import Cover
from wirelessfl.rounds.local_training import LocalTraining
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.step_sizes import with_step_size
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders, Upload
from wirelessfl.training.cohort import State
from wirelessfl.training.payloads import Received
from wirelessfl.uplinks.base import Reception


class GlobalRound:
    """A global round at all nodes: ``train`` runs an edge round, ``finish`` merges at the cloud.

    Args:
        server: the server whose nodes receive and merge.
        local: local training of the clients.
        plan: plan of the round.
        broadcast: the cloud's state when the round was issued.
        stream: random stream of the run.
        teacher: [P], teacher model that clients also receive; clients that train submodels evaluate
            the same submodel of it. None for no teacher.
    """

    def __init__(
        self,
        server: Server,
        local: LocalTraining,
        plan: Plan,
        broadcast: State,
        stream: Stream,
        teacher: Tensor | None = None,
    ) -> None:
        self.server, self.local, self.plan = server, local, plan
        submodels = plan.submodels
        self.rule = with_step_size(server.algorithm, plan.lr_share)
        self.stream = stream.child("round", plan.round)
        self.nodes = server.at_nodes(submodels, broadcast)
        self._all = self._sent(np.arange(len(plan.clients)))
        # Errors and coverage are reported for nodes with a nonempty submodel.
        self._nonempty = torch.from_numpy(submodels.lengths > 0)
        self._teacher = {} if teacher is None else {"teacher": submodels.gather(teacher)}
        self._metrics: list[Mapping[str, float]] = []
        self._names: list[str] = []

    def metrics(self) -> dict[str, float]:
        """Metrics of the round, averaged over its edge rounds.

        Those of uploads are averaged over the edge rounds in which at least one update arrives.
        """
        covering: dict[str, float] = {}
        cover = self._all.cover
        if cover is not None:
            covering = replace(cover, count=cover.count[self._nonempty]).metrics()
        return covering | {name: self._mean(name) for name in self._names}

    def _mean(self, name: str) -> float:
        """Mean over the edge rounds that have the metric; NaN if none has."""
        found = [metrics[name] for metrics in self._metrics if name in metrics]
        return sum(found) / len(found) if found else float("nan")

    def train(self, number: int) -> None:
        """Run edge round ``number``: the clients of all nodes train, and each node merges.

        Clients whose updates do not arrive train all the same; the nodes merge the others.
        """
        plan, sent = self.plan, self._all
        arrived = plan.arrived(number)
        if arrived is not None:
            sent = self._sent(np.flatnonzero(arrived))
        reception = sent.upload.open(
            "edge", number, "air", draw=plan.draw(number), beamformers=plan.beamformers(number)
        )
        servers, error = self._to_clients(number)
        self.local.edge_round(
            self.rule,
            plan,
            number,
            servers,
            reception if arrived is None else Arrivals(reception, arrived),
        )
        reception.finish(self.local.shards, sent.upload.senders.payloads, self.nodes["params"])
        received = self._received(reception, sent)
        merged = {
            # Reset the padding to 0: the algorithm may map zeros to other values.
            name: plan.submodels.blank(value)
            for name, value in self.server.merge(self.rule, self.nodes, received).items()
        }
        idle = sent.idle
        self.nodes = _kept_where(idle, self.nodes, merged) if idle.any() else merged
        self._names = [*received.metrics, *error]
        heard = received.metrics if len(received.clients) else {}
        self._metrics.append({**heard, **error})

    def finish(self) -> None:
        """Merge the states of the nodes at the cloud."""
        weights = self.server.weights.at_nodes(self.plan.clients)
        self.server.combine(self.rule, self.nodes, self.plan.submodels, weights)

    def _to_clients(self, number: int) -> tuple[State, dict[str, float]]:
        """States that the clients of each node receive, and the compression error w_2."""
        compression = self.local.settings.compression
        servers = {**self.rule.outgoing(self.nodes), **self._teacher}
        if compression is None:
            return servers, {}
        stream = self.stream.child("edge", number, "compression")
        own, submodels = servers["params"], self.plan.submodels
        before = submodels.silence(own.clone())
        after = compression.compress_padded(before, submodels.lengths, submodels.spec, stream)
        nonempty = self._nonempty.to(before.device)
        error = relative_error(before[nonempty], after[nonempty])
        return servers | {"params": submodels.restore(after, own)}, {"compression_error": error}

    def _sent(self, rows: IntArray) -> _Sent:
        """The upload of some of the plan's clients."""
        plan, like = self.plan, self.nodes["params"]
        whole = len(rows) == len(plan.clients)
        each = plan.client_submodels
        if each is not None and not whole:
            each = each.of_rows(rows)
        senders = Senders(
            plan.clients[rows],
            self.rule,
            self.local.settings.steps.mean(plan.clients[rows]),
            self.stream,
            plan.tracking[rows],
        )
        upload = self.server.upload(senders)
        cover = Cover.of(each, upload.air, senders.payloads, like)
        exchanged = plan.submodels.exchanged() if cover is None else cover.exchanged()
        return _Sent(
            upload.exchanging(
                None if exchanged is None else exchanged.to(like.device),
                None if each is None else each.lengths,
            ),
            cover,
            np.bincount(plan.node[rows], minlength=plan.submodels.nodes) == 0,
        )

    def _received(self, reception: Reception, sent: _Sent) -> Received:
        """Received payloads: means over the covering clients; 0 at elements not exchanged."""
        received = sent.upload.received(reception)
        for value in (*received.mean.values(), *received.each.values()):
            self.plan.submodels.silence(value)
        return received if sent.cover is None else sent.cover.of_those_who_cover(received)


@dataclass(frozen=True, eq=False)
class _Sent:
    """The updates that cross the air in an edge round.

    Args:
        upload: upload of the clients that are heard.
        cover: coordinates that they cover; None if they train the complete model of their node.
        idle: [nodes] boolean, nodes that hear no client.
    """

    upload: Upload
    cover: Cover | None
    idle: BoolArray


def _kept_where(idle: BoolArray, before: State, after: State) -> State:
    """Return ``before`` at idle nodes and ``after`` at the others, [nodes, P_max] by name."""
    unchanged = torch.from_numpy(idle)[:, None].to(before["params"].device)
    return {name: torch.where(unchanged, before[name], value) for name, value in after.items()}
