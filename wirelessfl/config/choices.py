"""The choices of a run, and the kinds they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from wirelessfl.algorithms import Method
from wirelessfl.assigners import ASSIGNERS, Assigner
from wirelessfl.assignment import ASSIGNMENTS, AssignmentRule
from wirelessfl.data.choice import DATASETS, DatasetChoice
from wirelessfl.data.splits import DATA_SPLITS, Split
from wirelessfl.failures import FAILURES, Failures
from wirelessfl.losses import LOSSES, Loss
from wirelessfl.models.choice import MODEL_CHOICES, ModelChoice
from wirelessfl.radio import FADINGS, LAYOUTS, PATH_LOSSES, FadingModel, LayoutModel, PathLossModel
from wirelessfl.registry import Kind
from wirelessfl.rounds.compression import COMPRESSIONS, Compression
from wirelessfl.rounds.step_sizes import STEP_SIZES, StepSizes
from wirelessfl.schedules import SCHEDULES, Schedule
from wirelessfl.selection import SELECTIONS, Selection
from wirelessfl.sessions.presence import PRESENCES, PresenceModel
from wirelessfl.tasks.delays import DELAYS, DelayModel
from wirelessfl.uplinks import UPLINKS, Uplink
from wirelessfl.warm_starts import WARM_STARTS, WarmStart


@dataclass(frozen=True, kw_only=True)
class Choices:
    """The objects that a run is made of, each chosen by name and with settings of its own.

    A new kind of choice is one line here: its table, flags, help, conditions and storage follow
    from its ``Kind``. A choice that some runs do not have is None by default. If two kinds have a
    setting of the same name, the flag of the earlier kind has no prefix.

    Args:
        algorithm: client and server rule.
        dataset: the data set.
        split: data partition.
        model: the model to train.
        lr_schedule: step size of each round.
        compression: compression of the model that clients receive.
        select: which clients take part in a round; None in runs of tasks and of asynchronous cells.
        layout: where cells and clients are; None without a radio channel or if it is recorded.
        path_loss: path loss; None without positions.
        fading: fading of the radio channel; None without one or if it is recorded.
        uplink: multiple access of the clients.
        failures: uploads that fail; None without uploads in packets, and in runs of tasks.
        schedule: when clients get work and servers merge.
        delays: latency of requests; None without requests to clients.
        assignment: assignment of clients to tasks; None without rounds of several tasks.
        warm_start: initial model of a session; None without sessions.
        presence: which clients are present; None without sessions.
        loss: loss of a sample.
        assigner: who trains which neurons; None for full models, and if the algorithm brings its
            own assigner.
    """

    algorithm: Method
    dataset: Annotated[DatasetChoice, DATASETS]
    split: Annotated[Split, DATA_SPLITS]
    model: Annotated[ModelChoice, MODEL_CHOICES]
    lr_schedule: Annotated[StepSizes, STEP_SIZES]
    compression: Annotated[Compression, COMPRESSIONS]
    select: Annotated[Selection | None, SELECTIONS] = None
    layout: Annotated[LayoutModel | None, LAYOUTS] = None
    path_loss: Annotated[PathLossModel | None, PATH_LOSSES] = None
    fading: Annotated[FadingModel | None, FADINGS] = None
    uplink: Annotated[Uplink, UPLINKS]
    failures: Annotated[Failures | None, FAILURES] = None
    schedule: Annotated[Schedule, SCHEDULES]
    delays: Annotated[DelayModel | None, DELAYS] = None
    assignment: Annotated[AssignmentRule | None, ASSIGNMENTS] = None
    warm_start: Annotated[WarmStart | None, WARM_STARTS] = None
    presence: Annotated[PresenceModel | None, PRESENCES] = None
    loss: Annotated[Loss, LOSSES]
    assigner: Annotated[Assigner | None, ASSIGNERS] = None

    @property
    def used_assigner(self) -> Assigner:
        """Who trains which neurons: the chosen assigner, or that of the algorithm."""
        return self.assigner or self.algorithm.assigner


KINDS: Mapping[str, Kind[Any]] = {
    name: kind
    for name, hint in get_type_hints(Choices, include_extras=True).items()
    for kind in getattr(hint, "__metadata__", ())
}
"""Tables with a ``name``, besides ``algorithm``."""
CHOSEN = ("algorithm", *KINDS)
"""All tables with a ``name``."""
DEFAULTS = {name: kind.default for name, kind in KINDS.items() if kind.default}
"""Default names. The algorithm determines the defaults of schedule and assignment."""
OPTIONAL = ("assigner",)
"""Kinds without a table if the default is chosen."""
