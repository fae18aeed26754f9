"""Previous: start from the final model of the previous session."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.warm_starts.warm_start import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Previous(WarmStart):
    """Start from the final model of the previous session."""

    def initial(self, opening: Opening) -> Initial:
        """The final model of the previous session."""
        return Initial(opening.latest)
