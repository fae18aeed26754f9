"""Random arrivals and stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.errors import ConfigError
from wirelessfl.sessions.attendance import Attendance
from wirelessfl.sessions.presence.presence_model import PresenceModel, PresenceScene, churn
from wirelessfl.sessions.processes import Arrivals


@dataclass(frozen=True)
class RandomArrivals(PresenceModel):
    """Poisson arrivals and exponential stays.

    Args:
        arrival_rate: arrivals per unit of time, > 0; required.
        mean_stay: mean length of a stay, in units of time, > 0; required.
        initially_present: number of clients present at time 0; None for rate times mean stay.
        presence_unit: unit of time.
    """

    arrival_rate: Annotated[
        float | None, Field(gt=0, description="client arrivals per --presence-unit (required)")
    ] = None
    mean_stay: Annotated[
        float | None,
        Field(gt=0, description="mean of the exponential stays, in --presence-unit (required)"),
    ] = None
    initially_present: Annotated[
        int | None,
        Field(ge=0, description="clients present at the start (default: arrival rate x mean stay)"),
    ] = None
    presence_unit: Annotated[
        Literal["seconds", "rounds"], Field(description="unit of arrival times and stays")
    ] = "seconds"

    def check(self, sessions: int, clients: int | None) -> None:
        """Raise an error if rate or stay are missing, or ``initially_present`` is too large."""
        for key in ("arrival_rate", "mean_stay"):
            if vars(self)[key] is None:
                raise ConfigError(f"presence is 'arrivals', which needs {key}: give it.")
        present = self.initially_present
        if present is not None and clients is not None and present > clients:
            raise ConfigError(
                f"initially_present is {present}, and there are {clients} clients: lower it."
            )

    def attendance(self, scene: PresenceScene) -> Attendance:
        """Clients that join and leave at random."""
        assert self.arrival_rate is not None
        assert self.mean_stay is not None
        process = Arrivals(
            scene.clients, self.arrival_rate, self.mean_stay, self.initially_present, scene.stream
        )
        return churn(process, self.presence_unit, scene)
