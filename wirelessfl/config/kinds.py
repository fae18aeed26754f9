"""The kinds of choices, their defaults, and the table of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from wirelessfl.algorithms import Algorithm, algorithm_classes, find_algorithm
from wirelessfl.assigners import ASSIGNERS
from wirelessfl.assignment import ASSIGNMENTS
from wirelessfl.config.regimes import Regime
from wirelessfl.config.sections import SECTIONS
from wirelessfl.data.splits import DATA_SPLITS
from wirelessfl.errors import ConfigError
from wirelessfl.fading import FADINGS
from wirelessfl.failures import FAILURES
from wirelessfl.layouts import LAYOUTS, LayoutModel
from wirelessfl.layouts.section_vi_c import SectionVIC
from wirelessfl.losses import LOSSES, GivenLoss
from wirelessfl.models.choice import MODEL_CHOICES, GivenModel
from wirelessfl.path_loss import PATH_LOSSES
from wirelessfl.registry import Choice, Kind
from wirelessfl.rounds.compression import COMPRESSIONS
from wirelessfl.rounds.step_sizes import STEP_SIZES
from wirelessfl.schedules import SCHEDULES, Schedule
from wirelessfl.selection import SELECTIONS
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
    "select": SELECTIONS,
    "layout": LAYOUTS,
    "path_loss": PATH_LOSSES,
    "fading": FADINGS,
    "uplink": UPLINKS,
    "failures": FAILURES,
    "schedule": SCHEDULES,
    "delays": DELAYS,
    "assignment": ASSIGNMENTS,
    "warm_start": WARM_STARTS,
    "presence": PRESENCES,
    "loss": LOSSES,
    "assigner": ASSIGNERS,
}
"""Tables with a ``name``, besides ``algorithm``. If two have a setting of the same name, the
earlier one's flag has no prefix."""
DEFAULTS: Mapping[str, str] = {
    "split": "noniid",
    "model": "fcnn",
    "lr_schedule": "constant",
    "compression": "none",
    "select": "random",
    "layout": "section-vi-c",
    "path_loss": "umi",
    "fading": "rayleigh",
    "uplink": "tdma",
    "failures": "none",
    "delays": "wireless",
    "warm_start": "previous",
    "presence": "labels",
    "loss": "cross-entropy",
    "assigner": "none",
}
"""Default names. The algorithm determines the defaults of schedule and assignment."""
OPTIONAL = ("assigner",)
"""Kinds without a table if the default is chosen."""
MAX_OWNERS = 3
"""Maximum number of choices that a message names; it only counts the remaining ones."""


@dataclass(frozen=True)
class Frame:
    """The settings that decide which kinds of choices a run has.

    Args:
        algorithm: class of the algorithm.
        uplink: class of the uplink.
        schedule: class of the schedule.
        sessions: number of sessions; None without sessions.
        radio: whether CPU speeds and links determine latencies; a latency model may replace them.
        given_model: whether a module is given as an object.
        layout: class of the layout; without effect if there is no radio channel.
        channel: file of recorded channels; None to draw channels.
    """

    algorithm: type[Algorithm]
    uplink: type[Uplink]
    schedule: type[Schedule]
    sessions: object
    radio: bool = True
    given_model: bool = False
    layout: type[LayoutModel] = SectionVIC
    channel: object = None

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Frame:
        """The frame of tables that name the algorithm, the uplink and the schedule.

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
            layout=LAYOUTS.find(_value(tables.get("layout"), "name") or DEFAULTS["layout"]),
            channel=_value(tables.get("network"), "channel"),
        )
        delays = tables.get("delays")
        if frame.regime != "tasks" or delays is None:
            return frame
        radio = DELAYS.find(delays["name"]).radio
        return cls(**{**vars(frame), "radio": radio})

    @property
    def regime(self) -> Regime:
        """What the run consists of."""
        if self.schedule.work == "rounds":
            return Regime.ROUNDS if self.sessions is None else Regime.SESSIONS
        return Regime.TASKS if self.algorithm.topology == "star" else Regime.CELLS

    def why_not(self, kind: str) -> str | None:
        """The reason why the run has no choice of this kind, see ``unused``; None if it has one."""
        schedule, uplink = f'schedule "{self.schedule.title}"', f'uplink "{self.uplink.title}"'
        match kind:
            case "assigner" if self.algorithm.brings_assigner:
                return (
                    f'conflicts with algorithm "{self.algorithm.title}", which has its own: choose '
                    "another algorithm, such as fedavg or hfedavg"
                )
            case "assignment" | "delays" if self.algorithm.topology != "star":
                return with_cells(self.algorithm.title)
            case "assignment" if self.schedule.work != "task rounds":
                return (
                    f"conflicts with {schedule}, which has no rounds of several tasks: choose "
                    'schedule "simultaneous"'
                )
            case "warm_start" | "presence" if self.schedule.work != "rounds":
                return f'conflicts with {schedule}, which has no sessions: choose schedule "rounds"'
            case "warm_start" | "presence" if self.sessions is None:
                return "needs sessions: set sessions"
            case "delays" if self.regime != "tasks":
                return f'conflicts with {schedule}: choose schedule "buffered" or "simultaneous"'
            case "compression" if self.regime == "tasks":
                return (
                    f"conflicts with {schedule}, which has no synchronous downlink: choose "
                    'schedule "rounds"'
                )
            case "failures" if self.regime == "tasks":
                return f'conflicts with {schedule}: set drop_out, or choose schedule "rounds"'
            case "failures" if self.uplink.gives == "sum":
                return f'conflicts with {uplink}, which sends no packets: choose uplink "tdma"'
            case "failures" if not self.uplink.radio:
                return f'conflicts with {uplink}, which has no radio channel: choose uplink "tdma"'
            case "select" if self.regime == "tasks":
                return (
                    f"conflicts with {schedule}, which assigns clients to tasks: choose schedule "
                    '"rounds"'
                )
            case "select" if self.regime == "cells":
                return (
                    f"conflicts with {schedule}, in which all clients of a cell train: choose "
                    'schedule "rounds"'
                )
            case "layout" | "path_loss" | "fading" if not self.radio:
                return 'conflicts with delays "shifted-exponential": choose delays "wireless"'
            case "layout" | "path_loss" | "fading" if not self.uplink.radio:
                return f'conflicts with {uplink}, which has no radio channel: choose uplink "tdma"'
            case "layout" | "path_loss" | "fading" if self.channel is not None:
                return self.recorded
            case "path_loss" if not self.layout.positions:
                return self.without_positions
        return None

    @property
    def recorded(self) -> str:
        """The reason to refuse settings that recorded channels replace."""
        return f"conflicts with channel={self.channel}, which replaces it: choose one of them"

    @property
    def without_positions(self) -> str:
        """The reason to refuse settings of links between positions."""
        return (
            f'conflicts with layout "{self.layout.title}", which has no positions: choose layout '
            '"disc", "hexagonal" or "file"'
        )


def with_cells(algorithm: str) -> str:
    """The reason to refuse settings of tasks and of requests to clients if there are cells."""
    return f'conflicts with algorithm "{algorithm}", which has cells: choose one without cells'


def _value(section: Any, key: str) -> Any:
    """The value of a setting in a table or section; None if there is no table."""
    if isinstance(section, Mapping):
        return section.get(key)
    return getattr(section, key, None)


def class_of(table: Mapping[str, Any]) -> type[Algorithm]:
    """The class of the algorithm that a table names, combined with the one inside its cells."""
    local = table.get("local")
    if local is not None and not isinstance(local, str):
        raise ConfigError(f"local is {shown(local)}: give the name of an algorithm.")
    return find_algorithm(table["name"], local)


def title_of(table: Mapping[str, Any]) -> str:
    """The name in a table, and the algorithm inside the cells if the table sets it."""
    local = f" with local {table['local']!r}" if "local" in table else ""
    return f"{table['name']!r}{local}"


def words(kind: str) -> str:
    """The name of a kind as written in messages."""
    return kind.replace("_", " ").replace("lr ", "lr-")


def chosen_classes(tables: Mapping[str, Any]) -> dict[str, type[Choice]]:
    """The classes that the tables name, by kind.

    Raises:
        ConfigError: a name is unknown.
    """
    given: dict[str, type[Choice]] = {"model": GivenModel, "loss": GivenLoss}
    given = {k: cls for k, cls in given.items() if _value(tables.get("given"), k) is not None}
    found: dict[str, type[Choice]] = {}
    for kind, known in KINDS.items():
        if tables.get(kind) is None:
            continue
        found[kind] = given.get(kind) or known.find(tables[kind]["name"])
    return found | {"algorithm": class_of(tables["algorithm"])}


def flag_homes(owners: Mapping[str, type[Choice]]) -> dict[str, tuple[str, str]]:
    """Table and key of each flag.

    If an earlier table has a setting of the same name, the choice's name prefixes the flag.

    Args:
        owners: the chosen classes, by kind.
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
    """Section and key of each flag that does not belong to a choice."""
    return {
        name: (section, name) for section, model in SECTIONS.items() for name in model.model_fields
    }


def owners(key: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind with choices that have this setting, and the names of these choices."""
    known: dict[str, Mapping[str, type[Any]]] = {
        **{kind: choices.classes() for kind, choices in KINDS.items()},
        "algorithm": algorithm_classes(),
    }
    for kind, classes in known.items():
        having = [name for name, cls in classes.items() if key in {f.name for f in fields(cls)}]
        if having:
            yield kind, having


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
