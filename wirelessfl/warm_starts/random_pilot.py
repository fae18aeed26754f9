"""Random pilot: the ablation of Table 14, which compares clients on a model nobody has trained."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from wirelessfl.warm_starts.base import Opening, Past
from wirelessfl.warm_starts.proposed import Proposed


@dataclass(frozen=True)
class RandomPilot(Proposed):
    """As ``proposed``, but the pilot model is a newly drawn one.

    The first P sessions train as there, so that runs are comparable.
    """

    draws = True

    def trial_model(self, opening: Opening) -> Tensor:
        """The model drawn for all trial rounds, the same one every time: number 0."""
        return opening.draw(0)

    def remember(self, past: Past, session: int, last: Tensor, gradient: Tensor | None) -> Past:
        """The pilot model need not be kept: it can be drawn again."""
        return replace(super().remember(past, session, last, gradient), pilot=None)
