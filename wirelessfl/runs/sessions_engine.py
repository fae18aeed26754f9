"""A run of one model in sessions, with clients that join and leave."""

from __future__ import annotations

from wirelessfl.errors import DataError
from wirelessfl.metrics import Measures
from wirelessfl.runs.rounds_engine import RoundsEngine
from wirelessfl.setup.setups import SessionsSetup
from wirelessfl.training.evaluate import EvaluationSamples


class SessionsEngine(RoundsEngine):
    """The engine of runs in sessions, see ``Execution``."""

    setup: SessionsSetup

    def __init__(self, setup: SessionsSetup) -> None:
        super().__init__(setup)
        self._tested: dict[str, tuple[tuple[int, ...], EvaluationSamples]] = {}

    def measures(self) -> Measures:
        """Further metrics, of which those of clients are of the present ones."""
        return super().measures().of_clients(self.setup.regime.server.present.mask)

    def test_samples(self) -> EvaluationSamples:
        """Test samples with tested labels.

        Raises:
            DataError: no test sample has a tested label.
        """
        return self._with_tested_labels("test", super().test_samples(), "Add some")

    def validation_samples(self) -> EvaluationSamples | None:
        """Validation samples with tested labels; None without validation.

        Raises:
            DataError: no validation sample has a tested label.
        """
        held = super().validation_samples()
        if held is None:
            return None
        return self._with_tested_labels("validation", held, "Raise validation_fraction")

    def _with_tested_labels(
        self, kind: str, samples: EvaluationSamples, remedy: str
    ) -> EvaluationSamples:
        """The samples whose labels are tested, cached for each ``kind``.

        Raises:
            DataError: no sample has a tested label.
        """
        wanted, data = self.setup.regime.model.labels.held, self.setup.model.data
        if not self.setup.only_present_labels or not wanted:  # no client has joined yet
            return samples
        kept = self._tested.get(kind)
        if kept is None or kept[0] != wanted:
            known = samples.labels.new_zeros(data.classes, dtype=samples.labels.dtype).bool()
            known[list(wanted)] = True
            chosen = known[samples.labels]
            if not bool(chosen.any()):
                raise DataError(
                    f"{data.name}: no {kind} sample has a label of the present clients "
                    f"({', '.join(map(str, wanted))}). {remedy}, or choose tested_labels all."
                )
            kept = wanted, EvaluationSamples(samples.inputs[chosen], samples.labels[chosen])
            self._tested[kind] = kept
        return kept[1]
