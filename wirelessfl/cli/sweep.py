"""``wirelessfl sweep``: runs all combinations of the given values."""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wirelessfl.cli.flags import given_flags
from wirelessfl.cli.show import TO_TARGET, TOTALS, cells_of, sweep_progress, with_validation
from wirelessfl.config import Config
from wirelessfl.config.kinds import first_names
from wirelessfl.config.sections import WITHOUT_RESULTS
from wirelessfl.errors import ConfigError
from wirelessfl.observers.console import line_of
from wirelessfl.runs.directory import Row
from wirelessfl.runs.result import RunResult
from wirelessfl.runs.sweep import Failure, SweepError, sweep
from wirelessfl.signals import Terminated

OWN = ("config", "json", "trust", "command", "quiet", "jobs", "ray", "out")


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``run`` does not have."""
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="concurrent runs, one CPU thread each (default: 1)",
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="address of a Ray cluster; local starts one here"
    )


def sweep_command(arguments: argparse.Namespace, tables: dict[str, Any]) -> int:
    """Check all combinations, run them, and print a table with one row per finished run.

    As JSON, failed runs have rows too, with the reason as ``error``.

    Args:
        arguments: parsed command line; settings are lists of values.
        tables: the configuration file's tables, which flags override.

    Raises:
        SweepError: runs failed; raised after printing.
    """
    if arguments.jobs < 1:
        raise ConfigError(f"jobs is {arguments.jobs}: give at least 1.")
    flags = given_flags(arguments, OWN)
    one = (
        *WITHOUT_RESULTS,
        "algorithm",
        "task",
    )  # settings with one value; all tasks together count as one
    lists = {name: [value] if name in one else value for name, value in flags.items()}
    choices = [
        dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())
    ]
    configs = combinations(tables, choices)
    varied = [name for name, values in lists.items() if len(values) > 1]
    for name in varied:
        if configs[0].task and all(name in table for table in configs[0].task):
            raise ConfigError(
                f"the sweep varies {name}, but every task sets its own, so all runs would be "
                f"equal. Leave {name} out of the tasks, or vary another setting."
            )
    described = [{name: config_value(config, name) for name in varied} for config in configs]
    labels = [
        ", ".join(f"{k} {v}" for k, v in entry.items() if v is not None) or "run"
        for entry in described
    ]
    root = Path(arguments.out or "runs/sweep")
    runs = [(label, c.total_rounds) for label, c in zip(labels, configs, strict=True)]
    console = Console(stderr=True, quiet=arguments.quiet)

    def on_found(found: Sequence[int], others: Sequence[int]) -> None:
        if found:
            few = "; ".join(first_names([labels[place] for place in found]))
            number = "1 finished run" if len(found) == 1 else f"{len(found)} finished runs"
            text = f"reading {number} from {root} ({few}), training {len(others)}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    last: dict[int, Row] = {}

    def on_end(place: int) -> None:
        if place in last and not console.is_terminal:
            text = f"{labels[place]}: {line_of(last[place])}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    outcomes: Sequence[RunResult | Failure]
    failed: SweepError | None = None
    options = {"jobs": arguments.jobs, "ray": arguments.ray}
    try:
        with sweep_progress(runs, console) as show:

            def on_row(place: int, row: Row) -> None:
                last[place] = row
                show(place, row)

            told: dict[str, Any] = {"on_row": on_row, "on_end": on_end, "on_found": on_found}
            outcomes = sweep(configs, root, **options, **told)
    except SweepError as error:
        outcomes, failed = error.outcomes, error
    except (KeyboardInterrupt, Terminated):
        console.print("interrupted; to resume: repeat the command")
        raise
    rows = [
        {**entry, "error": outcome.reason}
        if isinstance(outcome, Failure)
        else {**entry, **outcome.summary(), **entry}
        for entry, outcome in zip(described, outcomes, strict=True)
    ]
    finished = [row for row in rows if "error" not in row]
    if arguments.json:
        print(json.dumps(rows, indent=2))
    elif finished:
        Console().print(_table(varied, finished))
        print(f"runs: {root}")
    if failed is not None:
        raise failed
    return 0


def combinations(tables: Mapping[str, Any], choices: Sequence[Mapping[str, Any]]) -> list[Config]:
    """The configuration of each combination, without the flags that do not apply to its choices.

    Raises:
        ConfigError: a wrong setting, or a flag that no combination uses.
    """
    ignored: list[set[str]] = [set() for _ in choices]
    configs = [
        Config.merged(tables, choice, dropped)
        for choice, dropped in zip(choices, ignored, strict=True)
    ]
    useless = set.intersection(*ignored)
    if useless:  # raise the error for these flags
        others = ignored[0] - useless
        Config.merged(tables, {k: v for k, v in choices[0].items() if k not in others})
    return configs


def config_value(config: Config, flag: str) -> Any:
    """The value of a setting by the name of its flag, for JSON; None if it has no effect."""
    from wirelessfl.config.kinds import KINDS, chosen_classes, flag_homes

    if flag in KINDS:
        named = getattr(config, flag)
        return None if named is None else named["name"]
    homes = flag_homes(chosen_classes(dict(config)))
    if flag not in homes:  # a setting of a choice that this combination does not take
        return None
    section, key = homes[flag]
    table = getattr(config, section)
    value = table.get(key) if isinstance(table, Mapping) else getattr(table, key)
    return str(value) if isinstance(value, Path) else value


def _table(varied: list[str], rows: list[dict[str, Any]]) -> Table:
    targets = [row.get("target") for row in rows]
    columns = TOTALS if None in targets else TO_TARGET
    if any(row.get("transition_accuracy") is not None for row in rows):
        columns = {**columns, "transition_accuracy": ("first ten rounds of sessions", ".3f")}
    columns, kind = with_validation(columns, rows)
    common = f"{kind} {targets[0]}" if len(set(targets)) == 1 else f"each run's target {kind}"
    title = None if None in targets else f"cost of {common}"
    table = Table(title=title)
    for name in varied:
        table.add_column(name.replace("_", " "))
    for heading, _ in columns.values():
        table.add_column(heading, justify="right")
    for row in rows:
        given = ("" if row[name] is None else str(row[name]) for name in varied)
        table.add_row(*given, *cells_of(row, columns))
    return table
