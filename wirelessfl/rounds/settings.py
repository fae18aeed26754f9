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
        local_steps: H, local steps per edge round.
        edge_rounds: E, edge rounds per global round.
        padding: largest padded fraction of a mixed-width batch.
        compression: compression of the model on the downlink; None for no compression.
        cutoff_seconds: seconds after which an edge round ends without the updates that are missing;
            None if it waits for all.
    """

    local_steps: int
    edge_rounds: int
    padding: float = PADDING
    compression: Compression | None = None
    cutoff_seconds: float | None = None
