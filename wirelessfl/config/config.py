"""The settings of a run: typed, checked, the same from TOML, from flags and from Python.

Field names are flag names (``data_dir`` is ``--data-dir``) and TOML keys; sections are TOML tables.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self, cast

import tomli_w
from pydantic import PrivateAttr

from wirelessfl.config.check_schedules import check_end
from wirelessfl.config.check_together import check_together
from wirelessfl.config.kinds import KINDS, chosen_classes, flag_homes
from wirelessfl.config.resolve import check, filled
from wirelessfl.config.sections import SECTIONS
from wirelessfl.config.settings import Settings
from wirelessfl.config.tables import (
    checked_tables,
    given_places,
    named_tables,
    read_toml,
    tables_from_flags,
    unknown_setting,
)
from wirelessfl.config.task_settings import by_tasks, table_places, typed_table, with_table
from wirelessfl.config.task_tables import ENDLESS, task_names
from wirelessfl.config.unused import Place, kept_tables, refusal, unused
from wirelessfl.errors import ConfigError


class Config(Settings):
    """All settings of a run, with every default filled in, and held against each other.

    Make one by ``Config.of``, ``from_flags`` or ``from_toml``. One made by ``Config(...)`` is not
    resolved yet; ``wirelessfl.run`` takes it, too.
    """

    _tasks: dict[str, Config] | None = PrivateAttr(None)

    @property
    def resolved(self) -> bool:
        """Whether defaults are filled in, and the settings go together."""
        return self._tasks is not None

    @property
    def tasks(self) -> dict[str, Config]:
        """By name, what each task is trained with: the run's settings, and its own table's.

        Without a table there is one task, that of the run.
        """
        config = self.resolve()
        return config._tasks or {config.data.dataset: config}

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Any],
        *,
        loose: Collection[Place] = (),
        dropped: set[Place] | None = None,
        of_task: bool = False,
    ) -> Config:
        """The configuration in nested ``tables``, with every default filled in and checked.

        Args:
            tables: settings by table. If none is of the network, one may still be given to the
                run, and what fits some network is not refused.
            loose: settings, by table and key, that are dropped instead of refused if they have no
                effect.
            dropped: receives what is dropped.
            of_task: whether this is one of several tasks, whose schedule the run has.

        Raises:
            ConfigError: an unknown key, a wrong value, a setting without effect, or settings that
                do not go together.
        """
        given = Settings(**checked_tables(tables))
        places = given_places(tables)
        idle = {place: why for place, why in unused(given).items() if place in places}
        if of_task or given.task:
            idle = {place: why for place, why in idle.items() if by_tasks(given, place) == of_task}
        cls._refuse(given, idle, loose, dropped)
        done = set(idle)
        if idle:
            given = Settings(**_without(tables, idle))
        # A default follows the other settings in copies.
        given.model_fields_set.difference_update(k for k in KINDS if tables.get(k) is None)
        config = cls._made(given, filled(given))
        check(config)
        if config.regime != "tasks" or of_task:
            return config
        config = config._with_tasks()
        idle = {place: why for place, why in config.unused().items() if place in places - done}
        cls._refuse(config, idle, loose, dropped)
        if not idle:
            return config
        return cls.of(_without(tables, idle), loose=loose, dropped=dropped)

    @staticmethod
    def _refuse(
        settings: Settings,
        idle: Mapping[Place, str],
        loose: Collection[Place],
        dropped: set[Place] | None,
    ) -> None:
        """Refuse given settings without effect; arguments are those of ``of``.

        Raises:
            ConfigError: there is one that must not be dropped.
        """
        for place, reason in idle.items():
            if place not in loose:
                raise ConfigError(refusal(settings, place, reason))
        if dropped is not None:
            dropped.update(idle)

    def resolve(self) -> Config:
        """The same settings, resolved.

        Raises:
            ConfigError: settings that do not go together.
        """
        return self if self.resolved else Config.of(self.given_tables())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The configuration with other tables, resolved anew: what followed from them follows.

        Args:
            update: tables that replace those of this one.
            deep: without effect.

        Raises:
            ConfigError: a wrong value, or settings that do not go together.
        """
        tables = self.given_tables()
        loose = given_places(tables) if update else ()
        return cast(Self, Config.of(tables | dict(update or {}), loose=loose))

    @classmethod
    def _made(
        cls, given: Settings, values: Mapping[str, Any], tasks: Mapping[str, Config] | None = None
    ) -> Config:
        """A resolved configuration of these values, whose choices are those of ``given``."""
        config = cls.model_construct(set(given.model_fields_set), **values)
        config._choices, config._tasks = given.choices, dict(tasks or {})
        config._origin = given._origin
        return config

    def _with_tasks(self) -> Config:
        """With the tables of tasks resolved, and unlimited rounds if something else ends the run.

        Raises:
            ConfigError: tasks that are wrong, or do not go together.
        """
        names = task_names(self.task, self.data.dataset) if self.task else []
        tables = dict(zip(names, self.task, strict=True))
        tasks = {name: self._of_task(table, name) for name, table in tables.items()}
        check_together(tasks or {self.data.dataset: self})
        values = dict(self) | {
            "task": tuple(typed_table(tables[name], name, task) for name, task in tasks.items())
        }
        targets = [task.evaluation.target for task in tasks.values() or [self]]
        ended = self.training.max_seconds is not None or None not in targets
        if ended and "rounds" not in self.training.model_fields_set:
            if not all("rounds" in table for table in tables.values()) or not tables:
                check_end(self)
            values["training"] = self.training.filled(rounds=ENDLESS)
            tasks = {
                name: task if "rounds" in tables[name] else task._endless()
                for name, task in tasks.items()
            }
        return self._made(self, values, tasks)

    def _endless(self) -> Config:
        """With no limit of rounds."""
        training = self.training.filled(rounds=ENDLESS)
        return self._made(self, {**dict(self), "training": training})

    def with_run(
        self,
        values: Mapping[str, Any],
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Config:
        """The same settings, computed or kept elsewhere, resolved.

        Args:
            values: of ``[run]``; tasks have them too, unless their tables have their own.
            tasks: by name, further values that go into a task's own table.
        """
        if not self.resolved:
            return self.resolve().with_run(values, tasks)
        for key in values:
            if key not in SECTIONS["run"].model_fields:
                raise ConfigError(unknown_setting(dict(self), "run", key, values[key]))
        further = {name: dict(run) for name, run in (tasks or {}).items()}
        tables = tuple(table | further.get(table["name"], {}) for table in self.task)
        run = self.run.model_copy(update=dict(values))
        by_task = {
            table["name"]: self.tasks[table["name"]].with_run(
                {key: value for key, value in values.items() if key not in table}
                | further.get(table["name"], {})
            )
            for table in tables
        }
        config = self._made(self, {**dict(self), "run": run, "task": tables}, by_task)
        config.model_fields_set.add("run")
        return config

    def settled(
        self,
        values: Mapping[str, Any],
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Config:
        """The same settings with what the run has chosen; arguments are those of ``with_run``.

        Values without effect are left out, so that the result is a configuration as well.
        """
        idle = self.unused()
        used = {key: value for key, value in values.items() if ("run", key) not in idle}
        return self.with_run(used, tasks)

    def unused(self) -> dict[Place, str]:
        """All settings without effect, by table and key, with the reason.

        A setting that tasks may have for themselves has one if a task uses it.
        """
        found, tasks = unused(self), [unused(task) for task in (self._tasks or {}).values()]
        if not tasks:
            return found
        run = {place: why for place, why in found.items() if not by_tasks(self, place)}
        by_none = set.intersection(*({*task} for task in tasks))
        return run | {place: tasks[0][place] for place in by_none if by_tasks(self, place)}

    def _of_task(self, table: Mapping[str, Any], name: str) -> Config:
        """What a task is trained with.

        Raises:
            ConfigError: its table has a wrong setting; the message names the task.
        """
        tables = with_table(self, table, name)
        loose = given_places(tables) - table_places(self, tables, table)
        try:
            return Config.of(tables, loose=loose, of_task=True)
        except ConfigError as error:
            raise ConfigError(f"task {name!r}: {error}") from error

    @classmethod
    def from_flags(cls, algorithm: str, **flags: Any) -> Config:
        """The configuration of ``wirelessfl run ALGORITHM --flag value ...``.

        Args:
            algorithm: its name.
            flags: settings by their flat names, e.g. ``data_dir``, ``cells``, ``lr``.
        """
        return cls.merged({"algorithm": {"name": algorithm}}, flags)

    @classmethod
    def merged(
        cls, tables: Mapping[str, Any], flags: Mapping[str, Any], dropped: set[str] | None = None
    ) -> Config:
        """The configuration in ``tables``, changed by flags.

        A setting in ``tables`` that a flag deprives of its effect is dropped.

        Args:
            tables: settings by table.
            flags: settings by flat name.
            dropped: receives flags without effect; None refuses them.

        Raises:
            ConfigError: a wrong setting.
        """
        if not flags:
            return cls.of(tables)
        merged = tables_from_flags(tables, flags, dropped)
        homes = flag_homes(chosen_classes(named_tables(merged)))
        by_flags = {flag: homes.get(flag, (flag, "name")) for flag in flags}
        loose, idle = _used_places(tables) - {*by_flags.values()}, set[Place]()
        if dropped is None:
            return cls.of(merged, loose=loose)
        config = cls.of(merged, loose=loose | {*by_flags.values()}, dropped=idle)
        dropped |= {flag for flag, place in by_flags.items() if place in idle}
        return config

    @classmethod
    def from_toml(cls, path: Path) -> Config:
        """The configuration in a TOML file."""
        return cls.of(read_toml(path))

    def to_toml(self) -> str:
        """The settings with an effect, as TOML; reading it back gives the same object."""
        plain: dict[str, Any] = _plain(kept_tables(self, self.unused()))
        return tomli_w.dumps({key: table for key, table in plain.items() if table})


def _without(tables: Mapping[str, Any], idle: Collection[Place]) -> dict[str, Any]:
    """Tables without some of their settings; a choice without its name is left out."""
    kept: dict[str, Any] = {}
    for section, table in tables.items():
        if (section, "name") in idle:
            continue
        if isinstance(table, Mapping):
            table = {key: value for key, value in table.items() if (section, key) not in idle}
        kept[section] = table
    return kept


def _used_places(tables: Mapping[str, Any]) -> set[Place]:
    """Settings of a file that have an effect without flags; empty if the file is wrong."""
    try:
        alone = Settings(**named_tables(tables))
    except ConfigError:
        return set()
    return given_places(tables) - unused(alone).keys()


def _plain(value: Any) -> Any:
    """``value`` as TOML can hold it: no None, paths as text."""
    if isinstance(value, Mapping):
        return {key: _plain(v) for key, v in value.items() if v is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value
