"""Builds the objects named in tables of settings, such as algorithm, uplink and schedule."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from channels.streams import Stream
from wirelessfl.algorithms import Algorithm
from wirelessfl.assigners import Assigner
from wirelessfl.assignment import AssignmentRule
from wirelessfl.config.kinds import chosen_classes, title_of, words
from wirelessfl.config.sections import number_of, types_in
from wirelessfl.config.tables import hint
from wirelessfl.data.splits import Split
from wirelessfl.errors import ConfigError
from wirelessfl.failures import Failures
from wirelessfl.generators import seeded_generators
from wirelessfl.guard import calling
from wirelessfl.losses import Loss
from wirelessfl.models.choice import ModelChoice
from wirelessfl.radio.fading import FadingModel
from wirelessfl.radio.layouts import LayoutModel
from wirelessfl.radio.path_loss import PathLossModel
from wirelessfl.rounds.compression import Compression
from wirelessfl.rounds.step_sizes import StepSizes
from wirelessfl.schedules import Schedule
from wirelessfl.selection import Selection
from wirelessfl.sessions.presence import PresenceModel
from wirelessfl.tasks.delays import DelayModel
from wirelessfl.uplinks import Uplink
from wirelessfl.warm_starts import WarmStart
from wirelessfl.wording import explain


@dataclass(frozen=True)
class Choices:
    """The objects named in the tables of a configuration, with their settings.

    Args:
        algorithm: client and server rule.
        uplink: multiple access of the clients.
        schedule: when clients get work and servers merge.
        split: data partition.
        model: the model to train.
        lr_schedule: step size of each round.
        loss: loss of a sample.
        compression: compression of the model that clients receive.
        select: which clients take part in a round; None in regimes ``tasks`` and ``cells``.
        layout: where cells and clients are; None without a radio channel or if it is recorded.
        path_loss: path loss; None without positions.
        fading: fading of the radio channel; None without one or if it is recorded.
        failures: uploads that fail; None without uploads in packets, and in regime ``tasks``.
        delays: latency of requests; None without requests to clients.
        assignment: assignment of clients to tasks; None without rounds of several tasks.
        warm_start: initial model of a session; None without sessions.
        presence: which clients are present; None without sessions.
        assigner: who trains which neurons; None for full models, and if the algorithm brings its
            own assigner.
    """

    algorithm: Algorithm
    uplink: Uplink
    schedule: Schedule
    split: Split
    model: ModelChoice
    lr_schedule: StepSizes
    loss: Loss
    compression: Compression
    select: Selection | None = None
    layout: LayoutModel | None = None
    path_loss: PathLossModel | None = None
    fading: FadingModel | None = None
    failures: Failures | None = None
    delays: DelayModel | None = None
    assignment: AssignmentRule | None = None
    warm_start: WarmStart | None = None
    presence: PresenceModel | None = None
    assigner: Assigner | None = None

    @property
    def used_assigner(self) -> Assigner:
        """Who trains which neurons: the chosen assigner, or that of the algorithm."""
        return self.assigner or self.algorithm.assigner

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Choices:
        """Build every choice from its table, which must have a ``name``.

        The run's seed determines what the constructors of users' choices draw.

        Raises:
            ConfigError: a name or a setting is unknown, or a value is wrong.
        """
        classes = chosen_classes(tables)
        with seeded_generators(Stream(tables["run"].seed, ("users' choices",))):
            built = {kind: _built(kind, found, tables[kind]) for kind, found in classes.items()}
        return cls(**built)


@lru_cache(maxsize=256)
def _adapter(choice: Hashable) -> TypeAdapter[Any]:
    """The validator of a choice's settings; cached because building one takes milliseconds."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, choice))
    return adapter


@lru_cache(maxsize=256)
def _kinds_of(choice: Hashable) -> Mapping[str, frozenset[Any]]:
    """The types of each of a choice's settings, by name."""
    return {key: types_in(hint) for key, hint in _hints(choice).items()}


@lru_cache(maxsize=256)
def _hints(choice: Hashable) -> Mapping[str, Any]:
    """Annotations of a choice's settings, by name."""
    hints = get_type_hints(choice, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(cast(Any, choice))}


def _built(kind: str, choice: type[Any], table: Mapping[str, Any]) -> Any:
    """The object that a table describes, with every value checked."""
    with calling(f"{words(kind)} {title_of(table)} cannot be created", ConfigError):
        return _checked(kind, choice, table)


def _checked(kind: str, choice: type[Any], table: Mapping[str, Any]) -> Any:
    settings = {key: value for key, value in table.items() if key != "name"}
    kinds = _kinds_of(cast(Hashable, choice))
    known = list(kinds)
    for key in list(settings):
        if key not in known:
            raise ConfigError(
                f"unknown setting {key!r} of {words(kind)} {title_of(table)}, which has "
                f"{', '.join(known) or 'no settings'}.{hint(key, known)}"
            )
        settings[key] = number_of(key, settings[key], kinds[key])
    try:
        built = _adapter(cast(Hashable, choice)).validate_python(settings)
    except ValidationError as error:
        hints = _hints(cast(Hashable, choice))
        infos = {key: FieldInfo.from_annotation(hints[key]) for key in known}
        raise ConfigError(
            explain(error, lambda place: named_setting(place, infos), lambda *_: "")
        ) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: give a finite number.")
    return built


def named_setting(
    place: tuple[Any, ...], infos: Mapping[str, FieldInfo]
) -> tuple[str, FieldInfo] | None:
    """Name and field of the setting at a location in pydantic's errors, see ``explain``."""
    return (place[0], infos[place[0]]) if place and place[0] in infos else None
