"""Settings whose choices and sections are replaced by objects that are given from Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from wirelessfl.config.build_choices import build_choice
from wirelessfl.config.given import Given
from wirelessfl.config.kinds import PARTS, given_classes
from wirelessfl.config.sections import SECTIONS, Section
from wirelessfl.config.settings import Settings
from wirelessfl.config.table import ChoiceTable
from wirelessfl.import_paths import absolute


def unresolved(settings: Settings) -> Settings:
    """The settings as given, without the defaults that depend on other settings.

    Nothing is read again: what was given keeps its value.

    Args:
        settings: resolved settings.
    """
    values = {field.name: getattr(settings, field.name) for field in fields(Settings)}
    values |= {name: _as_given(getattr(settings, name)) for name in SECTIONS}
    tables = {
        kind: ChoiceTable(
            (key, value)
            for key, value in table.items()
            if key in ("name", *PARTS) or (kind, key) in settings.places
        )
        for kind, table in settings.tables.items()
    }
    values["tables"] = tables
    values["dataset"] = _remade(type(settings.dataset), tables["dataset"])
    return Settings(**values)


def with_objects(
    settings: Settings,
    marks: Given,
    *,
    loss: str | None = None,
    metric: Sequence[str] | None = None,
    clients: int | None = None,
) -> Settings:
    """Settings of a run to which objects are given.

    Args:
        settings: the settings as given, without the defaults that depend on other settings.
        marks: the given objects.
        loss: name of a loss that is given instead of the configured one.
        metric: names of metrics that are given; None or empty if there are none.
        clients: number of clients that follows from an object; None if none does.

    Raises:
        ConfigError: the loss is unknown.
    """
    places, kinds = set(settings.places), set(settings.given_kinds)
    tables, values = dict(settings.tables), dict[str, Any](given=marks)
    if loss is not None:
        tables["loss"] = ChoiceTable(name=absolute(loss))
        values["loss"] = build_choice("loss", tables["loss"], settings.run.seed)
        places.add(("loss", "name"))
        kinds.add("loss")
    for kind, cls in given_classes(marks).items():
        values[kind] = _remade(cls, tables[kind])
    if metric:
        values["evaluation"] = _with(settings.evaluation, metric=tuple(metric))
        places.add(("evaluation", "metric"))
    if clients is not None:
        values["network"] = _with(settings.network, clients=clients)
        places.add(("network", "clients"))
    return replace(
        settings, **values, tables=tables, places=frozenset(places), given_kinds=frozenset(kinds)
    )


def _as_given(section: Section) -> Section:
    """A section with the values that were given, and its own defaults."""
    given = {key: getattr(section, key) for key in section.model_fields_set}
    return type(section).model_construct(set(given), **given)


def _with(section: Section, **values: Any) -> Section:
    """A section with other values, which count as given."""
    found = dict(section) | values
    return type(section).model_construct(section.model_fields_set | values.keys(), **found)


def _remade(cls: type[Any], table: Mapping[str, Any]) -> Any:
    """An object of a class with the settings in a table that it has."""
    known = {field.name for field in fields(cls)}
    return cls(**{key: value for key, value in table.items() if key in known})
