"""Fresh: every session begins anew."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.warm_starts.base import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Fresh(WarmStart):
    """A newly drawn model for every session."""

    draws = True

    def initial(self, opening: Opening) -> Initial:
        """w_init drawn as the first one was."""
        return Initial(opening.draw(opening.session) if opening.session else opening.latest)
