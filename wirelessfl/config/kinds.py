"""The kinds of choices that tables name, and which table or section has each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from wirelessfl.algorithms import Algorithm, algorithm_classes, find_algorithm
from wirelessfl.assignment import ASSIGNMENTS
from wirelessfl.config.sections import SECTIONS
from wirelessfl.data.splits import DATA_SPLITS
from wirelessfl.errors import ConfigError
from wirelessfl.fading import FADINGS
from wirelessfl.models.choice import MODEL_CHOICES, GivenModel
from wirelessfl.registry import Choice, Kind
from wirelessfl.rounds.compression import COMPRESSIONS
from wirelessfl.rounds.step_sizes import STEP_SIZES
from wirelessfl.schedules import SCHEDULES, Schedule
from wirelessfl.sessions.presence import PRESENCES
from wirelessfl.tasks.delays import DELAYS
from wirelessfl.uplinks import UPLINKS, Uplink
from wirelessfl.warm_starts import WARM_STARTS
from wirelessfl.wording import shown

KINDS: Mapping[str, Kind[Any]] = {
    "split": DATA_SPLITS,
    "model": MODEL_CHOICES,
    "lr_schedule": STEP_SIZES,
    "compression": COMPRESSIONS,
    "fading": FADINGS,
    "uplink": UPLINKS,
    "schedule": SCHEDULES,
    "delays": DELAYS,
    "assignment": ASSIGNMENTS,
    "warm_start": WARM_STARTS,
    "presence": PRESENCES,
}
"""Tables with a ``name``, beside ``algorithm``. If two have a setting of the same name, the earlier
one has the plain flag."""
DEFAULTS: Mapping[str, str] = {
    "split": "noniid",
    "model": "fcnn",
    "lr_schedule": "constant",
    "compression": "none",
    "fading": "rayleigh",
    "uplink": "tdma",
    "delays": "wireless",
    "warm_start": "previous",
    "presence": "labels",
}
"""Names of choices by default. Schedule and assignment follow from the algorithm."""
MAX_OWNERS = 3
"""Choices that a message names; of more it gives the number."""

Regime = Literal["rounds", "sessions", "tasks", "cells"]


@dataclass(frozen=True)
class Frame:
    """What decides which kinds of choices a run has.

    Args:
        algorithm: its class.
        uplink: its class.
        schedule: its class.
        sessions: number of sessions; None without sessions.
        radio: whether CPU speeds and links count; a latency model may replace them.
        given_model: whether a module is given as an object.
    """

    algorithm: type[Algorithm]
    uplink: type[Uplink]
    schedule: type[Schedule]
    sessions: object
    radio: bool = True
    given_model: bool = False

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Frame:
        """That of tables in which algorithm, uplink and schedule have a name.

        Raises:
            ConfigError: a name is unknown.
        """
        sessions, given = tables.get("sessions"), tables.get("given")
        frame = cls(
            class_of(tables["algorithm"]),
            UPLINKS.find(tables["uplink"]["name"]),
            SCHEDULES.find(tables["schedule"]["name"]),
            _value(sessions, "sessions"),
            given_model=_value(given, "model") is not None,
        )
        delays = tables.get("delays")
        if frame.regime != "tasks" or delays is None:
            return frame
        radio = DELAYS.find(delays["name"]).radio
        return cls(**{**vars(frame), "radio": radio})

    @property
    def regime(self) -> Regime:
        """What carries the run out: rounds of one model, in sessions or not; tasks, which get
        requests or common rounds; or the cells of one model, each a request."""
        if self.schedule.work == "rounds":
            return "rounds" if self.sessions is None else "sessions"
        return "tasks" if self.algorithm.topology == "star" else "cells"

    def why_not(self, kind: str) -> str | None:
        """Why the run has no choice of a kind, see ``unused``; None if it has."""
        schedule, uplink = f'schedule "{self.schedule.name}"', f'uplink "{self.uplink.name}"'
        match kind:
            case "assignment" | "delays" if self.algorithm.topology != "star":
                return with_cells(self.algorithm.name)
            case "assignment" if self.schedule.work != "task rounds":
                return (
                    f"conflicts with {schedule}, which has no rounds of several tasks: choose "
                    'schedule "simultaneous"'
                )
            case "warm_start" | "presence" if self.schedule.work != "rounds":
                return f'conflicts with {schedule}, which has no sessions: choose schedule "rounds"'
            case "warm_start" | "presence" if self.sessions is None:
                return "needs sessions: give their number"
            case "delays" if self.regime != "tasks":
                return f'conflicts with {schedule}: choose schedule "buffered" or "simultaneous"'
            case "compression" if self.regime == "tasks":
                return (
                    f"conflicts with {schedule}, which sends no round's model: choose schedule "
                    '"rounds"'
                )
            case "fading" if not self.radio:
                return 'conflicts with delays "shifted-exponential": choose delays "wireless"'
            case "fading" if not self.uplink.radio:
                return f'conflicts with {uplink}, which has no radio channel: choose uplink "tdma"'
        return None


def with_cells(algorithm: str) -> str:
    """Why an algorithm with cells has no settings of requests to clients and tasks."""
    return f'conflicts with algorithm "{algorithm}", which has cells: choose one without'


def _value(section: Any, key: str) -> Any:
    """The value of a setting in a table, or in a section."""
    if isinstance(section, Mapping):
        return section.get(key)
    return getattr(section, key, None)


def class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The algorithm that a table names, with what it runs in its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {shown(local)}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def title_of(table: Mapping[str, Any]) -> str:
    """The name in a table, with the algorithm inside cells."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"


def words(kind: str) -> str:
    """A kind in a sentence."""
    return kind.replace("_", " ").replace("lr ", "lr-")


def chosen_classes(tables: Mapping[str, Any]) -> dict[str, type[Choice]]:
    """The classes that tables with a name choose, by kind.

    Raises:
        ConfigError: a name is unknown.
    """
    given_model = _value(tables.get("given"), "model") is not None
    found: dict[str, type[Choice]] = {}
    for kind, known in KINDS.items():
        if tables.get(kind) is None:
            continue
        given = kind == "model" and given_model
        found[kind] = GivenModel if given else known.find(tables[kind]["name"])
    return found | {"algorithm": class_of(tables["algorithm"])}


def flag_homes(owners: Mapping[str, type[Choice]]) -> dict[str, tuple[str, str]]:
    """Where each flat name belongs: flag -> (section, key).

    If something else has a setting of the same name, a choice's setting gets its name as prefix.

    Args:
        owners: the classes chosen, by kind.
    """
    homes = section_homes()
    for kind in (*KINDS, "algorithm"):
        if kind not in owners:
            continue
        for entry in fields(owners[kind]):
            flag = entry.name
            if flag in homes:
                flag = f"{owners[kind].name.replace('-', '_')}_{flag}"
            homes[flag] = (kind, entry.name)
    return homes


def section_homes() -> dict[str, tuple[str, str]]:
    """Where the flags of sections belong."""
    return {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }


def owners(key: str) -> Iterator[tuple[str, list[str]]]:
    """The choices that have a setting, by kind."""
    known: dict[str, Mapping[str, type[Any]]] = {
        **{kind: choices.classes() for kind, choices in KINDS.items()},
        "algorithm": algorithm_classes(),
    }
    for kind, classes in known.items():
        having = [name for name, cls in classes.items() if key in {f.name for f in fields(cls)}]
        if having:
            yield kind, having


def owners_of(key: str) -> str:
    """Which choices have a setting, as a sentence; empty if none has."""
    for kind, having in owners(key):
        shown_names = " and ".join(having)
        if len(having) > MAX_OWNERS:
            rest = len(having) - MAX_OWNERS
            shown_names = f"{', '.join(having[:MAX_OWNERS])} and {rest} more"
        return f" It is a setting of {words(kind)} {shown_names}."
    return ""
