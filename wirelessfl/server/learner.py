"""A model in training: its server, the clients' progress, and its evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from channels.streams import Stream
from wirelessfl.server.server import Server
from wirelessfl.submodels import ParamSpec
from wirelessfl.training.steps_done import StepsDone

if TYPE_CHECKING:
    from torch import Tensor

    from wirelessfl.training.evaluation import Evaluation


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
