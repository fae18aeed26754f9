"""Settings of how long and in what steps clients train."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class TrainingSection(Section):
    """How long and in what steps."""

    local_steps: int = Field(20, ge=1, description="H, mini-batch steps an edge round")
    edge_rounds: int | None = Field(
        None, ge=1, description="E, edge rounds a global round (default: 5, or 1 for a star)"
    )
    rounds: int = Field(
        30,
        ge=1,
        description="T, global rounds (per session); under schedule buffered, merges (per task), "
        "by default 30 n / b, which take the updates of 30 rounds of all n clients (over cells: "
        "30 N / B). Tasks have no limit where --max-seconds or targets end the run",
    )
    max_seconds: float | None = Field(
        None, gt=0, description="simulated seconds after which a run ends (default: none)"
    )
    batch_size: int = Field(50, ge=1, description="samples a mini-batch")
    clients_per_round: int | None = Field(
        None, ge=1, description="S, clients that train in a round, in all cells (default: all)"
    )
    tracking_clients: int | None = Field(
        None,
        ge=1,
        description="number of these that update and send tracking terms (default: all of them)",
    )
    weighting: Literal["uniform", "samples"] = Field(
        "uniform", description="weights of clients and cells in means"
    )
    lr_schedule: Literal["constant", "poly"] = Field(
        "constant",
        description="step sizes of the clients: constant, or falling within each session (a run "
        "without sessions is one) by lr ((1 - ratio) (1 - t/T)^power + ratio)",
    )
    compression: Literal["none", "top-k", "quantisation"] = Field(
        "none",
        description="of the model on its way to the clients: its largest elements, or a few bits "
        "an element by stochastic rounding",
    )
    compression_keep: float = Field(
        0.1, gt=0, le=1, description="of top-k: share of the elements that are sent"
    )
    compression_bits: int = Field(
        8, ge=2, le=16, description="of quantisation: bits an element, its sign included"
    )
    lr_ratio: float = Field(0.0, ge=0, le=1, description="of poly: minimum step size over --lr")
    lr_power: float = Field(0.9, gt=0, description="of poly: the exponent")
