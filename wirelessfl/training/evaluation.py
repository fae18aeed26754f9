"""What a model is evaluated on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from wirelessfl.metrics import Measures
from wirelessfl.submodels import Submodels
from wirelessfl.training.evaluate import (
    NO_MEASURES,
    Evaluated,
    EvaluationSamples,
    deployed,
    measured,
)
from wirelessfl.training.objective import Objective


class Tested(Protocol):
    """Selects the samples and the metrics of an evaluation at the current time."""

    def samples(self, kind: str, samples: EvaluationSamples) -> EvaluationSamples:
        """The samples to evaluate, of all those of a ``kind``: "test" or "validation"."""

    def measures(self, measures: Measures) -> Measures:
        """The further metrics."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Test data of a model, and held-out training data.

    Args:
        objective: the full model and its loss.
        test: test samples.
        validation: held-out training samples; None without validation.
        measures: further metrics.
        submodel: the submodel to evaluate; None for the full model.
        tested: selects what is evaluated; None for all.
    """

    objective: Objective
    test: EvaluationSamples
    validation: EvaluationSamples | None = None
    measures: Measures = NO_MEASURES
    submodel: Submodels | None = None
    tested: Tested | None = None

    def deployed(self, params: Tensor) -> tuple[Objective, Tensor]:
        """The model to evaluate and its parameters, given those of the full model, [P]."""
        return deployed(self.objective, params, self.submodel)

    def of(self, params: Tensor) -> tuple[Evaluated, Evaluated | None]:
        """Accuracy, loss and metrics of the full model's parameters [P].

        Returns:
            Those on test samples, and on validation samples; None without validation.
        """
        test = self._of("test", self.test, params)
        held = self.validation
        return test, None if held is None else self._of("validation", held, params)

    def _of(self, kind: str, samples: EvaluationSamples, params: Tensor) -> Evaluated:
        measures, tested = self.measures, self.tested
        if tested is not None:
            samples, measures = tested.samples(kind, samples), tested.measures(measures)
        return measured(*self.deployed(params), samples, measures)
