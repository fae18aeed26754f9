"""Tables of settings as they are read: with a table for each choice, and every value typed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pydantic import ValidationError, create_model
from pydantic.fields import FieldInfo

from wirelessfl.config.build_choices import named_setting
from wirelessfl.config.choices import CHOSEN
from wirelessfl.config.given import Given
from wirelessfl.config.named import check_text
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
from wirelessfl.wording import explain


class _Tables(Section):
    """The tables that belong to no choice."""

    given: Given = Given()
    data: DataSection = DataSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    task: tuple[dict[str, Any], ...] = ()


_CHOICES: dict[str, Any] = dict.fromkeys(CHOSEN, (dict[str, Any] | None, None))
TypedTables = create_model("TypedTables", __base__=_Tables, **_CHOICES)
"""All settings, by table.

Choices are tables with a ``name`` and the settings of the named choice; None if the run has no
such choice. ``task`` has one table per task. ``given`` marks the Python objects that replace
settings and must be given to the run.
"""
ORDER = (*CHOSEN, "given", *SECTIONS, "task")
"""Names of all tables, in the order in which they are written."""


def read_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The typed tables of all sections and choices, from those given.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """
    named = named_tables(tables)
    try:
        return dict(TypedTables(**named))
    except ValidationError as error:
        raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None


def typed(section: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of some settings of a section, read and checked as those of a file.

    Raises:
        ConfigError: a wrong value.
    """
    check_text(values)
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
