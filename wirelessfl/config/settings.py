"""All settings of a run: typed choices and sections, or the objects that replace them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from channels.concurrency import cached_property
from wirelessfl.air.radio import SectionVIC
from wirelessfl.base.registry import Choice
from wirelessfl.config.choices import CHOSEN, DEFAULTS, KINDS, Choices, Regime
from wirelessfl.config.kinds import Frame
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
from wirelessfl.config.tables import settings_in
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
        choices = build_choices(values)
        return Settings(
            **vars(choices),
            **{name: values[name] for name in ("given", *SECTIONS, "task")},
            tables={k: ChoiceTable(values[k]) for k in CHOSEN if values[k] is not None},
            places=frozenset(settings_in(tables)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """The settings without what was computed from them, for copies and pickles."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

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
        return {name: self.table(name) for name in ORDER}

    def given_tables(self) -> dict[str, Any]:
        """The given settings by table, without defaults."""
        tables: dict[str, Any] = {"algorithm": dict(self.tables["algorithm"])}
        kinds = self.tables.keys() & {name for name, _ in self.places}  # others are derived again
        tables |= {kind: self._given_table(kind) for kind in KINDS if kind in kinds}
        for section in ("given", *SECTIONS):
            if stated := self.given_settings(section):
                tables[section] = stated
        if self.task:
            tables["task"] = tuple(dict(table) for table in self.task)
        return tables

    def given_settings(self, section: str) -> dict[str, Any]:
        """The settings of a section that were given, with their values."""
        marks = section == "given"  # all of them are
        return {
            key: value
            for key, value in self.table(section).items()
            if ((section, key) in self.places or marks) and value is not None
        }

    def replaced_by_network(self) -> dict[str, Any]:
        """The given settings that a network given from Python would replace, with their values."""
        stated, keys = self.given_settings("network"), replaced_by_network(self.frame.radio)
        return {key: stated[key] for key in keys if key in stated}

    def _given_table(self, kind: str) -> dict[str, Any]:
        table, choice = self.tables[kind], self.choice(kind)
        filled = {"name": DEFAULTS.get(kind, getattr(choice, "name", None)), **vars(choice)}
        stated = {
            key: value
            for key, value in table.items()
            if (kind, key) in self.places or value != filled.get(key)
        }
        if stated and kind not in DEFAULTS:  # the default depends on the algorithm
            stated["name"] = table["name"]
        return stated

    def states(self, section: str, key: str) -> bool:
        """Whether a setting was given, even if the given value is its default."""
        return (section, key) in self.places

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
            settings=self,
        )

    @property
    def network_replaced(self) -> bool:
        """Whether a given or named network replaces the settings of one."""
        return self.given.network is not None or self.network.network is not None

    @property
    def clients_known(self) -> bool:
        """Whether cells and clients are final, so that no other network can be given to the run."""
        return self.given.network is not None or bool(self.replaced_by_network())

    @property
    def total_rounds(self) -> int:
        """Total number of rounds over all sessions."""
        return self.training.rounds * (self.sessions.sessions or 1)
