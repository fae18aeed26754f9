"""The settings of a run: typed, checked once, the same from TOML, from flags and from Python.

Field names are flag names (``data_dir`` is ``--data-dir``) and TOML keys; sections are TOML tables.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast, get_type_hints

import tomli_w
from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from wirelessfl.algorithms import LOCAL, Algorithm
from wirelessfl.config.given import Given, chosen, given_values, replaced
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
    refuse_bool,
)
from wirelessfl.config.sessions import check_pilot, check_sessions
from wirelessfl.config.tables import (
    class_of,
    hint,
    named_tables,
    read_toml,
    tables_from_flags,
    title_of,
    unknown_setting,
)
from wirelessfl.config.tasks import (
    ENDLESS,
    check_tasks,
    check_together,
    task_names,
    typed_table,
    with_table,
)
from wirelessfl.errors import ConfigError
from wirelessfl.rounds.participants import check_participation
from wirelessfl.uplinks import Uplink, find_uplink
from wirelessfl.warm_starts import WarmStart, find_warm_start
from wirelessfl.wording import explain


class Config(Section):
    """All settings of a run.

    ``algorithm``, ``uplink`` and, with sessions, ``warm_start`` are tables with a ``name`` and the
    settings of what it names; ``task`` holds a table for each of several tasks, see
    ``wirelessfl.config.tasks``. ``given`` marks objects that replace settings; the run needs them.
    Make one by ``Config.of``, ``from_flags`` or ``from_toml``, which fill in what depends on the
    algorithm and check what goes together.

    Raises:
        ConfigError: an unknown key, or a wrong value.
    """

    algorithm: dict[str, Any]
    uplink: dict[str, Any]
    given: Given = Given()
    data: DataSection = DataSection()
    model: ModelSection = ModelSection()
    network: NetworkSection = NetworkSection()
    training: TrainingSection = TrainingSection()
    sessions: SessionsSection = SessionsSection()
    evaluation: EvaluationSection = EvaluationSection()
    run: RunSection = RunSection()
    warm_start: dict[str, Any] | None = None
    task: tuple[dict[str, Any], ...] = ()

    def __init__(self, **tables: Any) -> None:
        named = named_tables(tables)
        try:
            super().__init__(**named)
        except ValidationError as error:
            raise ConfigError(explain(error, _setting, partial(unknown_setting, named))) from None

    @property
    def tasks(self) -> dict[str, Config]:
        """By name, what each task is trained with: the run's settings, and its own table's.

        Without a table there is one task, that of the run.
        """
        if not self.task:
            return {self.data.dataset: self}
        names = task_names(self.task, self.data.dataset)
        return {
            name: _of_task(self, table, name) for name, table in zip(names, self.task, strict=True)
        }

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Config:
        """The configuration in nested ``tables``, with every default filled in and checked.

        Raises:
            ConfigError: an unknown key, a wrong value, or settings that do not go together.
        """
        return _resolve(cls(**named_tables(tables)))

    @classmethod
    def from_flags(cls, algorithm: str, **flags: Any) -> Config:
        """The configuration of ``wirelessfl run ALGORITHM --flag value ...``.

        Args:
            algorithm: its name.
            flags: settings by their flat names, e.g. ``data_dir``, ``cells``, ``lr``.
        """
        return cls.of(tables_from_flags({"algorithm": {"name": algorithm}}, flags))

    @classmethod
    def from_toml(cls, path: Path) -> Config:
        """The configuration in a TOML file."""
        return cls.of(read_toml(path))

    def to_toml(self) -> str:
        """The configuration as TOML; reading it back gives the same object."""
        shown = self.model_dump(exclude=dict(replaced(self.given, self.network)))
        plain: dict[str, Any] = _plain(shown)
        for key in ("task", "given"):
            if not plain[key]:
                del plain[key]
        return tomli_w.dumps(plain)

    def build_algorithm(self) -> Algorithm:
        """The algorithm with its settings."""
        built: Algorithm = _build(class_of(self.algorithm), self.algorithm)
        return built

    def build_uplink(self) -> Uplink:
        """The uplink with its settings."""
        built: Uplink = _build(find_uplink(self.uplink["name"]), self.uplink)
        return built

    def build_warm_start(self) -> WarmStart | None:
        """The warm start with its settings; None without sessions."""
        if self.warm_start is None:
            return None
        built: WarmStart = _build(find_warm_start(self.warm_start["name"]), self.warm_start)
        return built

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are settled: no other network can be given to the run."""
        return self.given.network is not None or bool(chosen(self.network))

    @property
    def total_rounds(self) -> int:
        """Training rounds of all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)


def _plain(value: Any) -> Any:
    """``value`` as TOML can hold it: no None, paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


@lru_cache(maxsize=256)
def _adapter(owner: Hashable) -> TypeAdapter[Any]:
    """What checks the values of an algorithm's table; making one takes milliseconds."""
    adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, owner))
    return adapter


def _build(owner: type[Any], table: Mapping[str, Any]) -> Any:
    """An algorithm or uplink from its table, every value checked."""
    settings = {key: value for key, value in table.items() if key != "name"}
    known = [entry.name for entry in fields(owner)]
    hints = get_type_hints(owner, include_extras=True)
    for key in settings:
        if key not in known:
            raise ConfigError(
                f"unknown setting {key!r} of {title_of(table)}.{hint(key, known)} "
                f"It has {', '.join(known) or 'none'}."
            )
        refuse_bool(key, settings[key], hints[key])
    infos = {key: FieldInfo.from_annotation(hints[key]) for key in known}
    try:
        built = _adapter(cast(Hashable, owner)).validate_python(settings)
    except ValidationError as error:
        raise ConfigError(
            explain(error, lambda place: _named(place, infos), lambda *_: "")
        ) from None
    for key, value in vars(built).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{key} is {value}: a finite number is needed.")
    return built


def _setting(place: tuple[Any, ...]) -> tuple[str, FieldInfo] | None:
    """The setting at a place in the tables, see ``explain``."""
    section = SECTIONS.get(place[0]) if place else None
    found = None if section is None else _named(place[1:], section.model_fields)
    return found and (f"{place[0]}.{found[0]}", found[1])


def _named(place: tuple[Any, ...], infos: Mapping[str, FieldInfo]) -> tuple[str, FieldInfo] | None:
    return (place[0], infos[place[0]]) if place and place[0] in infos else None


def _resolve(config: Config) -> Config:
    """Fill in what depends on the algorithm, and refuse what makes no sense together."""
    for section, values in given_values(config.given).items():
        filled = getattr(config, section).filled(**values)
        config = config.model_copy(update={section: filled})
    algorithm, uplink = config.build_algorithm(), config.build_uplink()
    name, star = config.algorithm["name"], algorithm.topology == "star"
    check_tasks(config, algorithm, uplink)
    check_sessions(config, algorithm)
    warm_start, started = config.build_warm_start(), config.warm_start
    if started is not None:
        started = {"name": started["name"], **vars(warm_start)}
        check_pilot(config.sessions.sessions, started)
    alone = [payload.name for payload in algorithm.payloads if payload.each]
    if alone and uplink.gives == "sum":
        local = config.algorithm.get("local", LOCAL)
        who = f'algorithm "{name}"' if local == LOCAL else f'local "{local}"'
        raise ConfigError(
            f"{who} needs each client's {' and '.join(alone)}, and uplink "
            f'"{config.uplink["name"]}" gives only their sum. Choose uplink "tdma" or "ofdma".'
        )
    cells = config.network.cells or (1 if star else min(4, config.network.clients))
    edge_rounds = config.training.edge_rounds or (1 if star else 5)
    if star and (cells > 1 or edge_rounds > 1):
        raise ConfigError(
            f'algorithm "{name}" is a star: one server, one edge round (cells is {cells}, '
            f'edge_rounds {edge_rounds}). Choose cells 1 and edge_rounds 1, or "hfedavg".'
        )
    if cells > config.network.clients:
        raise ConfigError(
            f"cells is {cells} and clients {config.network.clients}: every cell needs a client."
        )
    training = config.training
    check_participation(
        algorithm,
        config.network.clients,
        cells,
        training.clients_per_round,
        training.tracking_clients,
        known=config.clients_known,
    )
    if not algorithm.timing.rounds and training.compression != "none":
        raise ConfigError(
            f'compression is "{training.compression}", and algorithm "{name}" has no rounds in '
            "which a model is compressed. Leave it out."
        )
    if config.network.step_seconds is not None and config.network.cpu_hz is not None:
        raise ConfigError(
            f"step_seconds is {config.network.step_seconds} and cpu_hz {config.network.cpu_hz}: a "
            "step takes the one, or cycles_per_step over the other. Leave one out."
        )
    if config.network.cpu_hz and not 0 < config.network.cpu_hz[0] <= config.network.cpu_hz[1]:
        raise ConfigError(f"cpu_hz is {config.network.cpu_hz}: give 0 < LOW <= HIGH, in Hz.")
    gains = config.network.path_gain_db
    if gains and gains[0] > gains[1]:
        raise ConfigError(f"path_gain_db is {gains}: give LOW <= HIGH, in dB.")
    config = config.model_copy(
        update={
            "algorithm": {"name": name, **vars(algorithm)},
            "uplink": {"name": config.uplink["name"], **vars(uplink)},
            "network": config.network.filled(
                cells=cells, coherence=config.network.coherence or uplink.coherence
            ),
            "training": config.training.model_copy(update={"edge_rounds": edge_rounds}),
            "warm_start": started,
            "sessions": _placed(config.sessions),
        }
    )
    if algorithm.timing.rounds:
        return config
    tasks = config.tasks
    if config.task:
        tables = tuple(
            typed_table(table, name, own)
            for table, (name, own) in zip(config.task, tasks.items(), strict=True)
        )
        config = config.model_copy(update={"task": tables})
    check_together(tasks)
    endless = training.max_seconds is not None or all(
        own.evaluation.target is not None for own in tasks.values()
    )
    if endless and "rounds" not in training.model_fields_set:
        unlimited = config.training.model_copy(update={"rounds": ENDLESS})
        config = config.model_copy(update={"training": unlimited})
    return config


def _placed(sessions: SessionsSection) -> SessionsSection:
    """With the trace where it is, whatever the present folder is later."""
    if sessions.trace is None:
        return sessions
    return sessions.model_copy(update={"trace": sessions.trace.absolute()})


def _of_task(config: Config, table: Mapping[str, Any], name: str) -> Config:
    """What a task is trained with.

    Raises:
        ConfigError: its table has a wrong setting; the message names the task.
    """
    tables = with_table(config, table, name)
    try:
        return Config.of(tables)
    except ConfigError as error:
        raise ConfigError(f"task {name!r}: {error}") from error
