"""What tables and figures read of a learning curve."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import ArrayLike

from channels.arrays import FloatArray
from wirelessfl.codesign.curves.observed import Observed
from wirelessfl.codesign.curves.pilot import Pilot


class ShownCurve(Protocol):
    """The fields of ``RoundsCurve`` that are shown."""

    @property
    def form(self) -> str:
        """The chosen form."""

    @property
    def errors(self) -> dict[str, float]:
        """Errors by form."""

    @property
    def observed(self) -> Observed:
        """What the pilots say."""

    @property
    def runs(self) -> tuple[Pilot, ...]:
        """The pilots."""

    @property
    def left_out(self) -> FloatArray:
        """Predictions of left-out pilots."""

    @property
    def coefficients(self) -> dict[str, FloatArray]:
        """Coefficients by name."""

    def rounds(
        self,
        target: float,
        local_steps: ArrayLike,
        edge_rounds: ArrayLike,
        clients: ArrayLike | None,
        largest: ArrayLike,
        noise: ArrayLike,
    ) -> FloatArray:
        """Rounds to a target."""
