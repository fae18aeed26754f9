"""Fresh: every session starts from a new random model."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.warm_starts.warm_start import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Fresh(WarmStart):
    """Start every session from a newly drawn random model."""

    draws = True

    def initial(self, opening: Opening) -> Initial:
        """A new random model; in the first session the run's initial model."""
        return Initial(opening.draw(opening.session) if opening.session else opening.latest)
