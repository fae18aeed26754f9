"""What warm starts cost beyond the rounds of their sessions."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.rounds.plan import Plan


@dataclass
class ExtraCosts:
    """Running sums of what warm starts cost beyond the rounds, and of updates that were lost.

    Args:
        extra_rounds: trial rounds.
        extra_uploads: clients' uploads in them.
        extra_broadcasts: models that the server sent for them, to all of its clients, and teachers.
        extra_seconds: simulated seconds that all this took.
        extra_mib: clients' bytes up and down, mean over all that are registered.
        dropped: updates of clients who left in the middle of a round.
    """

    extra_rounds: int = 0
    extra_uploads: int = 0
    extra_broadcasts: int = 0
    extra_seconds: float = 0.0
    extra_mib: float = 0.0
    dropped: int = 0

    def add_trial(self, plan: Plan, edge_rounds: int) -> None:
        """Count a trial round."""
        self.extra_rounds += 1
        self.extra_uploads += edge_rounds * len(plan.clients)
        self.extra_broadcasts += 1
        self.extra_seconds += float(plan.cost.seconds.max())
        self.extra_mib += plan.cost.uplink_mib + plan.cost.downlink_mib
