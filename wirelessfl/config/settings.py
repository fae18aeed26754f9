"""Settings as they are given: typed, each value checked, not yet held against each other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.config.choices import Choices, named_setting
from wirelessfl.config.given import Given, chosen, replaced
from wirelessfl.config.sections import (
    SECTIONS,
    DataSection,
    EvaluationSection,
    ModelSection,
    NetworkSection,
    RunSection,
    Section,
    SessionsSection,
    TrainingSection,
)
from wirelessfl.config.tables import named_tables, unknown_setting
from wirelessfl.errors import ConfigError
from wirelessfl.wording import explain

Regime = Literal["rounds", "sessions", "tasks", "cells"]


class Settings(Section):
    """All settings of a run, by table.

    ``algorithm``, ``uplink``, ``schedule``, ``assignment`` (in rounds of several tasks) and
    ``warm_start`` (with sessions) are tables with a ``name`` and the settings of what it names;
    ``task`` holds a table for each of several tasks. ``given`` marks
    objects that replace settings; the run needs them.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    schedule: dict[str, Any]
    given: Given = Given()
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    assignment: dict[str, Any] | None = None
    warm_start: dict[str, Any] | None = None
    task: tuple[dict[str, Any], ...] = ()

    _choices: Choices = PrivateAttr()

    def __init__(self, **tables: Any) -> None:
        named = named_tables(tables)
        try:
            super().__init__(**named)
        except ValidationError as error:
            raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None
        self._choices = Choices.of(dict(self))

    @property
    def choices(self) -> Choices:
        """Algorithm, uplink, schedule and the like with their settings."""
        return self._choices

    @property
    def regime(self) -> Regime:
        """What carries the run out: rounds of one model, in sessions or not; tasks, which get
        requests or common rounds; or the cells of one model, each a request."""
        if self._choices.schedule.work == "rounds":
            return "rounds" if self.sessions.sessions is None else "sessions"
        return "tasks" if self._choices.algorithm.topology == "star" else "cells"

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are settled: no other network can be given to the run."""
        return self.given.network is not None or bool(chosen(self.network))

    @property
    def total_rounds(self) -> int:
        """Training rounds of all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)

    def to_toml(self) -> str:
        """The settings as TOML; reading it back gives the same object."""
        hidden = replaced(self.given, self.network)
        tables = ({"cycles_per_flop": self.network.cycles_per_flop}, *self.task)
        if any(table.get("cycles_per_flop") is not None for table in tables):
            hidden["network"] = {"cycles_per_step", *hidden.get("network", ())}
        shown = self.model_dump(exclude=dict(hidden))
        plain: dict[str, Any] = _plain(shown)
        for key in ("task", "given"):
            if not plain[key]:
                del plain[key]
        return tomli_w.dumps(plain)


def _plain(value: Any) -> Any:
    """``value`` as TOML can hold it: no None, paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """The setting at a place in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    found = None if section is None else named_setting(place[1:], section.model_fields)
    return found and (f"{place[0]}.{found[0]}", found[1])
