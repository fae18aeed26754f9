"""How clients train in every round of one model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from channels.arrays import IntArray
from wirelessfl.rounds.compression import Compression
from wirelessfl.training.step_counts import StepCounts

PADDING = 0.1
"""Default of the largest padded fraction of a mixed-width batch."""


@dataclass(frozen=True)
class TrainingSettings:
    """How clients train in every round.

    Args:
        local_steps: H, local steps per edge round of all clients.
        edge_rounds: E, edge rounds per global round.
        padding: largest padded fraction of a mixed-width batch.
        compression: compression of the model on the downlink; None for no compression.
        cutoff_seconds: seconds after which an edge round ends without the updates that are missing;
            None if it waits for all.
        client_steps: [clients], local steps of each client; None for ``local_steps`` each.
    """

    local_steps: int
    edge_rounds: int
    padding: float = PADDING
    compression: Compression | None = None
    cutoff_seconds: float | None = None
    client_steps: IntArray | None = None

    @cached_property
    def steps(self) -> StepCounts:
        """Number of local steps of each client."""
        return StepCounts(self.local_steps, self.client_steps)
