"""A model in training: its server, progress of clients, evaluation and running totals."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.links import TrainingSettings
from wirelessfl.air.plan import Plan
from wirelessfl.air.uplinks import Uplink
from wirelessfl.engine.selection.selection import Losses
from wirelessfl.engine.server.ledger import Ledger
from wirelessfl.engine.server.server import Server
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.cohort import Penalty
from wirelessfl.training.rules import State
from wirelessfl.training.steps import StepsDone
from wirelessfl.training.workers.shards import Shards

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.engine.rounds.global_round import GlobalRound
    from wirelessfl.training.evaluation import ClientLosses, Evaluation
    from wirelessfl.training.executor import Executor


class Learner(ABC):
    """A model in training, as the engine of a run and its sessions see it.

    Args:
        server: server of the model.
        stream: random stream of the training.
        title: name of the training in messages.
        evaluation: what the model is evaluated on; None if it is not evaluated.
    """

    def __init__(
        self, server: Server, stream: Stream, title: str, evaluation: Evaluation | None = None
    ) -> None:
        self.server, self.stream, self.title = server, stream, title
        self.steps_done = StepsDone()
        self.metrics: dict[str, float] = {}
        """Metrics of the last merge."""
        self._evaluation = evaluation

    @property
    def evaluation(self) -> Evaluation:
        """What the model is evaluated on."""
        assert self._evaluation is not None, "the model is not evaluated"
        return self._evaluation

    @evaluation.setter
    def evaluation(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    @property
    @abstractmethod
    def spec(self) -> ParamSpec:
        """Names and shapes of the parameters."""

    @property
    def params(self) -> dict[str, Tensor]:
        """The current parameters by name, on the CPU."""
        return self.spec.named(self.server.cloud["params"].cpu())

    def attach(self, folder: Path, mark: str = "") -> None:
        """Set the run's folder, for client states on disk; their files begin with ``mark``."""
        self.server.states.attach(folder, mark)

    def saved(self) -> None:
        """Mark the client states on disk as covered by a checkpoint."""
        self.server.states.saved()

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint."""
        return {**self.server.tensors(), **self.steps_done.tensors()}

    def snapshot(self) -> dict[str, Any]:
        """The state that ``tensors`` does not contain, and the shapes of the parameters."""
        return {"metrics": self.metrics, "shapes": self.spec.shapes, "ties": self.spec.ties}

    def restore(self, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from the ``tensors`` and the ``snapshot`` of a checkpoint."""
        self.server.restore(tensors)
        self.steps_done = StepsDone.restored(tensors)
        self.metrics = dict(state["metrics"])


Log = Callable[[Plan, bool], None]
"""Takes each round that is counted, and whether it is a trial round."""


@dataclass
class Totals:
    """Running sums of the costs of rounds.

    Args:
        uplink_mib, downlink_mib, backhaul_mib, joules, lost, silent: see ``Price``; ``joules`` is
            None if energy is not counted, because beamformers over the air take time to optimise.
        round_seconds: durations of the rounds, or of cells' rounds; None unless the uplink compares
            its decisions with equal shares.
        equal_seconds, equal_joules: durations and joules of the same rounds with equal shares.
        late: see ``Price``; None unless rounds have a cut-off.
    """

    uplink_mib: float = 0.0
    downlink_mib: float = 0.0
    backhaul_mib: float = 0.0
    joules: float | None = 0.0
    lost: int = 0
    silent: int = 0
    round_seconds: float | None = None
    equal_seconds: float | None = None
    equal_joules: float | None = None
    late: int | None = None

    @classmethod
    def of(cls, uplink: Uplink, settings: TrainingSettings, *, joules: bool = True) -> Self:
        """Sums of no rounds; with ``joules``, those of equal shares if the uplink compares them."""
        none = 0.0 if joules and uplink.equal_shares is not None else None
        late = None if settings.cutoff_seconds is None else 0
        return cls(
            joules=0.0 if joules else None,
            round_seconds=none,
            equal_seconds=none,
            equal_joules=none,
            late=late,
        )

    def add(self, plan: Plan) -> None:
        """Add the cost of a round."""
        price = plan.price
        for name in ("uplink_mib", "downlink_mib", "backhaul_mib", "lost", "silent"):
            setattr(self, name, getattr(self, name) + getattr(price, name))
        if price.late is not None:
            self.late = (self.late or 0) + price.late
        if self.joules is None:
            return
        self.joules += price.joules
        equal = price.equal
        if equal is None:
            return
        self.round_seconds = (self.round_seconds or 0.0) + float(plan.price.seconds.max())
        self.equal_seconds = (self.equal_seconds or 0.0) + float(equal.seconds.max())
        self.equal_joules = (self.equal_joules or 0.0) + equal.joules

    def row(self) -> dict[str, float]:
        """The sums that the run has, by name, for rows and checkpoints."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class RoundTraining(Learner):
    """Trains the clients of planned rounds, and merges their updates at the server.

    Args:
        server: server of the model.
        executor: where local updates are computed; None if clients do not train, and only the costs
            of the rounds are counted.
        settings: local steps and edge rounds.
        client_samples: samples of each client, in the order of the network.
        stream: random stream of the run.
        shards: the processes that share the clients.
        evaluation: what the model is evaluated on; None if it is not evaluated.
        joules: whether energy is counted.
    """

    def __init__(
        self,
        server: Server,
        executor: Executor | None,
        settings: TrainingSettings,
        client_samples: Sequence[IntArray],
        stream: Stream,
        shards: Shards = Shards(),  # noqa: B008, frozen
        evaluation: Evaluation | None = None,
        *,
        joules: bool = True,
    ) -> None:
        super().__init__(server, stream, "round", evaluation)
        self._executor, self.settings = executor, settings
        self.client_samples, self.shards = client_samples, shards
        self.totals = Totals.of(server.uplink, settings, joules=joules)
        self.ledger = Ledger(len(server.weights.node_of))
        self.penalties: tuple[Penalty, ...] = ()
        """Additional loss terms of the clients, besides those of the algorithm."""
        self.teacher: torch.Tensor | None = None
        """[P], model that the clients also receive; None for no teacher."""
        self.client_losses: ClientLosses | None = None
        """Evaluates the server's model on the clients' samples; None if nothing needs it."""
        self.log: Log | None = None

    @property
    def executor(self) -> Executor:
        """Where local updates are computed."""
        assert self._executor is not None, "clients do not train"
        return self._executor

    @property
    def trains(self) -> bool:
        """Whether clients train."""
        return self._executor is not None

    @property
    def spec(self) -> ParamSpec:
        """Names and shapes of the parameters."""
        return self.executor.objective.spec

    @property
    def losses(self) -> Losses | None:
        """Losses of the server's current model on the samples of clients; None if not known."""
        measured = self.client_losses
        if measured is None:
            return None

        def losses(clients: IntArray, samples: int | None) -> FloatArray:
            params = self.server.cloud["params"]
            # All processes must select the same clients.
            return self.shards.by_first(lambda: measured.of(params, clients, samples))

        return losses

    def branch(self, stream: Stream) -> Self:
        """Return a copy for trial rounds, with costs of its own.

        Its rounds change neither this object nor its client states.

        Args:
            stream: random stream of the copy.
        """
        twin = copy.copy(self)
        twin.server, twin.steps_done = self.server.branch(), self.steps_done.copy()
        twin.stream, twin.title = stream, f"trial {self.title}"
        twin.penalties, twin.teacher = (), None
        twin.metrics = {}
        joules = self.totals.joules is not None
        twin.totals = Totals.of(self.server.uplink, self.settings, joules=joules)
        twin.ledger, twin.log = Ledger(self.ledger.clients), None
        return twin

    def count(self, plan: Plan, *, trial: bool = False) -> None:
        """Add the cost of a round to the totals and to the ledger of its clients, and log it."""
        self.totals.add(plan)
        heard = plan.clients
        if plan.arrivals is not None:
            heard = heard[plan.arrivals.any(0)]
        clients = plan.price.served.draws.network.numbers
        joules = None if self.totals.joules is None else plan.price.client_joules
        self.ledger.add(clients, joules, np.isin(clients, heard))
        if self.log is not None:
            self.log(plan, trial)

    def train(self, plan: Plan, broadcast: State) -> None:
        """Run the global round ``plan``: E edge rounds at every node, then the cloud's merge.

        Args:
            plan: plan of the round.
            broadcast: the cloud's state when the round was issued.
        """
        if len(plan.clients) == 0 or not self.trains:  # all clients have left, or costs are counted
            self.count(plan)
            return
        [global_round] = self.trained([(plan, broadcast)])
        global_round.finish()
        self.metrics = global_round.metrics()

    def trained(self, issued: Sequence[tuple[Plan, State]]) -> list[GlobalRound]:
        """Run the E edge rounds of global rounds, without the cloud's merge.

        Adds the costs to the totals, and stores client states; the server's state does not change.
        The clients of rounds with the same step size train together.

        Args:
            issued: plan of each round, and the cloud's state when it was issued. Several rounds
                have nodes of their own.
        """
        from wirelessfl.engine.rounds.global_round import GlobalRound, train_edge_round
        from wirelessfl.engine.rounds.local_training import LocalTraining

        settings, together = self.settings, dict[float, list[GlobalRound]]()
        local = LocalTraining(self.executor, settings.steps, settings.padding, self.shards)
        rounds = []
        for plan, broadcast in issued:
            self.count(plan)
            rounds.append(
                GlobalRound(
                    self.server,
                    plan,
                    broadcast,
                    self.stream,
                    settings.steps,
                    settings.compression,
                    self.teacher,
                )
            )
            together.setdefault(plan.lr_share, []).append(rounds[-1])
        for group in together.values():
            numbers = ", ".join(
                str(n + 1) for n in sorted({begun.planned.round for begun in group})
            )
            for number in range(settings.edge_rounds):
                label = f"{self.title} {numbers}, edge round {number + 1}"
                train_edge_round(group, number, local, self.steps_done, label, self.penalties)
        return rounds

    def tensors(self) -> dict[str, torch.Tensor]:
        """Tensors of the state, for a checkpoint."""
        return {**super().tensors(), **self.ledger.tensors(), **self.executor.tensors()}

    def snapshot(self) -> dict[str, Any]:
        """Running totals, metrics of the last round, and the shapes of the parameters."""
        return {**super().snapshot(), "totals": self.totals.row()}

    def restore(self, tensors: dict[str, torch.Tensor], state: Mapping[str, Any]) -> None:
        """Continue from the ``tensors`` and the ``snapshot`` of a checkpoint."""
        super().restore(tensors, state)
        self.totals = Totals(**state["totals"])
        self.ledger.restore(tensors)
        self.executor.restore(tensors)
