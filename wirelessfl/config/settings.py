"""Settings as given: typed, with each value checked, but not yet checked for conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, Signature
from typing import Annotated, Any

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
from wirelessfl.needs import BUILT, CHANNEL, Fits, Needs
from wirelessfl.radio.layouts import SectionVIC
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
        lambda run, _: CHANNEL.met(run, None) or not run.settings.choices.select.radio,
        CHANNEL.reason,
    ),
)


def _equal_steps(run: Any, _: Any) -> bool:
    """Whether updates of a merge have one step size, or the algorithm does not divide by it."""
    choices, stale = run.settings.choices, run.regime.of_tasks and run.schedule.work == "requests"
    return choices.lr_schedule.constant or not (stale and choices.algorithm.merges_by_lr)


EQUAL_STEPS = Fits(
    _equal_steps,
    'conflicts with algorithm "{run.algorithm.title}", which divides by the clients\' step size: '
    'it differs within a merge under schedule "{run.schedule.title}". Choose lr_schedule '
    '"constant", or schedule "rounds"',
)


def _split_by_labels(run: Any) -> bool:
    presence = run.settings.choices.presence
    return presence is not None and run.sessions is not None and presence.by_labels


BY_LABELS = (
    Fits(
        lambda run, _: not (_split_by_labels(run) and run.settings.choices.split.by_groups),
        "conflicts with split={run.settings.split[name]}, since it deals out samples by their "
        "labels: choose another split, or presence arrivals or trace",
    ),
    Fits(
        lambda run, _: not _split_by_labels(run) or run.settings.given.split is None,
        "conflicts with split=..., since it splits the data into groups of labels itself: choose "
        'presence "arrivals" or "trace", or leave split out',
    ),
)


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
    choice; None if the run has no such choice. Needs of a table are those of all its settings.
    ``task`` has one table per task. ``given`` marks the Python objects that replace settings and
    must be given to the run.

    Raises:
        ConfigError: an unknown key, or a wrong value.
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
            given = {  # also values changed in place, before the settings are resolved
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
            None if choices.delays is None else type(choices.delays),
            SectionVIC if choices.layout is None else type(choices.layout),
            self.network.channel,
            settings=self,
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
