"""How clients train in every round of one model."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.rounds.compression import Compression

PADDING = 0.1
"""Default of the largest padded fraction of a mixed-width batch."""


@dataclass(frozen=True)
class TrainingSettings:
    """How clients train in every round.

    Args:
        local_steps: H.
        edge_rounds: E.
        padding: share of padding in a batch of clients with submodels of different widths.
        compression: of the model on its way to the clients.
    """

    local_steps: int
    edge_rounds: int
    padding: float = PADDING
    compression: Compression | None = None
