"""How the clients of one of several tasks train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from channels.arrays import IntArray
from wirelessfl.training.cohort import State
from wirelessfl.training.executor import Executor, Job
from wirelessfl.training.objective import Objective
from wirelessfl.training.rules import ClientRule


@dataclass(frozen=True, eq=False)
class LocalSteps:
    """The clients' side of a task.

    Args:
        task: its name, for messages.
        rule: the client's rule.
        objective: model and loss.
        executor: where updates are computed.
        count: tau, local steps of a training.
    """

    task: str
    rule: ClientRule
    objective: Objective
    executor: Executor
    count: int

    def job(
        self,
        servers: State,
        clients: IntArray,
        first_steps: IntArray,
        what: str,
        node: IntArray | None = None,
    ) -> Job:
        """The local training of some clients.

        Args:
            servers: models that they are sent, [models, P] by name.
            clients: [clients], their numbers.
            first_steps: [clients], local steps that each has taken before.
            what: is trained, for messages.
            node: [clients], which of the models each is sent; None: the only one.
        """
        return Job(
            rule=self.rule,
            spec=self.objective.spec,
            servers=servers,
            node=np.zeros(len(clients), dtype=np.int64) if node is None else node,
            clients=clients,
            first_steps=first_steps,
            local_steps=self.count,
            label=f"task {self.task}, {what}",
            penalties=self.rule.penalties,
        )
