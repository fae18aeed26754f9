"""A run of one model in sessions, with clients that join and leave."""

from __future__ import annotations

from wirelessfl.metrics import Measures
from wirelessfl.runs.rounds_engine import RoundsEngine
from wirelessfl.sessions.present_only import PresentOnly
from wirelessfl.setup.setups import SessionsSetup
from wirelessfl.training.evaluate import EvaluationSamples


class SessionsEngine(RoundsEngine):
    """The engine of runs in sessions, see ``Execution``."""

    setup: SessionsSetup

    def __init__(self, setup: SessionsSetup) -> None:
        super().__init__(setup)
        model = setup.regime.model
        labels = model.labels if setup.only_present_labels else None
        self._tested = PresentOnly(setup.model.data, model.server, labels)

    def measures(self) -> Measures:
        """Further metrics, of which those of clients are of the present ones."""
        return self._tested.measures(super().measures())

    def test_samples(self) -> EvaluationSamples:
        """Test samples with tested labels.

        Raises:
            DataError: no test sample has a tested label.
        """
        return self._tested.samples("test", super().test_samples())

    def validation_samples(self) -> EvaluationSamples | None:
        """Validation samples with tested labels; None without validation.

        Raises:
            DataError: no validation sample has a tested label.
        """
        held = super().validation_samples()
        return None if held is None else self._tested.samples("validation", held)
