"""Settings of training."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import CELLS, ROUNDS, SAMPLED, Needs, without

UNSAMPLED = Needs(
    lambda run, _: not run.regime.of_tasks or run.schedule.work != "requests",
    'conflicts with schedule "{run.schedule.title}", which does not sample clients: set requests, '
    'or choose schedule "rounds"',
)
TRACKING = (
    Needs(
        lambda run, _: run.schedule.work == "rounds",
        'conflicts with schedule "{run.schedule.title}", under which every client that trains '
        'sends tracking terms: choose schedule "rounds"',
    ),
    Needs(
        lambda run, _: any(p.senders == "tracking" for p in run.settings.algorithm.rule.payloads),
        'conflicts with algorithm "{run.title}", which has no tracking terms: choose '
        "fadamgc, fa-nt, scaffold or scaffold-m",
    ),
)


def _some_late(run: Any, _: Any) -> bool:
    """Whether an update may miss a cut-off: packets are sent again, or there is no deadline."""
    failures = run.settings.failures
    again = failures is not None and failures.repeats and not failures.never
    return again or run.settings.uplink.deadline_seconds is None


LATE = (
    Needs(
        lambda run, _: run.uplink.gives != "sum",
        'conflicts with uplink "{run.uplink.title}", over which the clients of a cell send at the '
        'same time: choose uplink "tdma", "ofdma" or "fixed"',
    ),
    Needs(
        _some_late,
        "conflicts with round_deadline={run.settings.uplink.deadline_seconds:g}, which all "
        "updates meet: choose one of them",
    ),
)
MEAN = Needs(
    lambda run, _: run.settings.algorithm.rule.uses_mean,
    'conflicts with algorithm "{run.title}", which does not merge by a mean',
)


class TrainingSection(Section):
    """Numbers of rounds and local steps, batch size, sampled clients and their weights."""

    local_steps: Annotated[
        int,
        without(
            "local_epochs",
            ", which gives each client its own number of steps: choose one of them",
        ),
    ] = Field(20, ge=1, le=10**9, description="H, mini-batch steps per edge round")
    local_epochs: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="passes of each client over its samples (default: none)",
    )
    edge_rounds: Annotated[int | None, CELLS] = Field(
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
    clients_per_round: Annotated[int | None, UNSAMPLED, SAMPLED] = Field(
        None, ge=1, description="S, clients sampled per round (default: all)"
    )
    tracking_clients: Annotated[int | None, TRACKING] = Field(
        None,
        ge=1,
        description="clients that update and send tracking terms (default: all)",
    )
    cutoff_seconds: Annotated[float | None, LATE] = Field(
        None,
        gt=0,
        description="end of an edge round or request without late updates, s (default: none)",
    )
    client_joules: Annotated[float | None, ROUNDS] = Field(
        None,
        gt=0,
        description="energy budget of each client, in joules (default: no limit)",
    )
    weighting: Annotated[Literal["uniform", "samples"], MEAN] = Field(
        "uniform", description="weights of clients and cells in averages"
    )
