"""The settings of a run: typed, checked, the same from TOML, from flags and from Python.

Field names are flag names (``data_dir`` is ``--data-dir``) and TOML keys; sections are TOML tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, cast

from pydantic import PrivateAttr

from wirelessfl.config.check_ignored import check_given_schedule
from wirelessfl.config.check_schedules import check_end
from wirelessfl.config.check_together import check_together
from wirelessfl.config.resolve import check, filled, placed
from wirelessfl.config.settings import Settings
from wirelessfl.config.tables import named_tables, read_toml, tables_from_flags
from wirelessfl.config.task_settings import typed_table, with_table
from wirelessfl.config.task_tables import ENDLESS, task_names
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
    def of(cls, tables: Mapping[str, Any]) -> Config:
        """The configuration in nested ``tables``, with every default filled in and checked.

        Args:
            tables: settings by table. Where none is of the network, one may still be given to the
                run, and what fits some network is not refused.

        Raises:
            ConfigError: an unknown key, a wrong value, or settings that do not go together.
        """
        given = Settings(**named_tables(tables))
        check_given_schedule(given)
        # What goes with the algorithm's name follows it into copies with another algorithm.
        given.model_fields_set.difference_update(
            kind for kind in ("schedule", "assignment") if tables.get(kind) is None
        )
        config = cls._made(given, filled(given))
        check(config)
        config = cls._made(config, {**dict(config), "sessions": placed(config.sessions)})
        return config._with_tasks() if config.regime == "tasks" else config

    def resolve(self) -> Config:
        """The same settings, resolved.

        Raises:
            ConfigError: settings that do not go together.
        """
        return self if self.resolved else self.model_copy()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The configuration with other tables, resolved anew: what followed from them follows.

        Args:
            update: tables that replace those of this one.
            deep: without effect.

        Raises:
            ConfigError: a wrong value, or settings that do not go together.
        """
        return cast(Self, Config.of(self.model_dump(exclude_unset=True) | dict(update or {})))

    @classmethod
    def _made(
        cls, given: Settings, values: Mapping[str, Any], tasks: Mapping[str, Config] | None = None
    ) -> Config:
        """A resolved configuration of these values, whose choices are those of ``given``."""
        config = cls.model_construct(set(given.model_fields_set), **values)
        config._choices, config._tasks = given.choices, dict(tasks or {})
        return config

    def _with_tasks(self) -> Config:
        """With the tables of tasks resolved, and as many rounds as it takes where these end runs.

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

    def _of_task(self, table: Mapping[str, Any], name: str) -> Config:
        """What a task is trained with.

        Raises:
            ConfigError: its table has a wrong setting; the message names the task.
        """
        tables = with_table(self, table, name)
        try:
            return Config.of(tables)
        except ConfigError as error:
            raise ConfigError(f"task {name!r}: {error}") from error

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
