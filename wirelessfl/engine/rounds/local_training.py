"""Local training of clients in groups, one per training job: those of rounds and of requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from channels.arrays import BoolArray, IntArray
from channels.streams import Stream
from wirelessfl.air.compression import RESIDUAL, Compression, relative_errors
from wirelessfl.base.errors import TrainingError
from wirelessfl.engine.server.client_states import ClientStates
from wirelessfl.models.submodels import ClientSubmodels, Submodels
from wirelessfl.models.submodels.client_submodels import SOME
from wirelessfl.training.cohort import Penalty
from wirelessfl.training.executor import REPORTED, Chunk, Executor, Job
from wirelessfl.training.rules import ClientRule, State
from wirelessfl.training.steps import StepCounts
from wirelessfl.training.workers.shards import ALONE, Shards

UPLINK_ERROR = "uplink_error"
"""Field of rows: relative error of what clients send."""


@dataclass(frozen=True, eq=False)
class LocalWork:
    """Clients to train, from a planned round or from requests.

    Args:
        clients: [rows], client numbers.
        tracking: [rows] boolean, clients that send tracking terms.
        node: [rows], node that each client reports to, or index of the model that it receives.
        submodels: submodel of each node.
        client_submodels: submodel of each client; None if all train the submodel of their node.
        first_steps: [rows], number of earlier local steps of each client.
        fresh: [rows] boolean, clients that have never trained before; None for those without
            earlier local steps.
        rounds: [rows], number of the round from 0, or version of the model that a client receives.
    """

    clients: IntArray
    tracking: BoolArray
    node: IntArray
    submodels: Submodels
    client_submodels: ClientSubmodels | None
    first_steps: IntArray
    rounds: IntArray
    fresh: BoolArray | None = None

    @classmethod
    def joined(cls, works: Sequence[LocalWork]) -> LocalWork:
        """The clients of several rounds of the same model, each at nodes of its own.

        The submodels of a round are empty at the nodes of the others.
        """
        first = works[0]
        if len(works) == 1:
            return first
        submodels = [work.submodels for work in works]
        places = [part.places for part in submodels if part.places is not None]
        parts = [work.client_submodels for work in works if work.client_submodels is not None]
        chosen = [neurons for part in parts for neurons in part.chosen]
        return cls(
            np.concatenate([work.clients for work in works]),
            np.concatenate([work.tracking for work in works]),
            np.concatenate([work.node for work in works]),
            replace(
                submodels[0],
                lengths=np.maximum.reduce([part.lengths for part in submodels]),
                places=np.maximum.reduce(places) if places else None,
            ),
            replace(parts[0], chosen=chosen) if parts else None,
            np.concatenate([work.first_steps for work in works]),
            np.concatenate([work.rounds for work in works]),
        )


@dataclass(frozen=True, eq=False)
class JobGroup:
    """Clients that train in one job.

    Args:
        rows: indices of the clients in the work.
        submodels: submodels that they train.
        node: [rows], index in ``submodels`` of each client.
        servers: tensors sent to them, by name, one row per submodel.
        apart: whether each client has its own submodel; otherwise it trains its node's submodel.
    """

    rows: IntArray
    submodels: Submodels
    node: IntArray
    servers: State
    apart: bool = False

    def at_nodes(self, payloads: dict[str, Tensor], part: slice) -> dict[str, Tensor]:
        """Payloads of the clients in ``part``, in the coordinates of their nodes."""
        if not self.apart:
            return payloads
        return {name: self.submodels.spread(value, part) for name, value in payloads.items()}


def job_groups(
    work: LocalWork, servers: State, padding: float, chunk: int, steps: IntArray | None = None
) -> Iterator[JobGroup]:
    """Group the clients of ``work`` into jobs; those of a job are in the order of their steps.

    Args:
        work: clients and their submodels.
        servers: tensors that the nodes send, [nodes, P_max] by name.
        padding: largest padded fraction of a mixed-width batch.
        chunk: number of clients that an executor trains concurrently.
        steps: number of local steps of each client; None if all have the same.
    """
    all_rows, of_clients = np.arange(len(work.clients)), work.client_submodels

    def ordered(rows: IntArray) -> IntArray:
        return rows if steps is None else rows[np.argsort(steps[rows], kind="stable")]

    if of_clients is None:
        rows = ordered(all_rows)
        node = work.node if steps is None else work.node[rows]
        yield JobGroup(rows, work.submodels, node, servers)
        return
    for batch in of_clients.batches(padding, max(SOME, chunk)):
        rows = ordered(batch)
        submodels, node = of_clients.of(rows), work.node[rows]
        taken = {name: submodels.gather_from(value, node) for name, value in servers.items()}
        yield JobGroup(rows, submodels, np.arange(len(rows)), taken, apart=True)


@dataclass(frozen=True)
class SentChanges:
    """Compression of the changes of a model that clients send, their first payload.

    With error feedback (Seide et al., Interspeech 2014), a client compresses its change plus what
    its earlier uploads left out, and keeps what this one leaves out: the ``RESIDUAL`` of its state.
    An upload that is lost on the way is not sent again.

    Args:
        method: the compression.
        feedback: whether there is error feedback.
        stream: random stream; draws of a client depend on its earlier local steps alone.
    """

    method: Compression
    feedback: bool
    stream: Stream

    def sent(
        self, change: Tensor, residual: Tensor | None, job: Job, group: JobGroup, part: slice
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What the clients in ``part`` send and leave out, and the relative error of each.

        Args:
            change: [clients, P_max], change of the model of each client.
            residual: what earlier uploads left out, in the same shape; None without feedback.
            job: local work of the clients.
            group: their submodels.
            part: the clients.
        """
        submodels, node = group.submodels, group.node[part]
        exchanged = submodels.exchanged()
        before = change if residual is None else change + residual
        if exchanged is not None:
            silent = ~exchanged[torch.from_numpy(node.copy())].to(change.device)
            before = before.masked_fill(silent, 0.0)
        trainings = zip(job.clients[part].tolist(), job.first_steps[part].tolist(), strict=True)
        streams = [self.stream.child(client, step) for client, step in trainings]
        after = self.method.compress(before, submodels.lengths[node], submodels.spec, streams)
        after = after if exchanged is None else after.masked_fill(silent, 0.0)
        return after, before - after, relative_errors(before, after)


@dataclass(frozen=True, eq=False)
class LocalTraining:
    """Local training of the clients of one model.

    Args:
        executor: where local updates are computed.
        steps: local steps of each client, per edge round or request.
        padding: largest padded fraction of a mixed-width batch.
        shards: the processes that share the clients.
        compression: how changes of the model are compressed; None for no compression.
    """

    executor: Executor
    steps: StepCounts
    padding: float = 0.0
    shards: Shards = ALONE
    compression: SentChanges | None = None

    def kept(self, rule: ClientRule) -> tuple[str, ...]:
        """Names of the vectors that clients keep: those of the rule, and of error feedback."""
        feedback = self.compression is not None and self.compression.feedback
        return (*rule.client_state, RESIDUAL) if feedback else tuple(rule.client_state)

    @property
    def reports(self) -> tuple[str, ...]:
        """Numbers that clients report because their changes are compressed."""
        return () if self.compression is None else (REPORTED + UPLINK_ERROR,)

    def train(
        self,
        rule: ClientRule,
        work: LocalWork,
        servers: State,
        states: ClientStates,
        label: str,
        penalties: tuple[Penalty, ...] = (),
    ) -> Iterator[tuple[IntArray, State]]:
        """Train clients chunk by chunk, and store their new states.

        Args:
            rule: client rule, with the step size of this work.
            work: the clients.
            servers: tensors that they receive, [nodes, P_max] by name.
            states: states that clients keep.
            label: description of the work, for messages.
            penalties: additional loss terms, besides the cross-entropy and the rule's own terms.

        Yields:
            Rows of ``work`` and their payloads [rows, P_max] by name, which are valid until the
            next ones are requested, with the numbers that clients report. If processes share the
            clients, the rows of this process.
        """
        steps, shards = self.steps.some(work.clients), self.shards
        for group in job_groups(work, servers, self.padding, self.executor.chunk, steps):
            job = self._job(rule, work, group, states, label, penalties)
            count, like = len(job.clients), group.servers["params"]
            mine = shards.share(count)
            states_of: dict[str, list[Tensor]] = {name: [] for name in self.kept(rule)}
            for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
                part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
                chunk = self._compressed(chunk, job, group, part, states)
                if shards.count == 1:
                    _keep(states, group, job, part, chunk.kept)
                else:
                    for name, value in chunk.kept.items():
                        states_of[name].append(value.clone())
                yield group.rows[part], group.at_nodes(chunk.payloads, part) | chunk.reported
            if shards.count > 1:
                kept = {
                    name: shards.gather(torch.cat([like[:0], *rows]), count)
                    for name, rows in states_of.items()
                }
                _keep(states, group, job, slice(None), kept)

    def _compressed(
        self, chunk: Chunk, job: Job, group: JobGroup, part: slice, states: ClientStates
    ) -> Chunk:
        """What clients send and keep, of what their training returned."""
        compression = self.compression
        if compression is None:
            return chunk
        name, residual = job.rule.payloads[0].name, None
        if REPORTED + UPLINK_ERROR in chunk.reported:
            raise TrainingError(
                f"clients report the metric {UPLINK_ERROR!r}, and so does uplink_compression: "
                "reply with another name."
            )
        change = chunk.payloads[name]
        if compression.feedback:
            clients, node = job.clients[part], group.node[part]
            residual = states.gather((RESIDUAL,), group.submodels, clients, node, change)[RESIDUAL]
        after, left, error = compression.sent(change, residual, job, group, part)
        return replace(
            chunk,
            payloads={**chunk.payloads, name: after},
            kept={**chunk.kept, RESIDUAL: left} if compression.feedback else chunk.kept,
            reported={**chunk.reported, REPORTED + UPLINK_ERROR: error[:, None]},
        )

    def _job(
        self,
        rule: ClientRule,
        work: LocalWork,
        group: JobGroup,
        states: ClientStates,
        label: str,
        penalties: tuple[Penalty, ...],
    ) -> Job:
        rows, like = group.rows, group.servers["params"]
        clients = work.clients[rows]
        return Job(
            rule=rule,
            spec=group.submodels.spec,
            servers=group.servers,
            node=group.node,
            clients=clients,
            first_steps=work.first_steps[rows],
            local_steps=self.steps.common,
            label=label,
            client_steps=self.steps.some(clients),
            tracking=work.tracking[rows],
            recall=lambda who, node: states.gather(
                rule.client_state, group.submodels, who, node, like
            ),
            penalties=(*rule.penalties, *penalties),
            fresh=None if work.fresh is None else work.fresh[rows],
            rounds=work.rounds[rows],
            factors=group.submodels.input_factors(),
        )


def _keep(states: ClientStates, group: JobGroup, job: Job, part: slice, kept: State) -> None:
    """Store the new states of the clients in ``part`` of a job."""
    payloads = {payload.name for payload in job.rule.payloads}
    stored = {
        # A state with the name of a payload stays zero at coordinates that are not exchanged,
        # because the server's mean of it is zero there.
        name: group.submodels.silence(value.clone()) if name in payloads else value
        for name, value in kept.items()
    }
    states.scatter(group.submodels, job.clients[part], group.node[part], stored)
