"""The training of one model in rounds: its server, the clients' progress, the running totals."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from channels.arrays import IntArray
from channels.streams import Stream
from wirelessfl.rounds.global_round import GlobalRound
from wirelessfl.rounds.local_training import LocalTraining
from wirelessfl.rounds.plan import Plan
from wirelessfl.rounds.settings import TrainingSettings
from wirelessfl.server.server import Server
from wirelessfl.training.cohort import Penalty, State
from wirelessfl.training.executor import Executor
from wirelessfl.training.shards import Shards


@dataclass
class Totals:
    """Running sums of what rounds cost."""

    uplink_mib: float = 0.0
    downlink_mib: float = 0.0
    backhaul_mib: float = 0.0
    joules: float = 0.0

    def add(self, plan: Plan) -> None:
        """Count one more round."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(plan.cost, entry.name))


class RoundTraining:
    """A server and its clients, and the training that a plan asks of them.

    Args:
        server: the model's.
        executor: where local updates are computed.
        settings: steps and edge rounds.
        client_samples: each client's samples, clients in the order of the network.
        stream: the run's stream.
        shards: the processes that share the clients.
    """

    def __init__(
        self,
        server: Server,
        executor: Executor,
        settings: TrainingSettings,
        client_samples: Sequence[IntArray],
        stream: Stream,
        shards: Shards = Shards(),  # noqa: B008, frozen
    ) -> None:
        self.server, self.executor, self.settings = server, executor, settings
        self.client_samples, self.stream, self.shards = client_samples, stream, shards
        self.penalties: tuple[Penalty, ...] = ()
        self.teacher: Tensor | None = None
        self.title = "round"
        self.steps_done = np.zeros(len(client_samples), dtype=np.int64)
        self.totals = Totals()
        self.metrics: dict[str, float] = {}

    def branch(self, stream: Stream) -> RoundTraining:
        """A copy to be trained on trial: this one, and what its clients keep, stay as they are.

        Args:
            stream: the copy's own randomness.
        """
        twin = copy.copy(self)
        twin.server, twin.steps_done = self.server.branch(), self.steps_done.copy()
        twin.totals, twin.stream = Totals(), stream
        twin.penalties, twin.teacher, twin.title = (), None, "trial round"
        return twin

    def train(self, plan: Plan, broadcast: State) -> None:
        """Run the global round ``plan``: E edge rounds at every node, then the cloud's merge.

        Args:
            plan: who trains what.
            broadcast: the cloud's state when the work was given out.
        """
        if len(plan.clients) == 0:  # all have left
            self.totals.add(plan)
            return
        under_way = self.trained(plan, broadcast)
        under_way.finish()
        self.metrics = under_way.metrics()

    def trained(self, plan: Plan, broadcast: State) -> GlobalRound:
        """The global round ``plan`` after its E edge rounds; the cloud has not merged it yet.

        Its cost is counted, and what clients keep is stored; the server's state stays. Arguments
        are those of ``train``.
        """
        self.totals.add(plan)
        local = LocalTraining(
            self.executor,
            self.settings,
            self.server.states,
            self.steps_done,
            self.shards,
            self.penalties,
            self.title,
        )
        under_way = GlobalRound(self.server, local, plan, broadcast, self.stream, self.teacher)
        for edge_round in range(self.settings.edge_rounds):
            under_way.train(edge_round)
        return under_way

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors, for a checkpoint."""
        return {**self.server.tensors(), "steps_done": torch.from_numpy(self.steps_done.copy())}

    def restore(self, tensors: dict[str, Tensor], totals: dict[str, float]) -> None:
        """Go on from the ``tensors`` and running totals of a checkpoint."""
        self.server.restore(tensors)
        self.steps_done = tensors["steps_done"].numpy().copy()
        self.totals = Totals(**totals)
