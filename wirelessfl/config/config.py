"""The configuration of a run: typed, checked, and the same from TOML, flags or Python.

Field names are flag names (``data_dir`` is ``--data-dir``) and TOML keys; sections are TOML tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import tomli_w

from channels.concurrency import cached_property
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.wording import shown
from wirelessfl.config.choices import ENDLESS, KINDS, task_names
from wirelessfl.config.kinds import section_homes
from wirelessfl.config.named import GivenSection, Trust, import_paths
from wirelessfl.config.resolve import check, filled, refusal, unused
from wirelessfl.config.sections.section import read_only, refuse_change
from wirelessfl.config.settings import Place, Settings
from wirelessfl.config.stored import plain
from wirelessfl.config.tables import (
    OnIdle,
    named_tables,
    read_toml,
    settings_in,
    tables_from_flags,
    unknown_setting,
)
from wirelessfl.config.tasks import (
    by_tasks,
    check_end,
    check_tasks,
    typed_table,
    with_table,
)
from wirelessfl.config.typed_tables import typed

COPIES = ("replace", "copy", "update", "model_copy")
"""Names under which other packages make a changed copy."""


@dataclass(frozen=True, init=False, kw_only=True)
class Config(Settings):
    """All settings of a run: complete, checked for conflicts, and read-only.

    Its attributes are sections and choices: ``config.training.rounds``, ``config.algorithm.lr``.
    Create one with ``from_flags``, ``from_toml``, or from tables of settings:
    ``Config(algorithm="hist", training={"rounds": 5})``, or ``Config.of(tables)``. From one, make
    another with ``changed``.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("hist", cells=2, clients=10, rounds=5, lr=0.1)
    >>> config.training.rounds, config.network.clients, config.algorithm.lr
    (5, 10, 0.1)
    """

    _tasks: dict[str, Config] = field(repr=False)

    def __init__(self, *names: Any, **tables: Any) -> None:
        if names:
            raise ConfigError(
                f"Config got {shown(names[0])} without a name, but takes tables by name: give "
                'wirelessfl.Config.from_flags("fedavg", lr=0.1) for an algorithm and its settings, '
                "Config.from_toml(path) for a file, or Config.of(tables)."
            )
        if "places" in tables:  # all fields, from dataclasses.replace
            raise ConfigError(read_only())
        vars(self).update(Config.of(tables).__getstate__())

    def __getattr__(self, name: str) -> Any:
        """Refuse unknown attributes; those for a copy are answered with how to make one."""
        remedy = f" Its {read_only()}" if name in COPIES else ""
        raise AttributeError(f"a Config has no attribute {name!r}.{remedy}")

    @property
    def tasks(self) -> dict[str, Config]:
        """Settings of each task, by name: the run's settings, overridden by the task's table.

        Without tables of tasks, the run itself is the only task.
        """
        return self._tasks or {self.dataset.title: self}

    @classmethod
    def of(cls, tables: Mapping[str, Any]) -> Config:
        """The configuration in nested ``tables``, with every default filled in and checked.

        Args:
            tables: settings by table. Without network settings, the number of clients is not
                checked, because a network may still be given to the run.

        Raises:
            ConfigError: an unknown key, a wrong value, a setting without effect, or settings that
                conflict.
        """
        return cls._resolved(tables)

    @classmethod
    def _resolved(
        cls,
        tables: Mapping[str, Any],
        refused: Collection[Place] | None = None,
        *,
        of_task: bool = False,
    ) -> Config:
        """The configuration in ``tables``, which may be those of one of several tasks.

        All ways to make a configuration end here, and only here tables are read again: those of
        tasks, and those without settings that have no effect.

        Settings in ``refused`` are refused if they have no effect, None for all settings; the
        others are dropped.
        """
        settings = Settings.read(tables)
        without_effect = unused(settings)
        idle = {place: why for place, why in without_effect.items() if place in settings.places}
        if of_task or settings.task:
            idle = {
                place: why for place, why in idle.items() if by_tasks(settings, place) == of_task
            }
        if not idle:
            config = cls._made(filled(settings, without_effect), _tasks={})
            check(config)
            if not config.regime.of_tasks or of_task:
                return config
            settings = config = config._with_tasks()
            idle = {place: why for place, why in config.unused().items() if place in config.places}
            if not idle:
                return config
        for place, reason in idle.items():
            if refused is None or place in refused:
                raise ConfigError(refusal(settings, place, reason))
        return cls._resolved(_without(tables, idle), refused, of_task=of_task)

    def with_known_network(self) -> Config:
        """The resolved settings of a run to which no network is given.

        Defaults of the network count as given, so what depends on the number of clients is checked.

        Raises:
            ConfigError: settings conflict with the cells or clients.
        """
        idle = {key for section, key in self.unused() if section == "network"}
        defaults = {
            ("network", entry.name)
            for entry in fields(self.network)
            if getattr(self.network, entry.name) == entry.default is not None
            and entry.name not in idle
        }
        if defaults <= self.places:
            return self
        made = self._made(self, places=self.places | defaults)
        check(made)
        if self.regime.of_tasks:
            tasks = {name: task.with_known_network() for name, task in self._tasks.items()}
            made = self._made(made, _tasks=tasks)
            check_tasks(tasks or {made.dataset.title: made})
        return made

    def changed(
        self, *, on_idle: OnIdle = "refuse", given: GivenSection | None = None, **flags: Any
    ) -> Config:
        """A copy with other settings; defaults that depend on them are derived again.

        Settings of this configuration that have no effect there are dropped, and so are the
        predictions of a design.

        >>> import wirelessfl
        >>> config = wirelessfl.Config.from_flags("hfedavg", cells=2, lr=0.1)
        >>> star = config.changed(algorithm="fedavg", uplink="ofdma", rounds=5)
        >>> star.network.cells, star.uplink.name, star.training.rounds
        (1, 'ofdma', 5)

        Args:
            on_idle: whether flags without effect are refused or dropped.
            given: marks of the objects that replace settings; None for those of this configuration.
            flags: settings by their flat names, as in ``from_flags``; None for those that are not
                given. A choice is a name, which drops the settings of another one, or a table.

        Raises:
            ConfigError: a wrong setting.
        """
        tables = self.given_tables()
        used = {*settings_in(tables)}
        if not isinstance(given, GivenSection | None):
            raise ConfigError(
                f"given is {shown(given)}, but the objects of a run are not settings: give them to "
                "wirelessfl.run."
            )
        if given is not None:
            tables["given"] = asdict(given)
        return self._overridden(tables, flags, used, on_idle)

    @classmethod
    def with_objects(
        cls, settings: Settings, given: GivenSection, flags: Mapping[str, Any]
    ) -> Config:
        """The configuration of a run with given objects, and flags that follow from them."""
        tables = settings.given_tables() | {"given": asdict(given)}
        return cls.of(tables_from_flags(tables, flags)[0])

    @staticmethod
    def _made(settings: Settings, **values: Any) -> Config:
        """A configuration with these settings, but other values of some attributes."""
        config = Config.__new__(Config)
        vars(config).update(settings.__getstate__() | values)
        return config

    def _with_tasks(self) -> Config:
        """A copy with resolved tasks; rounds are unlimited if time or targets end the run."""
        names = task_names(self.task, self.dataset.title) if self.task else []
        tables = dict(zip(names, self.task, strict=True))
        tasks = {name: self._of_task(table, name) for name, table in tables.items()}
        check_tasks(tasks or {self.dataset.title: self})
        typed_tables = tuple(typed_table(tables[name], name, task) for name, task in tasks.items())
        training = self.training
        targets = [task.evaluation.target for task in tasks.values() or [self]]
        ended = self.training.max_seconds is not None or None not in targets
        if ended and ("training", "rounds") not in self.places:
            if not all("rounds" in table for table in tables.values()) or not tables:
                check_end(self)
            training = replace(training, rounds=ENDLESS)
            tasks |= {
                name: self._made(task, training=replace(task.training, rounds=ENDLESS))
                for name, task in tasks.items()
                if "rounds" not in tables[name]
            }
        return self._made(self, task=typed_tables, training=training, _tasks=tasks)

    def with_run(
        self,
        values: Mapping[str, Any],
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Config:
        """A copy with other settings of ``[run]``, not resolved again; idle ones are left out.

        Args:
            values: new settings of ``[run]``, which tasks inherit unless their tables set them.
            tasks: further values for the tables of tasks, by task name.
        """
        for key in values:
            if ("run", key) not in section_homes().values():
                raise ConfigError(unknown_setting(self.all_tables(), "run", key, values[key]))
        further = {name: dict(run) for name, run in (tasks or {}).items()}
        tables = tuple(table | further.get(table["name"], {}) for table in self.task)
        idle = self.unused()
        changed = typed("run", {k: v for k, v in values.items() if ("run", k) not in idle})
        places = self.places - {("run", key) for key in changed}
        places |= {("run", key) for key, value in changed.items() if value is not None}
        by_task = {
            table["name"]: self.tasks[table["name"]].with_run(
                {key: value for key, value in values.items() if key not in table}
                | further.get(table["name"], {})
            )
            for table in tables
        }
        run = replace(self.run, **changed)
        return self._made(self, run=run, places=places, task=tables, _tasks=by_task)

    def unused(self) -> Mapping[Place, str]:
        """The reason for each setting without effect, by table and key.

        A setting that tasks may override has an effect if any task uses it.
        """
        return self._unused

    @cached_property
    def _unused(self) -> Mapping[Place, str]:
        idle, tasks = unused(self), [unused(task) for task in self._tasks.values()]
        if not tasks:
            return idle
        run = {place: why for place, why in idle.items() if not by_tasks(self, place)}
        by_none = set.intersection(*({*task} for task in tasks))
        return run | {place: tasks[0][place] for place in by_none if by_tasks(self, place)}

    def _of_task(self, table: Mapping[str, Any], name: str) -> Config:
        tables, refused = with_table(self, table, name)
        try:
            return Config._resolved(tables, refused, of_task=True)
        except ConfigError as error:
            raise ConfigError(f"task {name!r}: {error}") from error

    @classmethod
    def from_flags(cls, algorithm: str, **flags: Any) -> Config:
        """The configuration of ``wirelessfl run ALGORITHM --flag value ...``.

        Args:
            algorithm: name of the algorithm.
            flags: settings by their flat names, e.g. ``data_dir``, ``cells``, ``lr``; None for
                those that are not given.

        Raises:
            ConfigError: a setting is unknown, invalid, without effect or in conflict with others.
        """
        return cls.merged({"algorithm": {"name": algorithm}}, flags)

    @classmethod
    def merged(
        cls, tables: Mapping[str, Any], flags: Mapping[str, Any], on_idle: OnIdle = "refuse"
    ) -> Config:
        """The configuration in ``tables``, overridden by flags.

        Settings in ``tables`` that have no effect because of a flag are dropped, and so are the
        predictions of a design whose settings a flag changes.

        Args:
            tables: settings by table.
            flags: settings by flat name; None for those that are not given.
            on_idle: whether flags without effect are refused or dropped.

        Raises:
            ConfigError: a wrong setting.
        """
        if not flags:
            return cls.of(tables)
        return cls._overridden(tables, flags, _used_places(tables), on_idle)

    @classmethod
    def _overridden(
        cls, tables: Mapping[str, Any], flags: Mapping[str, Any], used: set[Place], on_idle: OnIdle
    ) -> Config:
        """As ``merged``, for tables of which the settings in ``used`` have an effect."""
        if on_idle not in ("refuse", "drop"):
            raise ConfigError(f'on_idle is {shown(on_idle)}: give "refuse" or "drop".')
        merged, by_flags = tables_from_flags(tables, flags, on_idle)
        dropped = used - by_flags if on_idle == "refuse" else used | by_flags
        config = cls._resolved(merged, {*settings_in(merged)} - dropped)
        if config.run.predicted is not None and "predicted" not in flags:
            try:
                alone = cls.of(tables).given_tables()
            except ConfigError:  # incomplete without the flags
                alone = {}
            if _without_run(alone) != _without_run(config.given_tables()):
                config = config.with_run({"predicted": None})
        return config

    @classmethod
    def from_toml(cls, path: Path, trust: Trust = False) -> Config:
        """The configuration in a TOML file.

        Args:
            path: the file; it has a table per group of settings, as ``to_toml`` writes it.
            trust: whether the file may name code to import, such as ``my_module:MyModel``; or the
                import paths that it may name.

        Raises:
            ConfigError: the file cannot be read, names code without being trusted, or a setting
                is unknown, invalid, without effect or in conflict with others.
        """
        return cls.of(read_toml(path, trust))

    def used_tables(self) -> dict[str, Any]:
        """The settings that have an effect, by table."""
        return _without(self.all_tables(), self.unused())

    def to_toml(self) -> str:
        """The settings that have an effect, as TOML; a run of this file is the same run."""
        return tomli_w.dumps({k: table for k, table in plain(self.used_tables()).items() if table})

    @property
    def code(self) -> frozenset[str]:
        """Import paths of the user's objects that the settings name."""
        return frozenset(path for _, path in import_paths(self.used_tables()))


# That of a frozen dataclass cannot be written into the class.
Config.__setattr__ = refuse_change  # type: ignore[method-assign]


def _without(tables: Mapping[str, Any], idle: Collection[Place]) -> dict[str, Any]:
    """Tables without the settings in ``idle``, and without choices of which nothing is left."""
    kept: dict[str, Any] = {}
    for name, table in tables.items():
        if isinstance(table, Mapping):
            table = {key: value for key, value in table.items() if (name, key) not in idle}
        elif (name, "name") in idle:
            continue
        if table or name not in KINDS:
            kept[name] = table
    return kept


def _without_run(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: table for name, table in tables.items() if name != "run"}


def _used_places(tables: Mapping[str, Any]) -> set[Place]:
    """Settings in ``tables`` that have an effect without flags; empty if ``tables`` are invalid."""
    places = {*settings_in(tables)}
    if places == {("algorithm", "name")}:  # which always has one
        return places
    try:
        return places - unused(Settings.read(named_tables(tables))).keys()
    except ConfigError:
        return set()
