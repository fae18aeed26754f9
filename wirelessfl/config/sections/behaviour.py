"""Settings of what clients do: whether they are available, busy, or drop out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import ONE_SERVER, REQUESTS, TASK_ROUNDS, TASKS, Fits

FEWER = Fits(
    lambda run, own: not run.settings.clients_known or (own.busy_clients or 0) <= own.clients,
    "exceeds the {own.clients} clients: lower it",
)


class BehaviourSection(Section):
    """Availability, busy clients and drop-outs."""

    availability: Annotated[float, ONE_SERVER, TASK_ROUNDS] = Field(
        1.0, gt=0, le=1, description="fraction of clients available in each round"
    )
    busy_clients: Annotated[int | None, ONE_SERVER, REQUESTS, FEWER] = Field(
        None,
        ge=1,
        description="maximum number of busy clients; further requests are queued (default: all)",
    )
    drop_out: Annotated[float, ONE_SERVER, TASKS] = Field(
        0.0, ge=0, lt=1, description="probability that a client fails to return a requested update"
    )
