"""A global round in progress: in each edge round clients train and send, and nodes merge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.compression import Compression, relative_errors
from wirelessfl.air.plan import RoundWork
from wirelessfl.air.uplinks.uplink import Reception
from wirelessfl.algorithms.step_sizes import with_step_size
from wirelessfl.base.errors import TrainingError
from wirelessfl.engine.rounds.local_training import LocalTraining, LocalWork
from wirelessfl.engine.server.merge import NodeMerge
from wirelessfl.engine.server.server import Server
from wirelessfl.models.submodels import Submodels
from wirelessfl.training.cohort import Penalty
from wirelessfl.training.executor import REPORTED, WEIGHT
from wirelessfl.training.rules import State
from wirelessfl.training.steps import StepCounts, StepsDone
from wirelessfl.training.workers.shards import ALONE, Shards

TRAIN_LOSS = f"{REPORTED}train_loss"
"""The loss among the numbers that clients report."""


class GlobalRound:
    """A global round at all nodes or at some; ``train_edge_round`` runs its edge rounds.

    In a star, a common round of a task is one edge round, and so is a merge of requests, whose
    updates have been trained before. ``finish`` merges at the cloud.

    Args:
        server: the server whose nodes receive and merge.
        work: what is trained and sent.
        broadcast: the cloud's state when the round was issued.
        stream: random stream of the run, or of the task.
        steps: local steps of each client.
        compression: compression of the model on the downlink; None for no compression.
        teacher: [P], teacher model that clients also receive; clients that train submodels evaluate
            the same submodel of it. None for no teacher.
    """

    def __init__(
        self,
        server: Server,
        work: RoundWork,
        broadcast: State,
        stream: Stream,
        steps: StepCounts,
        compression: Compression | None = None,
        teacher: Tensor | None = None,
    ) -> None:
        self.server, self.planned, self.steps, self.compression = server, work, steps, compression
        self.rule = with_step_size(server.rule, work.lr_share)
        self.stream = stream.child("round", work.round)
        self.nodes = server.at_nodes(work.submodels, broadcast)
        self._all = self._merge = self._merge_of(np.arange(len(work.clients)))
        self._reception: Reception
        self._reported: dict[str, FloatArray] = {}
        self._arrived: BoolArray | None = None
        self.losses: FloatArray | None = None
        """[senders], the losses that clients have reported in the last edge round whose update of
        theirs arrived, NaN for others; None if clients report none."""
        self._teacher = {} if teacher is None else {"teacher": work.submodels.gather(teacher)}
        self._metrics: list[Mapping[str, float]] = []
        self._names: list[str] = []

    def metrics(self) -> dict[str, float]:
        """Metrics of the round, averaged over its edge rounds.

        Those of uploads are averaged over the edge rounds in which at least one update arrives.
        """
        return self._all.coverage() | {name: self._mean(name) for name in self._names}

    def _mean(self, name: str) -> float:
        """Mean over the edge rounds that have the metric; NaN if none has."""
        values = [metrics[name] for metrics in self._metrics if name in metrics]
        return sum(values) / len(values) if values else float("nan")

    def open(self, number: int) -> None:
        """Begin edge round ``number``, from 0: the nodes open their receptions.

        Clients whose updates do not arrive train all the same; the nodes merge the others.
        """
        planned, arrived = self.planned, self.planned.arrived(number)
        self._reported = {}
        self._merge = self._all if arrived is None else self._merge_of(np.flatnonzero(arrived))
        self._arrived, draw = arrived, planned.draw(number)
        self._reception = self._merge.open(
            "edge", number, "air", draw=draw, beamformers=planned.beamformers(number)
        )

    def sent(self, number: int) -> tuple[State, Mapping[str, float]]:
        """What the nodes send in edge round ``number``.

        Returns:
            Tensors [nodes, P_max] by name, and the compression error by name of its field of rows,
            empty without compression.
        """
        return compressed(
            {**self.rule.outgoing(self.nodes), **self._teacher},
            self.compression,
            self.planned.submodels,
            self.stream.child("edge", number),
        )

    def local_work(self, steps_done: StepsDone) -> LocalWork:
        """The clients to train in this edge round."""
        planned, arrived = self.planned, self._arrived
        # The server acknowledges changes of tracking terms: otherwise its mean of them would never
        # again be that of the clients' own.
        return LocalWork(
            planned.clients,
            planned.tracking if arrived is None else planned.tracking & arrived,
            planned.node,
            planned.submodels,
            planned.client_submodels,
            steps_done.of(planned.clients),
            np.full(len(planned.clients), planned.round),
            planned.fresh,
        )

    def add(self, part: slice | IntArray, payloads: State) -> None:
        """Receive what the clients in ``part`` send, if it arrives.

        Args:
            part: the clients.
            payloads: their payloads [clients, elements], and the numbers [clients, 1] that they
                report.
        """
        for name in [name for name in payloads if name.startswith(REPORTED)]:
            numbers = self._reported.setdefault(name, np.zeros(len(self.planned.clients)))
            numbers[part] = payloads[name][:, 0].cpu().numpy()
        payloads = {n: value for n, value in payloads.items() if n not in self._reported}
        if self._arrived is None:
            self._reception.add(part, payloads)
            return
        arrived = self._arrived[part]
        if arrived.any():
            rows = np.flatnonzero(arrived)
            places = (np.cumsum(self._arrived) - 1)[part][arrived]
            self._reception.add(places, {name: value[rows] for name, value in payloads.items()})

    def end(
        self,
        error: Mapping[str, float] = MappingProxyType({}),
        shards: Shards = ALONE,
        reports: Sequence[str] = (),
    ) -> None:
        """End this edge round: each node merges what it has received.

        Args:
            error: compression error of what the nodes have sent, see ``sent``.
            shards: the processes that share the clients.
            reports: numbers that the clients of all processes report.
        """
        for name in reports if shards.count > 1 else ():
            numbers = self._reported.setdefault(name, np.zeros(len(self.planned.clients)))
            shards.sum(torch.from_numpy(numbers))
        heard = slice(None) if self._arrived is None else self._arrived
        reported = {name: numbers[heard] for name, numbers in self._reported.items()}
        weights = reported.pop(WEIGHT, None)
        self.nodes, metrics = self._merge.merged(self._reception, self.nodes, shards, weights)
        del self._reception
        shares = self._merge.transmission.weights * (1.0 if weights is None else weights)
        if TRAIN_LOSS in reported:
            if self.losses is None:
                self.losses = np.full(len(self.planned.clients), np.nan)
            self.losses[heard] = reported[TRAIN_LOSS]
        means = _means(reported, shares)
        for name in means.keys() & {*metrics, *error}:
            raise TrainingError(
                f"clients report the metric {name!r}, and so does the uplink: reply with another "
                "name."
            )
        metrics = {**metrics, **means}
        self._names = [*metrics, *error]
        received = metrics if len(self._merge.transmission.clients) else {}
        self._metrics.append({**received, **error})

    def finish(self, weights: Sequence[float] | None = None) -> None:
        """Merge the states of the nodes at the cloud.

        Args:
            weights: [nodes], weights of the nodes; None for those of their clients.
        """
        if weights is None:
            weights = self.server.weights.at_nodes(self.planned.clients, self.planned.node)
        self.server.combine(self.nodes, self.planned.submodels, weights)

    def _merge_of(self, rows: IntArray) -> NodeMerge:
        """The merge of the updates of some of the participating clients."""
        planned, submodels = self.planned, self.planned.client_submodels
        if submodels is not None and len(rows) != len(planned.clients):
            submodels = submodels.of_rows(rows)
        clients, staleness = planned.clients[rows], planned.staleness
        return NodeMerge.of(
            self.server,
            planned.submodels,
            clients,
            self.rule,
            self.steps.mean(clients),
            self.stream,
            client_submodels=submodels,
            tracking=planned.tracking[rows],
            node=planned.node[rows],
            staleness=None if staleness is None else staleness[rows],
            steps=np.broadcast_to(self.steps.at(clients), clients.shape).tolist(),
        )


def train_edge_round(
    rounds: Sequence[GlobalRound],
    number: int,
    local: LocalTraining,
    steps_done: StepsDone,
    label: str,
    penalties: tuple[Penalty, ...] = (),
) -> None:
    """Run edge round ``number`` of global rounds: clients train together, and each node merges.

    Args:
        rounds: rounds with the same step size, each at nodes of its own.
        number: number of the edge round, from 0.
        local: local training of the clients.
        steps_done: number of local steps that each client has done; updated here.
        label: description of the work, for messages.
        penalties: additional loss terms, besides those of the algorithm.
    """
    for global_round in rounds:
        global_round.open(number)
    works = [global_round.local_work(steps_done) for global_round in rounds]
    sent = [global_round.sent(number) for global_round in rounds]
    work, first = LocalWork.joined(works), rounds[0]
    servers = _joined(works, [tensors for tensors, _ in sent])
    starts = np.cumsum([0, *(len(part.clients) for part in works)])
    for rows, payloads in local.train(
        first.rule, work, servers, first.server.states, label, penalties
    ):
        for global_round, start, end in zip(rounds, starts, starts[1:], strict=False):
            here = np.flatnonzero((rows >= start) & (rows < end))
            if len(here) == len(rows):
                global_round.add(rows - start, payloads)
            elif len(here):
                some = {name: value[here] for name, value in payloads.items()}
                global_round.add(rows[here] - start, some)
    steps_done.add(work.clients, local.steps.at(work.clients))
    for global_round, (_, error) in zip(rounds, sent, strict=True):
        global_round.end(error, local.shards, local.reports)


def _means(reported: Mapping[str, FloatArray], weights: FloatArray) -> dict[str, float]:
    """Weighted means of the numbers [senders] that clients report; NaN if no weight is left."""
    total = weights.sum()
    return {
        name.removeprefix(REPORTED): float(weights @ numbers / total) if total else math.nan
        for name, numbers in reported.items()
    }


def _joined(works: Sequence[LocalWork], sent: Sequence[State]) -> State:
    """Tensors that the clients of all nodes receive, [nodes, P_max] by name."""
    if len(sent) == 1:
        return sent[0]
    joined = {name: value.clone() for name, value in sent[0].items()}
    for work, servers in zip(works[1:], sent[1:], strict=True):
        nodes = np.unique(work.node)
        for name, value in servers.items():
            joined[name][nodes] = value[nodes]
    return joined


def compressed(
    servers: State, compression: Compression | None, submodels: Submodels, stream: Stream
) -> tuple[State, dict[str, float]]:
    """What clients receive, and the compression error w_2 as a field of rows.

    Only the model is compressed; other tensors, such as control variates, are sent as they are.

    Args:
        servers: what each node sends, [nodes, P_max] by name.
        compression: compression of the model; None for no compression.
        submodels: submodels of the nodes.
        stream: random stream of the edge round, or of the model's version.

    Returns:
        The tensors, and ``compression_error``, the maximum over the nodes; no error without
        compression.
    """
    if compression is None:
        return servers, {}
    params = servers["params"]
    before = submodels.silence(params.clone())
    # The first node's stream has no number, as that of a star.
    streams = [stream.child("compression", *([n] if n else [])) for n in range(len(before))]
    after = compression.compress(before, submodels.lengths, submodels.spec, streams)
    nonempty = torch.from_numpy(submodels.lengths > 0).to(before.device)
    error = float(relative_errors(before[nonempty], after[nonempty]).max())
    return servers | {"params": submodels.restore(after, params)}, {"compression_error": error}
