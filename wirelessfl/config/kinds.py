"""What decides which kinds of choices a run has, and the table of each setting."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property, lru_cache
from typing import Any, cast

from wirelessfl.air.delays import DELAYS, DelayModel
from wirelessfl.air.radio import LAYOUTS, LayoutModel, SectionVIC
from wirelessfl.air.uplinks import UPLINKS, Uplink
from wirelessfl.algorithms import (
    LOCAL,
    Algorithm,
    HFedAvg,
    Method,
    algorithm_classes,
    find_algorithm,
    find_local,
)
from wirelessfl.algorithms.assigners import Assigner
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import unmet
from wirelessfl.base.registry import Choice
from wirelessfl.base.wording import shown
from wirelessfl.config.choices import DEFAULTS, KINDS, Regime
from wirelessfl.config.sections import SECTIONS
from wirelessfl.data.choice import given_dataset
from wirelessfl.engine.schedules import SCHEDULES, Schedule
from wirelessfl.models.choice import GivenModel
from wirelessfl.models.losses import GivenLoss

PARTS = {"local": "algorithm"}
"""Choices inside others, with the table of their settings."""
MAX_OWNERS = 3
"""Maximum number of choices that a message names; it only counts the remaining ones."""


@dataclass(frozen=True)
class Frame:
    """The settings that decide which kinds of choices a run has.

    Args:
        algorithm: class of the algorithm.
        local: class of the algorithm inside its cells; None in a star.
        uplink: class of the uplink.
        schedule: class of the schedule.
        sessions: number of sessions; None without sessions.
        delays: class of the latency model; None if the run has none.
        layout: class of the layout; without effect if there is no radio channel.
        channel: file of recorded channels; None to draw channels.
        battery_joules: energy of full batteries; None without batteries.
        settings: all ``Settings``; None while only the kinds of choices are decided.
    """

    algorithm: type[Method]
    local: type[Algorithm] | None
    uplink: type[Uplink]
    schedule: type[Schedule]
    sessions: object
    delays: type[DelayModel] | None = None
    layout: type[LayoutModel] = SectionVIC
    channel: object = None
    battery_joules: object = None
    settings: Any = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Frame:
        """The frame of tables that name the algorithm, the uplink and the schedule.

        Raises:
            ConfigError: a name is unknown.
        """
        sessions = tables.get("sessions")
        frame = cls(
            *classes_of(tables["algorithm"]),
            UPLINKS.find(tables["uplink"]["name"]),
            SCHEDULES.find(tables["schedule"]["name"]),
            _value(sessions, "sessions"),
            layout=LAYOUTS.find(_value(tables.get("layout"), "name") or DEFAULTS["layout"]),
            channel=_value(tables.get("network"), "channel"),
            battery_joules=_value(tables.get("training"), "battery_joules"),
        )
        delays = tables.get("delays")
        if not frame.regime.of_tasks or delays is None:
            return frame
        return replace(frame, delays=DELAYS.find(delays["name"]))

    @cached_property
    def title(self) -> str:
        """The algorithm, and the one inside its cells unless it is the default, for messages."""
        inner = self.local
        inside = "" if inner is None or inner.title == LOCAL else f" with local={inner.title}"
        return f"{self.algorithm.title}{inside}"

    @property
    def brings_assigner(self) -> bool:
        """Whether the algorithm, or the one inside its cells, has submodels of its own."""
        parts = filter(None, (self.algorithm, self.local))
        return any(issubclass(part, Assigner) for part in parts)

    @cached_property
    def radio(self) -> bool:
        """Whether CPU speeds and links determine latencies; a latency model may replace them."""
        return self.delays is None or self.delays.radio

    @property
    def mixed_widths(self) -> bool:
        """Whether clients of a node train submodels of different widths."""
        return bool(self.settings.used_assigner.of_clients)

    @property
    def splits_layers(self) -> bool:
        """Whether clients or nodes train submodels."""
        return self.mixed_widths or bool(self.settings.used_assigner.of_cells)

    @cached_property
    def regime(self) -> Regime:
        """What the run consists of."""
        if self.schedule.work == "rounds":
            return Regime.ROUNDS if self.sessions is None else Regime.SESSIONS
        return Regime.TASKS if self.local is None else Regime.CELLS

    @cached_property
    def lacking(self) -> Mapping[str, str]:
        """The reason for each kind of which the run has no choice, see ``unused``."""
        lacking = unmet(
            [((kind, "name"), registry.needs, None) for kind, registry in KINDS.items()], self
        )
        return {kind: why for (kind, _), why in lacking.items()}


def _value(section: Any, key: str) -> Any:
    """The value of a setting in a table or section; None if there is no table."""
    if isinstance(section, Mapping):
        return section.get(key)
    return getattr(section, key, None)


def classes_of(table: Mapping[str, Any]) -> tuple[type[Method], type[Algorithm] | None]:
    """The class of the algorithm that a table names, and that of the one inside its cells.

    Raises:
        ConfigError: a name is unknown, or the two cannot be combined.
    """
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {shown(local)}: give the name of an algorithm.")
    algorithm = find_algorithm(table["name"])
    has_cells = issubclass(algorithm, HFedAvg)
    return algorithm, find_local(algorithm, local or LOCAL) if has_cells else None


def algorithm_settings(table: Mapping[str, Any]) -> list[str]:
    """Names of the settings of an algorithm, those of the one in its cells first."""
    classes = filter(None, reversed(classes_of(table)))
    return [name for cls in classes for name in _settings(cast(Hashable, cls))]


@lru_cache(maxsize=512)  # of users' classes, too
def _settings(cls: Hashable) -> tuple[str, ...]:
    """Names of the settings of a choice, from its class."""
    return tuple(entry.name for entry in fields(cast(Any, cls)))


def title_of(table: Mapping[str, Any]) -> str:
    """The name in a table, and the algorithm inside the cells if the table sets it."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"


def words(kind: str) -> str:
    """The name of a kind as written in messages."""
    return kind.replace("_", " ").replace("lr ", "lr-")


def given_classes(marks: Any) -> dict[str, type[Choice]]:
    """The classes of the choices that given objects replace, by kind.

    Args:
        marks: the table ``[given]``, as a table or section; None if nothing is given.
    """
    classes: dict[str, type[Choice]] = {"model": GivenModel, "loss": GivenLoss}
    classes = {kind: cls for kind, cls in classes.items() if _value(marks, kind) is not None}
    data = _value(marks, "data")
    return classes if data is None else classes | {"dataset": given_dataset(str(data))}


def chosen_classes(tables: Mapping[str, Any]) -> dict[str, type[Choice]]:
    """The classes that the tables name, by kind.

    Raises:
        ConfigError: a name is unknown.
    """
    replaced = given_classes(tables.get("given"))
    classes: dict[str, type[Choice]] = {}
    for kind, registry in KINDS.items():
        if tables.get(kind) is None:
            continue
        classes[kind] = replaced.get(kind) or registry.find(tables[kind]["name"])
    classes["algorithm"], local = classes_of(tables["algorithm"])
    return classes if local is None else classes | {"local": local}


def flag_homes(owners: Mapping[str, type[Choice]]) -> dict[str, tuple[str, str]]:
    """Table and key of each flag.

    If an earlier table has a setting of the same name, the choice's name prefixes the flag.

    Args:
        owners: the chosen classes, by kind.
    """
    homes = dict(section_homes())
    for kind in (*KINDS, "algorithm", *PARTS):
        if kind in owners:
            names = flag_names(kind, owners[kind], homes)
            homes |= {flag: (PARTS.get(kind, kind), key) for key, flag in names.items()}
    return homes


def flag_names(kind: str, owner: type[Choice], taken: Container[str]) -> dict[str, str]:
    """The flag of each setting of a choice, by the setting's name.

    Args:
        kind: kind of the choice, which may have a prefix for all of its flags.
        owner: class of the choice.
        taken: flags of earlier tables; a setting with the name of one of these or of a kind has the
            choice's name as prefix.
    """
    prefix, of_kind = owner.name.replace("-", "_"), prefix_of(kind)
    names = {name: of_kind + name for name in _settings(cast(Hashable, owner))}
    return {
        name: f"{prefix}_{flag}" if flag in taken or flag in KINDS else flag
        for name, flag in names.items()
    }


def prefix_of(kind: str) -> str:
    """Prefix of the flags of the settings of a kind; "" for none."""
    return KINDS[kind].prefix if kind in KINDS else ""


@cache
def section_homes() -> Mapping[str, tuple[str, str]]:
    """Section and key of each flag that does not belong to a choice."""
    return {
        entry.name: (name, entry.name)
        for name, section in SECTIONS.items()
        for entry in fields(section)
    }


def owners(key: str) -> list[tuple[str, list[str]]]:
    """Each kind with choices that have this setting, and the names of these choices."""
    return [*_all_owners().get(key, {}).items()]


@cache
def _all_owners() -> Mapping[str, Mapping[str, list[str]]]:
    """The names of the choices that have a setting, by setting (and flag) and kind."""
    owners: dict[str, dict[str, list[str]]] = {}
    having = [
        (kind, name, _settings(cast(Hashable, cls)))
        for kind, choices in KINDS.items()
        for name, cls in choices.classes().items()
    ]
    having += [
        ("algorithm", name, (*dict.fromkeys(algorithm_settings({"name": name})),))
        for name in algorithm_classes()
    ]
    for kind, name, keys in having:
        for key in keys:
            for flag in {key, prefix_of(kind) + key}:
                owners.setdefault(flag, {}).setdefault(kind, []).append(name)
    return owners


def first_names(having: Sequence[str], form: str = "{}") -> list[str]:
    """The first names in a format, and how many more there are; for messages."""
    rest = len(having) - MAX_OWNERS
    return [form.format(name) for name in having[:MAX_OWNERS]] + [f"{rest} more"] * (rest > 0)


def listed(having: Sequence[str], last: str, form: str = "{}") -> str:
    """The first names in a format and the number of the others, e.g. "a, b or c"; for messages.

    Args:
        having: the names.
        last: the word before the last one, "and" or "or".
        form: format of a name.
    """
    rest = len(having) - MAX_OWNERS
    few = rest <= 1  # one more name is as short as its number
    names = [form.format(name) for name in (having if few else having[:MAX_OWNERS])]
    names += [] if few else [f"{rest} others"]
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def owner_names(key: str) -> str:
    """The choices with a setting, e.g. "split iid, dirichlet and natural"; "" if there are none.

    Choices of several kinds are joined by "or".
    """
    return " or ".join(f"{words(kind)} {listed(having, 'and')}" for kind, having in owners(key))


def owners_of(key: str) -> str:
    """A sentence that names the choices with a setting; "" if there are none."""
    names = owner_names(key)
    return f" It is a setting of {names}." if names else ""
