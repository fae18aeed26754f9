"""FedAST: buffered asynchronous training of several models (Askin et al., UAI 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from wirelessfl.algorithms.task_rule import BufferedRule
from wirelessfl.algorithms.timing import Buffering, Reallocation, Timing
from wirelessfl.training.payloads import Payload


@dataclass(frozen=True)
class FedAST(BufferedRule):
    """Each task merges full buffers: x <- x - eta_s eta_c tau mean(Delta) (Algorithm 2).

    Args:
        option: S keeps R_m and b_m; D deals the requests out by how far updates lie apart.
        spread_updates: V, the latest updates of each task that D looks at.
        period: D reallocates every ``period`` M sum R_m updates.
        floor: requests that D, or the end of a task, leaves to each at least.
    """

    name = "fedast"

    server_lr: Annotated[
        float, Field(gt=0, description="step size eta_s of the server along the mean change")
    ] = 0.1
    option: Annotated[
        Literal["S", "D"],
        Field(description="allocation of requests to tasks: static (S) or dynamic (D)"),
    ] = "S"
    spread_updates: Annotated[
        int, Field(ge=2, description="V, latest updates of a task that option D looks at")
    ] = 8
    period: Annotated[
        float, Field(gt=0, description="option D deals out anew every so many M sum R_m updates")
    ] = 0.75
    floor: Annotated[
        int,
        Field(
            ge=1,
            description="requests that a task keeps at least when they are dealt out (an even "
            "share, where there are too few)",
        ),
    ] = 8

    @property
    def timing(self) -> Timing:
        """Full buffers; with option D requests are dealt out anew by Algorithm 3."""
        reallocation = Reallocation(self.period, self.spread_updates)
        return Timing(
            Buffering(
                self.requests,
                self.buffer,
                scales=True,
                floor=self.floor,
                reallocation=reallocation if self.option == "D" else None,
            ),
            max_tasks=None,
            shared=("option", "spread_updates", "period", "floor"),
        )

    @property
    def payloads(self) -> tuple[Payload, ...]:
        """The update; D needs each client's own."""
        return (Payload("update", each=self.option == "D", unit="lr"),)
