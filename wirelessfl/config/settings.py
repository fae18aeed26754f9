"""Settings as they are given: typed, each value checked, not yet held against each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.config.choices import Choices, named_setting
from wirelessfl.config.given import Given, chosen
from wirelessfl.config.kinds import DEFAULTS, KINDS, Frame, Regime
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
from wirelessfl.config.tables import given_places, named_tables, unknown_setting
from wirelessfl.errors import ConfigError
from wirelessfl.wording import explain


@dataclass(frozen=True)
class Origin:
    """Which settings were given; equal settings are equal whatever was.

    Args:
        places: table and key of each.
    """

    places: frozenset[tuple[str, str]] = field(compare=False)


class Settings(Section):
    """All settings of a run, by table.

    ``algorithm`` and each of ``KINDS`` are tables with a ``name`` and the settings of what it
    names; None if the run has no such choice. ``task`` holds a table for each of several tasks.
    ``given`` marks objects that replace settings; the run needs them.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    schedule: dict[str, Any]
    split: dict[str, Any]
    model: dict[str, Any]
    lr_schedule: dict[str, Any]
    given: Given = Given()
    data: DataSection = DataSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    compression: dict[str, Any] | None = None
    fading: dict[str, Any] | None = None
    delays: dict[str, Any] | None = None
    assignment: dict[str, Any] | None = None
    warm_start: dict[str, Any] | None = None
    presence: dict[str, Any] | None = None
    task: tuple[dict[str, Any], ...] = ()

    _choices: Choices = PrivateAttr()
    _origin: Origin = PrivateAttr()

    def __init__(self, **tables: Any) -> None:
        named = named_tables(tables)
        try:
            super().__init__(**named)
        except ValidationError as error:
            raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None
        self._choices = Choices.of(dict(self))
        self._origin = Origin(frozenset(given_places(tables)))

    def given_tables(self) -> dict[str, Any]:
        """The settings that were given, by table, without what was filled in."""
        tables = self.model_dump(exclude_unset=True)
        for kind, choice in vars(self.choices).items():
            if kind not in KINDS or tables.get(kind) is None:
                continue
            filled = {"name": DEFAULTS.get(kind, choice.name), **vars(choice)}
            given = {  # with what was changed in place: tables are plain dicts
                key: value
                for key, value in tables[kind].items()
                if (kind, key) in self._origin.places or value != filled.get(key)
            }
            if given and kind not in DEFAULTS:  # its default may change with the algorithm
                given["name"] = tables[kind]["name"]
            tables[kind] = given
        return tables

    @property
    def choices(self) -> Choices:
        """Algorithm, uplink, schedule and the like with their settings."""
        return self._choices

    @property
    def regime(self) -> Regime:
        """What carries the run out: rounds of one model, in sessions or not; tasks, which get
        requests or common rounds; or the cells of one model, each a request."""
        return self.frame.regime

    @property
    def frame(self) -> Frame:
        """What decides which kinds of choices the run has."""
        choices = self._choices
        return Frame(
            type(choices.algorithm),
            type(choices.uplink),
            type(choices.schedule),
            self.sessions.sessions,
            choices.delays is None or choices.delays.radio,
            self.given.model is not None,
        )

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are settled: no other network can be given to the run."""
        return self.given.network is not None or bool(chosen(self.network, self.frame.radio))

    @property
    def total_rounds(self) -> int:
        """Training rounds of all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """The setting at a place in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    found = None if section is None else named_setting(place[1:], section.model_fields)
    return found and (f"{place[0]}.{found[0]}", found[1])
