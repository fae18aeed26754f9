"""How the clients of one of several tasks train."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from channels.arrays import BoolArray, IntArray
from wirelessfl.rounds.job_groups import JobGroup, job_groups
from wirelessfl.rounds.step_sizes import unchanged, with_step_size
from wirelessfl.server.client_states import ClientStates
from wirelessfl.submodels import ClientSubmodels, NeuronMap, Submodels
from wirelessfl.training.cohort import State
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import ClientRule


@dataclass(frozen=True, eq=False)
class RequestWork:
    """Clients that train together, see ``Work``.

    Args:
        clients: [rows], their numbers.
        tracking: [rows], who sends what only trackers send.
        node: [rows], which of several models each is sent.
        submodels: what these models are: whole ones.
        client_submodels: what each trains of its model; None: all of it.
        first_steps: [rows], local steps that each has taken before.
        fresh: [rows], who has never trained before.
    """

    clients: IntArray
    tracking: BoolArray
    node: IntArray
    submodels: Submodels
    client_submodels: ClientSubmodels | None
    first_steps: IntArray
    fresh: BoolArray


@dataclass(frozen=True, eq=False)
class Done:
    """Some clients have trained; tensors hold until the next are asked for.

    Args:
        rows: their indices among all of the work.
        payloads: what they send, [rows, P] by payload.
        submodels: what they have trained.
        clients: [rows], their numbers.
        node: [rows], which of ``submodels`` each has trained.
        kept: what they keep, [rows, P_max] by name.
    """

    rows: IntArray
    payloads: State
    submodels: Submodels
    clients: IntArray
    node: IntArray
    kept: State


@dataclass(frozen=True, eq=False)
class LocalSteps:
    """The clients' side of a task.

    Args:
        task: its name, for messages.
        rule: the client's rule.
        objective: model and loss.
        executor: where updates are computed.
        count: tau, local steps of a training.
        lr_share: of the rule's step size, what clients use that were sent a version.
        neurons: finds all neurons that submodels may leave out; None: all clients train the whole
            model.
        padding: largest padded fraction of a batch of submodels of different widths.
    """

    task: str
    rule: ClientRule
    objective: Objective
    executor: Executor
    count: int
    lr_share: Callable[[int], float] = unchanged
    neurons: Callable[[], NeuronMap] | None = None
    padding: float = 0.0

    def train(
        self, work: RequestWork, servers: State, states: ClientStates, share: float, what: str
    ) -> Iterator[Done]:
        """Train some clients, chunk by chunk.

        Args:
            work: who trains what.
            servers: what they are sent, [models, P] by name.
            states: what clients keep between their turns.
            share: of the rule's step size.
            what: is trained, for messages.
        """
        rule = with_step_size(self.rule, share)
        for group in job_groups(work, servers, self.padding, self.executor.chunk):
            job = self._job(rule, work, group, states, what)
            for chunk in self.executor.train(job):
                yield Done(
                    rows=group.rows[chunk.part],
                    payloads=group.at_nodes(chunk.payloads, chunk.part),
                    submodels=group.submodels,
                    clients=job.clients[chunk.part],
                    node=group.node[chunk.part],
                    kept=chunk.kept,
                )

    def _job(
        self, rule: ClientRule, work: RequestWork, group: JobGroup, states: ClientStates, what: str
    ) -> Job:
        like, rows = group.servers["params"], group.rows
        return Job(
            rule=rule,
            spec=group.submodels.spec,
            servers=group.servers,
            node=group.node,
            clients=work.clients[rows],
            first_steps=work.first_steps[rows],
            local_steps=self.count,
            label=f"task {self.task}, {what}",
            tracking=work.tracking[rows],
            recall=lambda who, node: states.gather(
                rule.client_state, group.submodels, who, node, like
            ),
            penalties=rule.penalties,
            fresh=work.fresh[rows],
        )
