"""Settings as given: typed, with each value checked, but not yet checked for conflicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from typing import Any

from pydantic import PrivateAttr, ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.config.choices import Choices, named_setting
from wirelessfl.config.given import Given, chosen
from wirelessfl.config.kinds import DEFAULTS, KINDS, Frame
from wirelessfl.config.regimes import Regime
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
from wirelessfl.layouts.section_vi_c import SectionVIC
from wirelessfl.wording import explain


@dataclass(frozen=True)
class Origin:
    """The settings that were given; they do not affect comparisons of settings.

    Args:
        places: table and key of each given setting.
    """

    places: frozenset[tuple[str, str]] = field(compare=False)


@dataclass
class _Framed:
    """The frame of settings, once it has been found; it does not affect comparisons of settings."""

    frame: Frame | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[type[_Framed], tuple[()]]:
        """A copy without the frame, whose classes may have been made at run time."""
        return _Framed, ()


class Settings(Section):
    """All settings of a run, by table.

    ``algorithm`` and each of ``KINDS`` are tables with a ``name`` and the settings of the named
    choice; None if the run has no such choice. ``task`` has one table per task. ``given`` marks
    the Python objects that replace settings and must be given to the run.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    schedule: dict[str, Any]
    split: dict[str, Any]
    model: dict[str, Any]
    lr_schedule: dict[str, Any]
    loss: dict[str, Any]
    given: Given = Given()
    data: DataSection = DataSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    compression: dict[str, Any] | None = None
    failures: dict[str, Any] | None = None
    select: dict[str, Any] | None = None
    layout: dict[str, Any] | None = None
    path_loss: dict[str, Any] | None = None
    fading: dict[str, Any] | None = None
    delays: dict[str, Any] | None = None
    assignment: dict[str, Any] | None = None
    warm_start: dict[str, Any] | None = None
    presence: dict[str, Any] | None = None
    assigner: dict[str, Any] | None = None
    task: tuple[dict[str, Any], ...] = ()

    _choices: Choices = PrivateAttr()
    _origin: Origin = PrivateAttr()
    _framed: _Framed = PrivateAttr(default_factory=_Framed)

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Show the tables in ``help``, without the defaults of all settings."""
        super().__pydantic_init_subclass__(**options)
        tables = Parameter("tables", Parameter.VAR_KEYWORD)
        cls.__signature__ = Signature([tables])

    def __init__(self, **tables: Any) -> None:
        named = named_tables(tables)
        try:
            super().__init__(**named)
        except ValidationError as error:
            raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None
        self._choices = Choices.of(dict(self))
        self._origin = Origin(frozenset(given_places(tables)))

    def given_tables(self) -> dict[str, Any]:
        """The given settings by table, without defaults."""
        tables = self.model_dump(exclude_unset=True)
        for kind, choice in vars(self.choices).items():
            if kind not in KINDS or tables.get(kind) is None:
                continue
            filled = {"name": DEFAULTS.get(kind, choice.name), **vars(choice)}
            given = {  # also values that were changed in place, since tables are plain dicts
                key: value
                for key, value in tables[kind].items()
                if (kind, key) in self._origin.places or value != filled.get(key)
            }
            if given and kind not in DEFAULTS:  # the default depends on the algorithm
                given["name"] = tables[kind]["name"]
            tables[kind] = given
        return tables

    def states(self, section: str, key: str) -> bool:
        """Whether a setting was given, even if the given value is its default."""
        return (section, key) in self._origin.places

    @property
    def choices(self) -> Choices:
        """The chosen objects, such as algorithm, uplink and schedule, with their settings."""
        return self._choices

    @property
    def regime(self) -> Regime:
        """What the run consists of, see ``Frame.regime``."""
        return self.frame.regime

    @property
    def frame(self) -> Frame:
        """The settings that decide which kinds of choices the run has."""
        if self._framed.frame is None:
            self._framed.frame = self._found_frame()
        return self._framed.frame

    def _found_frame(self) -> Frame:
        choices = self._choices
        return Frame(
            type(choices.algorithm),
            type(choices.uplink),
            type(choices.schedule),
            self.sessions.sessions,
            choices.delays is None or choices.delays.radio,
            self.given.model is not None,
            SectionVIC if choices.layout is None else type(choices.layout),
            self.network.channel,
        )

    @property
    def network_replaced(self) -> bool:
        """Whether a given or named network replaces the settings of one."""
        return self.given.network is not None or self.network.network is not None

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are final, so that no other network can be given to the run."""
        return self.given.network is not None or bool(chosen(self.network, self.frame.radio))

    @property
    def total_rounds(self) -> int:
        """Total number of rounds over all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """Name and field of the setting at a location in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    found = None if section is None else named_setting(place[1:], section.model_fields)
    return found and (f"{place[0]}.{found[0]}", found[1])
