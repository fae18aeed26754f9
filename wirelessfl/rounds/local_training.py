"""Local training of the clients of an edge round, and their uploads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from channels.arrays import IntArray
from wirelessfl.algorithms.base import Algorithm
from wirelessfl.rounds.job_groups import JobGroup, job_groups
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.server.client_states import ClientStates
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.shards import Shards
from wirelessfl.training.steps_done import StepsDone


class Receiver(Protocol):
    """Receives the payloads of clients, chunk by chunk."""

    def add(self, part: slice | IntArray, payloads: dict[str, Tensor]) -> None:
        """Add the payloads of the clients in ``part``: [clients, elements] by payload."""


@dataclass(frozen=True, eq=False)
class LocalTraining:
    """Local training of one round.

    Args:
        executor: where local updates are computed.
        settings: local steps, padding.
        states: states that clients keep between rounds.
        steps_done: number of local steps that each client has done; updated here.
        shards: the processes that share the clients.
        penalties: additional loss terms, besides the cross-entropy and the algorithm's own terms.
        title: name of the round in messages.
    """

    executor: Executor
    settings: TrainingSettings
    states: ClientStates
    steps_done: StepsDone
    shards: Shards
    penalties: tuple[Penalty, ...] = ()
    title: str = "round"

    def edge_round(
        self, rule: Algorithm, plan: Plan, number: int, servers: State, reception: Receiver
    ) -> None:
        """Train the clients of edge round ``number``, and add their payloads to ``reception``.

        Args:
            rule: algorithm that defines the client rule.
            plan: plan of the global round.
            number: number of the edge round, from 0.
            servers: tensors that the clients of each node receive, [nodes, P_max] by name.
            reception: receives their uploads.
        """
        label = f"{self.title} {plan.round + 1}, edge round {number + 1}"
        padding, steps = self.settings.padding, self.settings.steps
        each = steps.some(plan.clients)
        for group in job_groups(plan, servers, padding, self.executor.chunk, each):
            self._train_group(group, self._job(rule, plan, number, group, label), reception)
        self.steps_done.add(plan.clients, steps.at(plan.clients))

    def _job(self, rule: Algorithm, plan: Plan, number: int, group: JobGroup, label: str) -> Job:
        clients, like = plan.clients[group.rows], group.servers["params"]
        tracking, arrived = plan.tracking[group.rows], plan.arrived(number)
        if arrived is not None:
            # The server acknowledges changes of tracking terms: otherwise its mean of them would
            # never again be that of the clients' own.
            tracking = tracking & arrived[group.rows]
        return Job(
            rule=rule,
            spec=group.submodels.spec,
            servers=group.servers,
            node=group.node,
            clients=clients,
            first_steps=self.steps_done.of(clients),
            local_steps=self.settings.local_steps,
            label=label,
            client_steps=self.settings.steps.some(clients),
            tracking=tracking,
            recall=lambda who, node: self.states.gather(
                rule.client_state, group.submodels, who, node, like
            ),
            penalties=(*rule.penalties, *self.penalties),
            factors=group.submodels.input_factors(),
        )

    def _train_group(self, group: JobGroup, job: Job, reception: Receiver) -> None:
        """Train the clients of one job."""
        shards, like, count = self.shards, group.servers["params"], len(job.clients)
        mine = shards.share(count)
        others: dict[str, list[Tensor]] = {name: [] for name in job.rule.client_state}
        for chunk in self.executor.train(job.of(mine)) if mine.start < mine.stop else ():
            part = slice(mine.start + chunk.part.start, mine.start + chunk.part.stop)
            reception.add(group.rows[part], group.at_nodes(chunk.payloads, part))
            if shards.count == 1:
                self._keep(group, job, part, chunk.kept)
                continue
            for name, value in chunk.kept.items():
                others[name].append(value.clone())
        if shards.count > 1:
            kept = {
                name: shards.gather(torch.cat([like[:0], *rows]), count)
                for name, rows in others.items()
            }
            self._keep(group, job, slice(None), kept)

    def _keep(self, group: JobGroup, job: Job, part: slice, kept: State) -> None:
        """Store the new states of the clients in ``part`` of a job."""
        payloads = {payload.name for payload in job.rule.payloads}
        for name, value in kept.items():
            # A state with the name of a payload stays zero at coordinates that are not exchanged,
            # because the server's mean of it is zero there.
            stored = group.submodels.silence(value.clone()) if name in payloads else value
            clients, node = job.clients[part], group.node[part]
            self.states.scatter(group.submodels, clients, node, {name: stored})
