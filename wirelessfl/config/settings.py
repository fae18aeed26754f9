"""All settings of a run: typed choices and sections, or the objects that replace them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from channels.concurrency import cached_property
from wirelessfl.air.compression import RESIDUAL
from wirelessfl.air.radio import SectionVIC
from wirelessfl.algorithms.algorithm import stored_vectors
from wirelessfl.base.registry import Choice
from wirelessfl.config.choices import CHOSEN, DEFAULTS, Choices, Regime
from wirelessfl.config.kinds import Frame, chosen_classes, flag_homes
from wirelessfl.config.named import GivenSection, replaced_by_network
from wirelessfl.config.sections import (
    SECTIONS,
    DataSection,
    EvaluationSection,
    NetworkSection,
    RunSection,
    SessionsSection,
    TrainingSection,
)
from wirelessfl.config.tables import NAMED, settings_in
from wirelessfl.config.typed_tables import (
    ORDER,
    ChoiceTable,
    build_choices,
    read_tables,
)

Place = tuple[str, str]
"""Table and key of a setting."""


@dataclass(frozen=True, kw_only=True)
class Settings(Choices):
    """All settings of a run: its choices, and the sections of all other settings.

    Args:
        given: the Python objects that replace settings and must be given to the run.
        data: the data set.
        network: cells, clients, radio and devices.
        training: rounds, batches and local steps.
        sessions: sessions between which clients join and leave.
        evaluation: what is evaluated, and when a run ends.
        run: seed, folders and how the run is executed.
        task: the table of each task, as given.
        tables: the table of each choice: its ``name``, or import path, and its settings.
        places: table and key of each given setting.
    """

    given: GivenSection
    data: DataSection
    network: NetworkSection
    training: TrainingSection
    sessions: SessionsSection
    evaluation: EvaluationSection
    run: RunSection
    task: tuple[dict[str, Any], ...]
    tables: Mapping[str, Mapping[str, Any]] = field(repr=False)
    places: frozenset[Place] = field(compare=False, repr=False)

    @classmethod
    def read(cls, tables: Mapping[str, Any]) -> Settings:
        """The settings in ``tables``.

        Raises:
            ConfigError: an unknown key, or a wrong value.
        """
        values = read_tables(tables)
        return Settings(
            **build_choices(values),
            **{name: values[name] for name in ("given", *SECTIONS, "task")},
            tables={k: ChoiceTable(values[k]) for k in CHOSEN if values[k] is not None},
            places=frozenset(settings_in(tables)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """The settings without what was computed from them, for copies and pickles."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def client_vectors(self) -> tuple[str, ...]:
        """Names of the vectors [P] that a run stores for each client."""
        residual = (RESIDUAL,) if self.training.error_feedback else ()
        return (*stored_vectors(self.rule), *residual)

    def choice(self, kind: str) -> Choice | None:
        """The choice of a kind; None if the run has none, and for sections."""
        choice: Choice | None = getattr(self, kind) if kind in CHOSEN else None
        return choice

    def named(self, kind: str) -> str:
        """Name or import path of the choice of a kind, as given."""
        return str(self.tables[kind]["name"])

    def table(self, name: str) -> Any:
        """The settings of a section or a choice, by name; None if there is no choice."""
        if name in CHOSEN:
            return self.tables.get(name)
        if name == "task":
            return self.task
        return asdict(self.given) if name == "given" else {**vars(getattr(self, name))}

    def all_tables(self) -> dict[str, Any]:
        """The settings of all sections, choices and tasks, by name."""
        return {name: table for name in ORDER if (table := self.table(name)) is not None}

    def given_tables(self) -> dict[str, Any]:
        """The given settings by table, without defaults."""
        tables: dict[str, Any] = {}
        for name in (*CHOSEN, "given", *SECTIONS):
            if stated := self.given_settings(name):
                # The default of some kinds depends on the algorithm.
                named = name in CHOSEN and name not in DEFAULTS
                tables[name] = stated | ({"name": self.named(name)} if named else {})
        if self.task:
            tables["task"] = tuple(dict(table) for table in self.task)
        return tables

    def given_settings(self, table: str) -> dict[str, Any]:
        """The settings of a table that were given, with their values."""
        marks = table == "given"  # all of them are
        return {
            key: value
            for key, value in (self.table(table) or {}).items()
            if ((table, key) in self.places or marks) and value is not None
        }

    def replaced_by_network(self) -> dict[str, Any]:
        """The given settings that a network given from Python would replace, with their values."""
        stated, keys = self.given_settings("network"), replaced_by_network(self.frame.radio)
        return {key: stated[key] for key in keys if key in stated}

    @property
    def homes(self) -> dict[str, Place]:
        """Table and key of each setting by its flat name, with the choices of the run."""
        choices = {name: (name, "name") for name in NAMED}
        return choices | flag_homes(chosen_classes(self.all_tables()))

    @property
    def regime(self) -> Regime:
        """What the run consists of, see ``Frame.regime``."""
        return self.frame.regime

    @cached_property
    def frame(self) -> Frame:
        """The settings that decide which kinds of choices the run has."""
        rule = self.rule
        return Frame(
            type(self.algorithm),
            None if rule is self.algorithm else type(rule),
            type(self.uplink),
            type(self.schedule),
            self.sessions.sessions,
            None if self.delays is None else type(self.delays),
            SectionVIC if self.layout is None else type(self.layout),
            self.network.channel,
            self.training.battery_joules,
            settings=self,
        )

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are final, so that no other network can be given to the run."""
        return self.given.network is not None or bool(self.replaced_by_network())

    @property
    def total_rounds(self) -> int:
        """Total number of rounds over all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)
