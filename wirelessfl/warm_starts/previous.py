"""Previous: go on from the model that the session before has left."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.warm_starts.base import Initial, Opening, WarmStart


@dataclass(frozen=True)
class Previous(WarmStart):
    """The latest model, whoever trained it."""

    def initial(self, opening: Opening) -> Initial:
        """w_init = the last model of the session before."""
        return Initial(opening.latest)
