"""A global round in progress: in each edge round clients train and send, and nodes merge."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.rounds.arrivals import Arrivals
from wirelessfl.rounds.compression import relative_error
from wirelessfl.rounds.job_groups import Work
from wirelessfl.rounds.local_training import LocalTraining
from wirelessfl.rounds.node_merge import NodeMerge
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.rounds.step_sizes import with_step_size
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.steps_done import StepsDone


class GlobalRound:
    """A global round at all nodes: ``train`` runs an edge round, ``finish`` merges at the cloud.

    Args:
        server: the server whose nodes receive and merge.
        settings: local steps and compression.
        plan: plan of the round.
        broadcast: the cloud's state when the round was issued.
        stream: random stream of the run.
        teacher: [P], teacher model that clients also receive; clients that train submodels evaluate
            the same submodel of it. None for no teacher.
    """

    def __init__(
        self,
        server: Server,
        settings: TrainingSettings,
        plan: Plan,
        broadcast: State,
        stream: Stream,
        teacher: Tensor | None = None,
    ) -> None:
        self.server, self.settings, self.plan = server, settings, plan
        submodels = plan.submodels
        self.rule = with_step_size(server.algorithm, plan.lr_share)
        self.stream = stream.child("round", plan.round)
        self.nodes = server.at_nodes(submodels, broadcast)
        self._all = self._merge(np.arange(len(plan.clients)))
        self._teacher = {} if teacher is None else {"teacher": submodels.gather(teacher)}
        self._metrics: list[Mapping[str, float]] = []
        self._names: list[str] = []

    def metrics(self) -> dict[str, float]:
        """Metrics of the round, averaged over its edge rounds.

        Those of uploads are averaged over the edge rounds in which at least one update arrives.
        """
        return self._all.coverage() | {name: self._mean(name) for name in self._names}

    def _mean(self, name: str) -> float:
        """Mean over the edge rounds that have the metric; NaN if none has."""
        found = [metrics[name] for metrics in self._metrics if name in metrics]
        return sum(found) / len(found) if found else float("nan")

    def train(
        self,
        number: int,
        local: LocalTraining,
        steps_done: StepsDone,
        title: str = "round",
        penalties: tuple[Penalty, ...] = (),
    ) -> None:
        """Run edge round ``number``: the clients of all nodes train, and each node merges.

        Clients whose updates do not arrive train all the same; the nodes merge the others.

        Args:
            number: number of the edge round, from 0.
            local: local training of the clients.
            steps_done: number of local steps that each client has done; updated here.
            title: name of the round in messages.
            penalties: additional loss terms, besides those of the algorithm.
        """
        plan, merge = self.plan, self._all
        arrived, tracking = plan.arrived(number), plan.tracking
        if arrived is not None:
            merge = self._merge(np.flatnonzero(arrived))
            # The server acknowledges changes of tracking terms: otherwise its mean of them would
            # never again be that of the clients' own.
            tracking = tracking & arrived
        reception = merge.upload.open(
            "edge", number, "air", draw=plan.draw(number), beamformers=plan.beamformers(number)
        )
        receiver = reception if arrived is None else Arrivals(reception, arrived)
        work = Work(
            plan.clients,
            tracking,
            plan.node,
            plan.submodels,
            plan.client_submodels,
            steps_done.of(plan.clients),
        )
        servers, error = self._to_clients(number)
        label = f"{title} {plan.round + 1}, edge round {number + 1}"
        for rows, payloads in local.train(
            self.rule, work, servers, self.server.states, label, penalties
        ):
            receiver.add(rows, payloads)
        steps_done.add(plan.clients, local.steps.at(plan.clients))
        self.nodes, found = merge.merged(reception, self.nodes, local.shards)
        self._names = [*found, *error]
        heard = found if len(merge.upload.senders.clients) else {}
        self._metrics.append({**heard, **error})

    def finish(self) -> None:
        """Merge the states of the nodes at the cloud."""
        weights = self.server.weights.at_nodes(self.plan.clients)
        self.server.combine(self.rule, self.nodes, self.plan.submodels, weights)

    def _to_clients(self, number: int) -> tuple[State, dict[str, float]]:
        """States that the clients of each node receive, and the compression error w_2."""
        compression = self.settings.compression
        servers = {**self.rule.outgoing(self.nodes), **self._teacher}
        if compression is None:
            return servers, {}
        stream = self.stream.child("edge", number, "compression")
        own, submodels = servers["params"], self.plan.submodels
        before = submodels.silence(own.clone())
        after = compression.compress_padded(before, submodels.lengths, submodels.spec, stream)
        nonempty = torch.from_numpy(submodels.lengths > 0).to(before.device)
        error = relative_error(before[nonempty], after[nonempty])
        return servers | {"params": submodels.restore(after, own)}, {"compression_error": error}

    def _merge(self, rows: IntArray) -> NodeMerge:
        """The merge of the updates of some of the plan's clients."""
        plan, each = self.plan, self.plan.client_submodels
        if each is not None and len(rows) != len(plan.clients):
            each = each.of_rows(rows)
        senders = Senders(
            plan.clients[rows],
            self.rule,
            self.settings.steps.mean(plan.clients[rows]),
            self.stream,
            plan.tracking[rows],
        )
        return NodeMerge.of(self.server, plan.submodels, senders, each, self.nodes["params"])
