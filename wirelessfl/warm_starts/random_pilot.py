"""Random pilot: the ablation of Table 14, with trial rounds from an untrained model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from wirelessfl.warm_starts.proposed import Proposed
from wirelessfl.warm_starts.warm_start import Opening, Past


@dataclass(frozen=True)
class RandomPilot(Proposed):
    """Like warm start "proposed", but with a random pilot model (Chang et al., Table 14).

    The first P sessions train as with "proposed", so that runs are comparable.
    """

    draws = True

    def trial_model(self, opening: Opening) -> torch.Tensor:
        """The random pilot model (number 0), the same in all trial rounds."""
        return opening.draw(0)

    def remember(
        self, past: Past, session: int, last: torch.Tensor, gradient: torch.Tensor | None
    ) -> Past:
        """Store the past as ``Proposed`` does, without the pilot model, which can be redrawn."""
        return replace(super().remember(past, session, last, gradient), pilot=None)
