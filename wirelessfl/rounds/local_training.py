"""Local training of clients: those of edge rounds, of requests, and of rounds of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.rounds.job_groups import JobGroup, Work, job_groups
from wirelessfl.server.client_states import ClientStates
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.rules import ClientRule
from wirelessfl.training.shards import ALONE, Shards
from wirelessfl.training.step_counts import StepCounts


@dataclass(frozen=True, eq=False)
class LocalTraining:
    """Local training of the clients of one model.

    Args:
        executor: where local updates are computed.
        steps: local steps of each client, per edge round or request.
        padding: largest padded fraction of a mixed-width batch.
        shards: the processes that share the clients.
    """

    executor: Executor
    steps: StepCounts
    padding: float = 0.0
    shards: Shards = ALONE

    def train(
        self,
        rule: ClientRule,
        work: Work,
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
            next ones are requested. If processes share the clients, the rows of this process.
        """
        each, shards = self.steps.some(work.clients), self.shards
        for group in job_groups(work, servers, self.padding, self.executor.chunk, each):
            job = self._job(rule, work, group, states, label, penalties)
            count, like = len(job.clients), group.servers["params"]
            mine = shards.share(count)
            own: dict[str, list[Tensor]] = {name: [] for name in rule.client_state}
            for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
                part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
                if shards.count == 1:
                    _keep(states, group, job, part, chunk.kept)
                else:
                    for name, value in chunk.kept.items():
                        own[name].append(value.clone())
                yield group.rows[part], group.at_nodes(chunk.payloads, part)
            if shards.count > 1:
                kept = {
                    name: shards.gather(torch.cat([like[:0], *rows]), count)
                    for name, rows in own.items()
                }
                _keep(states, group, job, slice(None), kept)

    def _job(
        self,
        rule: ClientRule,
        work: Work,
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
