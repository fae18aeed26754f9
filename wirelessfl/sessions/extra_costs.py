"""Costs of warm starts, besides those of the training rounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ExtraCosts:
    """Running sums of the extra costs of warm starts, and of dropped updates.

    Args:
        extra_rounds: number of trial rounds.
        extra_uploads: number of client uploads in trial rounds.
        extra_broadcasts: number of broadcasts of a model for a trial round, or of a teacher.
        extra_seconds: simulated seconds of trial rounds and teacher broadcasts.
        extra_mib: uplink and downlink traffic of trial rounds and teacher broadcasts, mean over
            registered clients.
        dropped: number of updates of clients that left during a round.
    """

    extra_rounds: int = 0
    extra_uploads: int = 0
    extra_broadcasts: int = 0
    extra_seconds: float = 0.0
    extra_mib: float = 0.0
    dropped: int = 0

    def add_trial(self, uploads: int, seconds: float, mib: float) -> None:
        """Add the costs of a trial round.

        Args:
            uploads: number of client uploads.
            seconds: simulated seconds of the round.
            mib: uplink and downlink traffic, mean over registered clients.
        """
        self.extra_rounds += 1
        self.extra_uploads += uploads
        self.extra_broadcasts += 1
        self.extra_seconds += seconds
        self.extra_mib += mib
