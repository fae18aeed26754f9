"""A global round in progress: in each edge round clients train and send, and nodes merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.rounds.arrivals import Arrivals
from wirelessfl.rounds.downlink import compressed
from wirelessfl.rounds.job_groups import Work
from wirelessfl.rounds.local_training import LocalTraining
from wirelessfl.rounds.node_merge import NodeMerge
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.step_sizes import with_step_size
from wirelessfl.rounds.training_settings import TrainingSettings
from wirelessfl.server.server import Server
from wirelessfl.server.upload import Senders
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.shards import Shards
from wirelessfl.training.steps_done import StepsDone
from wirelessfl.uplinks.uplink import Reception


@dataclass(frozen=True, eq=False)
class EdgeRound:
    """An edge round in progress.

    Args:
        merge: the merge of the updates that arrive.
        reception: their reception.
        receiver: takes the payloads of all clients, and passes on those that arrive.
        work: the clients.
        servers: tensors that they receive, [nodes, P_max] by name.
        error: the compression error, by name of its field of rows; empty without compression.
    """

    merge: NodeMerge
    reception: Reception
    receiver: Reception | Arrivals
    work: Work
    servers: State
    error: Mapping[str, float]


class GlobalRound:
    """A global round at all nodes or at some; ``train_edge_round`` runs its edge rounds.

    ``finish`` merges at the cloud.

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
        self.rule = with_step_size(server.rule, plan.lr_share)
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

    def begin(self, number: int, steps_done: StepsDone) -> EdgeRound:
        """Begin edge round ``number``, from 0: the nodes send, and open their receptions.

        Clients whose updates do not arrive train all the same; the nodes merge the others.
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
        servers, error = compressed(
            {**self.rule.outgoing(self.nodes), **self._teacher},
            self.settings.compression,
            plan.submodels,
            self.stream.child("edge", number),
        )
        work = Work(
            plan.clients,
            tracking,
            plan.node,
            plan.submodels,
            plan.client_submodels,
            steps_done.of(plan.clients),
        )
        receiver = reception if arrived is None else Arrivals(reception, arrived)
        return EdgeRound(merge, reception, receiver, work, servers, error)

    def end(self, edge_round: EdgeRound, shards: Shards) -> None:
        """End an edge round: each node merges what it has received."""
        merge, error = edge_round.merge, edge_round.error
        self.nodes, found = merge.merged(edge_round.reception, self.nodes, shards)
        self._names = [*found, *error]
        heard = found if len(merge.upload.senders.clients) else {}
        self._metrics.append({**heard, **error})

    def finish(self) -> None:
        """Merge the states of the nodes at the cloud."""
        weights = self.server.weights.at_nodes(self.plan.clients)
        self.server.combine(self.nodes, self.plan.submodels, weights)

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


def train_edge_round(
    rounds: Sequence[GlobalRound],
    number: int,
    local: LocalTraining,
    steps_done: StepsDone,
    title: str = "round",
    penalties: tuple[Penalty, ...] = (),
) -> None:
    """Run edge round ``number`` of global rounds: clients train together, and each node merges.

    Args:
        rounds: rounds with the same step size, each at nodes of its own.
        number: number of the edge round, from 0.
        local: local training of the clients.
        steps_done: number of local steps that each client has done; updated here.
        title: name of the rounds in messages.
        penalties: additional loss terms, besides those of the algorithm.
    """
    begun = [each.begin(number, steps_done) for each in rounds]
    work = Work.joined([each.work for each in begun])
    numbers = ", ".join(str(n + 1) for n in sorted({each.plan.round for each in rounds}))
    label = f"{title} {numbers}, edge round {number + 1}"
    _train(rounds[0], begun, work, local, label, penalties)
    steps_done.add(work.clients, local.steps.at(work.clients))
    for round_, edge_round in zip(rounds, begun, strict=True):
        round_.end(edge_round, local.shards)


def _train(
    first: GlobalRound,
    begun: Sequence[EdgeRound],
    work: Work,
    local: LocalTraining,
    label: str,
    penalties: tuple[Penalty, ...],
) -> None:
    """Train the clients of all edge rounds, and pass their payloads on; keeps no payloads."""
    servers = _joined([(each.work, each.servers) for each in begun])
    starts = np.cumsum([0, *(len(each.work.clients) for each in begun)])
    for rows, payloads in local.train(
        first.rule, work, servers, first.server.states, label, penalties
    ):
        for each, start, end in zip(begun, starts, starts[1:], strict=False):
            here = np.flatnonzero((rows >= start) & (rows < end))
            if len(here) == len(rows):
                each.receiver.add(rows - start, payloads)
            elif len(here):
                some = {name: value[here] for name, value in payloads.items()}
                each.receiver.add(rows[here] - start, some)


def _joined(sent: Sequence[tuple[Work, State]]) -> State:
    """Tensors that the clients of all nodes receive, [nodes, P_max] by name."""
    _, first = sent[0]
    if len(sent) == 1:
        return first
    joined = {name: value.clone() for name, value in first.items()}
    for work, servers in sent[1:]:
        nodes = np.unique(work.node)
        for name, value in servers.items():
            joined[name][nodes] = value[nodes]
    return joined
