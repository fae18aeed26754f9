"""A model in training: its server, and the local training of its clients."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from channels.arrays import FloatArray, IntArray
from channels.streams import Stream
from wirelessfl.air.compression import Compression
from wirelessfl.air.plan import RoundWork
from wirelessfl.engine.selection.selection import Losses
from wirelessfl.engine.server.server import Server
from wirelessfl.models.submodels import ParamSpec
from wirelessfl.training.cohort import Penalty
from wirelessfl.training.rules import State
from wirelessfl.training.steps import StepsDone

if TYPE_CHECKING:  # what only counts costs needs no training
    from torch import Tensor

    from wirelessfl.engine.rounds.global_round import GlobalRound
    from wirelessfl.engine.rounds.local_training import LocalTraining
    from wirelessfl.training.evaluation import ClientLosses, Evaluation


class Learner:
    """A model in training: its server, and the local training of its clients.

    Args:
        server: server of the model.
        local: local training of the clients; None if they do not train, and only merges count.
        spec: names and shapes of the parameters.
        stream: random stream of the training.
        title: name of its rounds in messages.
        evaluation: what the model is evaluated on; None if it is not evaluated.
        compression: compression of the model that clients receive; None for no compression.
    """

    def __init__(
        self,
        server: Server,
        local: LocalTraining | None,
        spec: ParamSpec,
        stream: Stream,
        title: str = "round",
        evaluation: Evaluation | None = None,
        compression: Compression | None = None,
    ) -> None:
        self.server, self._local, self.spec = server, local, spec
        self.trains = local is not None
        """Whether clients train."""
        self.stream, self.title, self.compression = stream, title, compression
        self._evaluation = evaluation
        self.steps_done = StepsDone()
        self.metrics: dict[str, float] = {}
        """Metrics of the last merge."""
        self.penalties: tuple[Penalty, ...] = ()
        """Additional loss terms of the clients, besides those of the algorithm."""
        self.teacher: Tensor | None = None
        """[P], model that the clients also receive; None for no teacher."""
        self.node_weights: Sequence[float] | None = None
        """[nodes], weights of the nodes in a merge; None for those of their clients."""
        self.client_losses: ClientLosses | None = None
        """Evaluates the server's model on the clients' samples; None if nothing needs it."""

    @property
    def local(self) -> LocalTraining:
        """Local training of the clients."""
        assert self._local is not None, "clients do not train"
        return self._local

    @local.setter
    def local(self, local: LocalTraining) -> None:
        self._local = local

    @property
    def evaluation(self) -> Evaluation:
        """What the model is evaluated on."""
        assert self._evaluation is not None, "the model is not evaluated"
        return self._evaluation

    @evaluation.setter
    def evaluation(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation

    @property
    def params(self) -> dict[str, Tensor]:
        """The current parameters by name, on the CPU."""
        return self.spec.named(self.server.cloud["params"].cpu())

    @property
    def losses(self) -> Losses | None:
        """Losses of the server's current model on the samples of clients; None if not known."""
        measured = self.client_losses
        if measured is None:
            return None

        def losses(clients: IntArray, samples: int | None) -> FloatArray:
            params = self.server.cloud["params"]
            # All processes must select the same clients.
            return self.local.shards.by_first(lambda: measured.of(params, clients, samples))

        return losses

    def begin(self, work: RoundWork, broadcast: State) -> GlobalRound:
        """A global round, before its first edge round.

        Args:
            work: what is trained and sent.
            broadcast: the cloud's state when the round was issued.
        """
        from wirelessfl.engine.rounds.global_round import GlobalRound

        return GlobalRound(
            self.server,
            work,
            broadcast,
            self.stream,
            self.local.steps,
            self.compression,
            self.teacher,
        )

    def train(self, issued: Sequence[tuple[RoundWork, State]]) -> list[GlobalRound]:
        """Run the edge rounds of global rounds, without the cloud's merge.

        Stores client states; the server's state does not change. The clients of rounds with the
        same step size train together.

        Args:
            issued: the work of each round, and the cloud's state when it was issued. Several rounds
                have nodes of their own, and the same number of edge rounds.
        """
        from wirelessfl.engine.rounds.global_round import train_edge_round

        rounds = [self.begin(work, broadcast) for work, broadcast in issued]
        together: dict[float, list[GlobalRound]] = {}
        for entry in rounds:
            together.setdefault(entry.planned.lr_share, []).append(entry)
        for group in together.values():
            numbers = sorted({entry.planned.round + 1 for entry in group})
            names = ", ".join(map(str, numbers))
            for number in range(group[0].planned.edge_rounds):
                label = f"{self.title} {names}, edge round {number + 1}"
                train_edge_round(group, number, self.local, self.steps_done, label, self.penalties)
        return rounds

    def merge(self, trained: GlobalRound) -> None:
        """Merge a trained round at the cloud, after its last edge round."""
        trained.finish(self.node_weights)
        self.metrics = trained.metrics()

    def learn(self, work: RoundWork, broadcast: State) -> FloatArray | None:
        """Train a round and merge it; arguments as for ``begin``. Without training, count it.

        Returns:
            The losses that clients report, as ``GlobalRound.losses``.
        """
        if not self.trains:
            self.server.version += 1
            return None
        [trained] = self.train([(work, broadcast)])
        self.merge(trained)
        return trained.losses

    def branch(self, stream: Stream) -> Self:
        """Return a copy for trial rounds, which change neither this object nor its client states.

        Args:
            stream: random stream of the copy.
        """
        twin = copy.copy(self)
        twin.server, twin.steps_done = self.server.branch(), self.steps_done.copy()
        twin.stream, twin.title = stream, f"trial {self.title}"
        twin.penalties, twin.teacher = (), None
        twin.metrics = {}
        return twin

    def attach(self, folder: Path, mark: str = "") -> None:
        """Set the run's folder, for client states on disk; their files begin with ``mark``."""
        self.server.states.attach(folder, mark)

    def saved(self) -> None:
        """Mark the client states on disk as covered by a checkpoint."""
        self.server.states.saved()

    def tensors(self) -> dict[str, Tensor]:
        """Tensors of the state, for a checkpoint."""
        executor = self.local.executor.tensors()
        return {**self.server.tensors(), **self.steps_done.tensors(), **executor}

    def snapshot(self) -> dict[str, Any]:
        """The state that ``tensors`` does not contain, and the shapes of the parameters."""
        return {"metrics": self.metrics, "shapes": self.spec.shapes, "ties": self.spec.ties}

    def restore(self, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        """Continue from the ``tensors`` and the ``snapshot`` of a checkpoint."""
        self.server.restore(tensors)
        self.steps_done = StepsDone.restored(tensors)
        self.metrics = dict(state["metrics"])
        self.local.executor.restore(tensors)
