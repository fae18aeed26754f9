"""Settings of training."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from wirelessfl.config.sections.base import Section


class TrainingSection(Section):
    """Numbers of rounds and local steps, batch size, sampled clients and their weights."""

    local_steps: int = Field(20, ge=1, le=10**9, description="H, mini-batch steps per edge round")
    local_epochs: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="passes of each client over its samples (default: none)",
    )
    edge_rounds: int | None = Field(
        None, ge=1, description="E, edge rounds per global round (default: 5)"
    )
    rounds: int = Field(
        30,
        ge=1,
        description="T, global rounds (per session), or merges per task (default: 30 rounds, or "
        "the same number of updates; unlimited for tasks with --max-seconds or --target)",
    )
    max_seconds: float | None = Field(
        None, gt=0, description="limit on simulated seconds (default: none)"
    )
    batch_size: int = Field(50, ge=1, description="samples per mini-batch")
    clients_per_round: int | None = Field(
        None, ge=1, description="S, clients sampled per round (default: all)"
    )
    tracking_clients: int | None = Field(
        None,
        ge=1,
        description="clients that update and send tracking terms (default: all)",
    )
    cutoff_seconds: float | None = Field(
        None,
        gt=0,
        description="end of an edge round without late updates, s (default: none)",
    )
    client_joules: float | None = Field(
        None,
        gt=0,
        description="energy budget of each client, in joules (default: no limit)",
    )
    weighting: Literal["uniform", "samples"] = Field(
        "uniform", description="weights of clients and cells in averages"
    )
