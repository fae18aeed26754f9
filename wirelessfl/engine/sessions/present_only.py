"""The samples on which the model of a session is evaluated: those with labels of its clients."""

from __future__ import annotations

from wirelessfl.base.errors import DataError
from wirelessfl.data import Dataset
from wirelessfl.engine.server.server import Server
from wirelessfl.engine.sessions.session_model import HeldLabels
from wirelessfl.models.metrics import Measures
from wirelessfl.training.evaluation import EvaluationSamples

REMEDIES = {"test": "Add some", "validation": "Raise validation_fraction"}
"""What to do without samples of a kind."""


class PresentOnly:
    """Selects the samples with labels of the present clients, and metrics of these clients.

    Args:
        data: the data set.
        server: knows the present clients.
        labels: the labels of the present clients; None to evaluate on all samples.
    """

    def __init__(self, data: Dataset, server: Server, labels: HeldLabels | None) -> None:
        self.data, self.server, self.labels = data, server, labels
        self._kept: dict[str, tuple[tuple[int, ...], EvaluationSamples]] = {}

    def measures(self, measures: Measures) -> Measures:
        """Further metrics, of which those of clients are of the present ones."""
        return measures.of_clients(self.server.present.mask)

    def samples(self, kind: str, samples: EvaluationSamples) -> EvaluationSamples:
        """The samples whose labels are tested, cached for each ``kind``.

        Args:
            kind: "test" or "validation".
            samples: all samples of this kind.

        Raises:
            DataError: no sample has a tested label.
        """
        wanted = () if self.labels is None else self.labels.held
        if not wanted:  # all labels, or no client has joined yet
            return samples
        kept = self._kept.get(kind)
        if kept is None or kept[0] != wanted:
            known = samples.labels.new_zeros(self.data.classes, dtype=samples.labels.dtype).bool()
            known[list(wanted)] = True
            chosen = known[samples.labels]
            if not bool(chosen.any()):
                raise DataError(
                    f"{self.data.name}: no {kind} sample has a label of the present clients "
                    f"({', '.join(map(str, wanted))}). {REMEDIES[kind]}, or choose tested_labels "
                    "all."
                )
            kept = wanted, EvaluationSamples(samples.inputs[chosen], samples.labels[chosen])
            self._kept[kind] = kept
        return kept[1]
