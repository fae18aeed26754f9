"""Compares runs or groups of runs: settings that differ, accuracies, costs, and paired effects."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.rows import finite, measured_field
from wirelessfl.base.terminal import rendered
from wirelessfl.base.wording import heading_of
from wirelessfl.results.given_networks import network_hash
from wirelessfl.results.intervals import Effect, difference, ratio
from wirelessfl.results.runs import Runs
from wirelessfl.results.selection import Case, order_key, value_text, varied
from wirelessfl.results.tables import (
    COSTS,
    Table,
    last_value,
    monitor_of,
    summarised,
)
from wirelessfl.runs.targets import CostToTarget, Monitor, cost_to

MIN_PAIRS = 2
"""Seeds that an interval needs."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of groups of runs; the first one is the reference.

    Args:
        labels: label of each group.
        settings: by setting that differs, its values in each group; seeds only if nothing else
            differs.
        table: accuracies and costs of the groups.
        effects: by label of the other groups, the differences to the reference, paired by seed.
        notes: why runs may not be comparable, one line each.
    """

    labels: list[str]
    settings: dict[str, list[list[Any]]]
    table: Table
    effects: dict[str, dict[str, Effect]]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """The comparison as text."""
        rows = [
            [heading_of(name), *(" | ".join(map(value_text, group)) for group in values)]
            for name, values in self.settings.items()
        ]
        parts = ["settings that differ" if rows else "no settings differ"]
        parts += [rendered(["setting", *self.labels], rows)] if rows else []
        parts.append(str(self.table))
        for label, effects in self.effects.items():
            parts.append(f"{label} against {self.labels[0]}, paired by seed (95 % interval):")
            parts += [f"  {name}: {effect}" for name, effect in effects.items()]
        return "\n".join([*parts, *(f"Note: {note}." for note in self.notes)])

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """The comparison for JSON; effects as values by pair, ratios as natural logarithms."""
        return {
            "groups": self.labels,
            "settings": self.settings,
            "table": self.table.rows,
            "paired": {
                label: {
                    name: {
                        "values": list(effect.values),
                        "mean": effect.mean if effect.values else None,
                        "interval": finite([*effect.interval]) if effect.values else None,
                        "shown": str(effect),
                    }
                    for name, effect in effects.items()
                }
                for label, effects in self.effects.items()
            },
            "notes": list(self.notes),
        }


def compare(
    groups: Mapping[str, Runs],
    *,
    target: float | None = None,
    field: str | None = None,
    tests: int = 1,
) -> Comparison:
    """Compare groups of runs with the first one.

    Args:
        groups: at least two groups of runs of one model, by label.
        target: value of ``field`` that runs should reach, see ``Runs.table``.
        field: field of rows that the target refers to.
        tests: number of tests that are averaged.
    """
    if len(groups) < 2:
        raise ConfigError("compare needs two runs or groups: name at least two.")
    cases = []
    for label, runs in groups.items():
        if not any(run.rows for run in runs):
            raise ConfigError(f"{label} has no rows yet.")
        tasks = next((run.tasks for run in runs if len(run.tasks) > 1), None)
        if tasks is not None:
            raise ConfigError(
                f"{label} trains several models ({', '.join(tasks)}): use `wirelessfl table`."
            )
        cases.append(Case(("group",), (label,), tuple(runs), None, label))
    table = summarised(cases, target, field, None, tests)
    order = {label: place for place, label in enumerate(groups)}
    table = Table(
        table.title,
        table.headings,
        sorted(table.rows, key=lambda row: order[row["group"]]),
        table.means,
        (),
    )
    monitor = monitor_of(cases, field)
    if target is None:
        goals = {settings.get("target") for case in cases for settings in case.settings}
        target = goals.pop() if len(goals) == 1 else None
    effects, notes = {}, list(chain(*(case.notes for case in cases)))
    for case in cases[1:]:
        common = sorted({*case.seeds} & {*cases[0].seeds})
        twice = next((c for c in (cases[0], case) if len({*c.seeds}) < len(c.seeds)), None)
        if twice is not None:
            notes.append(
                f"{twice.label}: several runs have the same seed, so {case.label} is not paired"
            )
        elif len(common) < MIN_PAIRS and max(len(case.runs), len(cases[0].runs)) > 1:
            number = f"{len(common)} seed{'' if len(common) == 1 else 's'}"
            notes.append(f"{case.label} and {cases[0].label} have {number} in common: no interval")
        elif len(common) >= MIN_PAIRS:
            effects[case.label] = _effects(cases[0], case, target, monitor, tests)
    return Comparison([*groups], _different(cases), table, effects, tuple(notes))


def _different(cases: Sequence[Case]) -> dict[str, list[list[Any]]]:
    """Settings whose values differ between the groups, with the values of each."""
    names = varied([settings for case in cases for settings in case.settings])
    different = {}
    for name in names:
        by_case = []
        for case in cases:
            values: list[Any] = []
            for settings in case.settings:
                if settings.get(name) not in values:
                    values.append(settings.get(name))
            by_case.append(sorted(values, key=order_key))
        if any(values != by_case[0] for values in by_case):
            different[name] = by_case
    networks = [sorted({network_hash(run) or "" for run in case.runs}) for case in cases]
    if any(hashes != networks[0] for hashes in networks):
        different["network"] = [[h or None for h in hashes] for hashes in networks]
    seeds: list[list[Any]] = [sorted({*case.seeds}) for case in cases]
    if not different and any(numbers != seeds[0] for numbers in seeds):
        different["seed"] = seeds
    return different


def _effects(
    reference: Case, case: Case, target: float | None, monitor: Monitor, tests: int
) -> dict[str, Effect]:
    """Differences in accuracy, and ratios of costs, paired by seed."""
    measured = measured_field(
        row for group in (case, reference) for rows in group.rows for row in rows
    )
    more, less = (_finals(group, measured, tests) for group in (case, reference))
    if measured == "accuracy":
        effects = {"accuracy, in points": difference("", more, less, least=0.0)}
    else:
        effects = {"loss": difference("", more, less, least=0.0, shown="number")}
    for field, heading in COSTS.values():
        costs = [_costs(group, field, target, monitor, tests) for group in (case, reference)]
        shared = {*costs[0]} & {*costs[1]}
        if shared and all(by[seed].cost > 0 for by in costs for seed in shared):
            effects[f"{heading}, as a ratio"] = ratio("", costs[0], costs[1], least=1.0)
    return effects


def _finals(case: Case, measured: str, tests: int) -> dict[int, float]:
    """Final accuracy in percent, or loss, by seed; nan for a run that diverged."""
    values = {
        seed: last_value(rows, measured, tests)
        for seed, rows in zip(case.seeds, case.rows, strict=True)
        if rows
    }
    scale = 100 if measured == "accuracy" else 1
    return {seed: math.nan if v is None else scale * v for seed, v in values.items()}


def _costs(
    case: Case, field: str, target: float | None, monitor: Monitor, tests: int
) -> dict[int, CostToTarget]:
    """The cost until the target by seed, or that of the whole run if it is not reached."""
    runs = {seed: rows for seed, rows in zip(case.seeds, case.rows, strict=True) if rows}
    if target is None:
        return {seed: CostToTarget(float(rows[-1][field]), True) for seed, rows in runs.items()}
    return {seed: cost_to(rows, target, tests, monitor).of(field) for seed, rows in runs.items()}
