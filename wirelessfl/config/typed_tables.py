"""Tables of settings as they are read: with a table for each choice, and every value typed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.config.choices import named_setting
from wirelessfl.config.given import Given
from wirelessfl.config.sections import (
    SECTIONS,
    DataSection,
    EvaluationSection,
    NetworkSection,
    RunSection,
    Section,
    SessionsSection,
    TrainingSection,
)
from wirelessfl.config.tables import named_tables, unknown_setting
from wirelessfl.errors import ConfigError
from wirelessfl.needs import BUILT, CHANNEL, Fits, Needs
from wirelessfl.selection import RandomSelection
from wirelessfl.wording import explain

SPLIT = Needs(
    lambda run, _: run.settings.given.split is None,
    "conflicts with split=..., which is given to wirelessfl.run",
)
LOSS = Needs(
    lambda run, _: run.settings.given.loss is None,
    "conflicts with loss=..., which is given to wirelessfl.run",
)
SELECT = (
    Needs(
        lambda run, own: (
            run.settings.training.clients_per_round or own["name"] == RandomSelection.name
        ),
        "needs clients_per_round: set it",
    ),
    Needs(
        lambda run, _: CHANNEL.met(run, None) or not run.settings.select.radio,
        CHANNEL.reason,
    ),
)


def _equal_steps(run: Any, _: Any) -> bool:
    """Whether updates of a merge have one step size, or the algorithm does not divide by it."""
    settings, stale = run.settings, run.regime.of_tasks and run.schedule.work == "requests"
    return settings.lr_schedule.constant or not (stale and settings.algorithm.merges_by_lr)


EQUAL_STEPS = Fits(
    _equal_steps,
    'conflicts with algorithm "{run.algorithm.title}", which divides by the clients\' step size: '
    'it differs within a merge under schedule "{run.schedule.title}". Choose lr_schedule '
    '"constant", or schedule "rounds"',
)


def _split_by_labels(run: Any) -> bool:
    presence = run.settings.presence
    return presence is not None and run.sessions is not None and presence.by_labels


BY_LABELS = (
    Fits(
        lambda run, _: not (_split_by_labels(run) and run.settings.split.by_groups),
        "conflicts with split={run.settings.tables[split][name]}, since it deals out samples by "
        "their labels: choose another split, or presence arrivals or trace",
    ),
    Fits(
        lambda run, _: not _split_by_labels(run) or run.settings.given.split is None,
        "conflicts with split=..., since it splits the data into groups of labels itself: choose "
        'presence "arrivals" or "trace", or leave split out',
    ),
)


class TypedTables(Section):
    """All settings, by table.

    ``algorithm`` and each of ``KINDS`` are tables with a ``name`` and the settings of the named
    choice; None if the run has no such choice. Needs of a table are those of all its settings.
    ``task`` has one table per task. ``given`` marks the Python objects that replace settings and
    must be given to the run.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    schedule: dict[str, Any]
    split: Annotated[dict[str, Any], SPLIT]
    model: dict[str, Any]
    lr_schedule: Annotated[dict[str, Any], EQUAL_STEPS]
    loss: Annotated[dict[str, Any], LOSS]
    given: Given = Given()
    data: DataSection = DataSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    compression: dict[str, Any] | None = None
    failures: dict[str, Any] | None = None
    select: Annotated[dict[str, Any] | None, SELECT] = None
    layout: Annotated[dict[str, Any] | None, BUILT] = None
    path_loss: Annotated[dict[str, Any] | None, BUILT] = None
    fading: Annotated[dict[str, Any] | None, BUILT] = None
    delays: dict[str, Any] | None = None
    assignment: dict[str, Any] | None = None
    warm_start: dict[str, Any] | None = None
    presence: Annotated[dict[str, Any] | None, BY_LABELS] = None
    assigner: dict[str, Any] | None = None
    task: tuple[dict[str, Any], ...] = ()

    @classmethod
    def read(cls, tables: Mapping[str, Any]) -> TypedTables:
        """The tables of all sections and choices, from those given.

        Raises:
            ConfigError: an unknown key, or a wrong value.
        """
        named = named_tables(tables)
        try:
            return cls(**named)
        except ValidationError as error:
            raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None


ORDER = tuple(TypedTables.model_fields)
"""Names of all tables, in the order in which they are written."""


def typed(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of some settings of a section, read and checked as those of a file.

    Raises:
        ConfigError: a wrong value.
    """
    try:
        read = SECTIONS[section](**values)
    except ValidationError as error:
        unknown = partial(unknown_setting, {section: values})
        raise ConfigError(
            explain(error, lambda place: _setting((section, *place)), unknown)
        ) from None
    return {key: getattr(read, key) for key in values}


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """Name and field of the setting at a location in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    found = None if section is None else named_setting(place[1:], section.model_fields)
    return found and (f"{place[0]}.{found[0]}", found[1])
