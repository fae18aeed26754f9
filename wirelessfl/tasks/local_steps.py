"""Local training of the clients of a task."""

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
from wirelessfl.training.step_counts import StepCounts


@dataclass(frozen=True, eq=False)
class RequestWork:
    """Clients that train together; implements ``Work`` of ``job_groups``.

    Args:
        clients: [rows], client numbers.
        tracking: [rows] boolean, clients that send tracking terms.
        node: [rows], index of the model that each client receives.
        submodels: the models that ``node`` refers to, which are full models.
        client_submodels: submodel of each client; None for the full model.
        first_steps: [rows], number of earlier local steps of each client.
        fresh: [rows] boolean, clients that have never trained before.
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
    """Results of a chunk of clients; the tensors are valid until the next chunk is requested.

    Args:
        rows: indices of the clients in the work.
        payloads: their payloads, [rows, P] by name.
        submodels: submodels that the clients trained.
        clients: [rows], client numbers.
        node: [rows], index in ``submodels`` of each client.
        kept: their new client states, [rows, P_max] by name.
    """

    rows: IntArray
    payloads: State
    submodels: Submodels
    clients: IntArray
    node: IntArray
    kept: State


@dataclass(frozen=True, eq=False)
class LocalSteps:
    """Local training of the clients of a task.

    Args:
        task: name of the task, for messages.
        rule: client rule of the algorithm.
        objective: model and loss.
        executor: where updates are computed.
        steps: tau, local steps per request or round of each client.
        lr_share: maps the version of the received model to a factor of the rule's step size.
        neurons: finds all neurons that submodels can omit; None if all clients train the full
            model.
        padding: largest padded fraction of a mixed-width batch.
    """

    task: str
    rule: ClientRule
    objective: Objective
    executor: Executor
    steps: StepCounts
    lr_share: Callable[[int], float] = unchanged
    neurons: Callable[[], NeuronMap] | None = None
    padding: float = 0.0

    def train(
        self, work: RequestWork, servers: State, states: ClientStates, share: float, what: str
    ) -> Iterator[Done]:
        """Train clients chunk by chunk.

        Args:
            work: clients and their submodels.
            servers: tensors that the clients receive, [models, P] by name.
            states: state that clients keep between requests or rounds.
            share: factor of the rule's step size.
            what: description of the work, for messages.
        """
        rule = with_step_size(self.rule, share)
        each = self.steps.some(work.clients)
        for group in job_groups(work, servers, self.padding, self.executor.chunk, each):
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
            local_steps=self.steps.common,
            client_steps=self.steps.some(work.clients[rows]),
            label=f"task {self.task}, {what}",
            tracking=work.tracking[rows],
            recall=lambda who, node: states.gather(
                rule.client_state, group.submodels, who, node, like
            ),
            penalties=rule.penalties,
            factors=group.submodels.input_factors(),
            fresh=work.fresh[rows],
        )
