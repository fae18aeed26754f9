"""``wirelessfl sweep``: runs all combinations of the given values."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_origin

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import short
from wirelessfl.base.signals import Terminated
from wirelessfl.base.terminal import Terminal, say
from wirelessfl.cli.parser import Parser

if TYPE_CHECKING:
    from wirelessfl.config import Config
    from wirelessfl.runs.folder.log import Row
    from wirelessfl.runs.result import RunResult

HELP = "run all combinations: wirelessfl sweep hist,hfedavg --cells 2,4 --seed 1,2,3"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Run every combination of the given values once. Each run is stored in a folder below "
        "--out (default: out of the file, or runs/sweep), named by the hash of its settings. Flags "
        "are those of `run`; separate values by commas, or by semicolons if a value contains "
        "commas. A run ignores flags that do not apply to its choices. Runs that differ only in an "
        "error-free radio are trained once and priced for each radio."
    )
    parser.add_configuration()
    parser.add_quiet()
    parser.add_settings(lists=True)
    parser.add_argument(
        "--with",
        dest="coupled",
        action="append",
        default=[],
        metavar="NAME=X,...",
        help="settings that vary together, e.g. cells=2,bandwidth_hz=10e6; repeat the flag for "
        "each point",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        metavar="N",
        help="concurrent runs, one CPU thread each, on the GPUs in turn (default: 1)",
    )
    parser.add_argument(
        "--ray", metavar="ADDRESS", help="address of a Ray cluster; local starts one here"
    )
    parser.add_argument(
        "--train-all",
        action="store_true",
        help="train each run, even if it differs from another only in the error-free radio",
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="train runs that differ only in their seed as one cohort, with the same results",
    )


def act(arguments: argparse.Namespace) -> int:
    """Check all combinations, run them, and print tables of the finished runs.

    As JSON, runs are in the order of the combinations, and failed runs have the reason as
    ``error``.

    Raises:
        SweepError: runs failed; raised after printing.
    """
    from wirelessfl.cli.flags import given_flags, tables_of
    from wirelessfl.cli.output import sweep_progress
    from wirelessfl.config.combinations import configurations, points
    from wirelessfl.config.kinds import first_names
    from wirelessfl.config.sections import WITHOUT_RESULTS
    from wirelessfl.runs.kept import priced_from
    from wirelessfl.runs.observers.console import line_of

    named = any("algorithm=" in words for words in arguments.coupled)
    tables = tables_of(arguments, named=named)
    if arguments.jobs < 1:
        raise ConfigError(f"jobs is {arguments.jobs}: give at least 1.")
    flags = given_flags(arguments)
    root = flags.pop("out", None)
    coupled = [coupled_settings(words) for words in arguments.coupled]
    single = (*WITHOUT_RESULTS, "task")  # they have one value; all tasks together count as one
    lists = {name: [value] if name in single else value for name, value in flags.items()}
    if "algorithm" in flags:
        lists["algorithm"] = flags["algorithm"].split(",")
    configs = configurations(tables, points(lists, coupled))
    varied = [name for name, values in lists.items() if len(values) > 1]
    varied += _varied(coupled)
    for name in varied:
        if configs[0].task and all(name in table for table in configs[0].task):
            raise ConfigError(
                f"the sweep varies {name}, but every task sets its own, so all runs would be "
                f"equal. Leave {name} out of the tasks, or vary another setting."
            )
    described = [{name: config_value(config, name) for name in varied} for config in configs]
    labels = [
        ", ".join(f"{k} {short(str(v))}" for k, v in entry.items() if v is not None) or "run"
        for entry in described
    ]
    from wirelessfl.runs.sweep import Failure, SweepError, root_of, sweep
    from wirelessfl.training.workers.processes import OF_RUNS, fork_server

    root = root_of(configs, root)
    if arguments.jobs > 1 and arguments.ray is None:
        with fork_server.forking():
            fork_server.start(*OF_RUNS)
    runs = [(label, c.total_rounds) for label, c in zip(labels, configs, strict=True)]
    console = Terminal(stderr=True, quiet=arguments.quiet)
    executed: list[int] = []
    tell = console.tell

    def on_found(ready: Sequence[int], others: Sequence[int]) -> None:
        executed.extend(others)
        if ready:
            few = "; ".join(first_names([labels[place] for place in ready]))
            number = "1 finished run" if len(ready) == 1 else f"{len(ready)} finished runs"
            tell(f"reading {number} from {root} ({few}), executing {len(others)}")

    last: dict[int, Row] = {}

    def on_end(place: int) -> None:
        if place in last and not console.is_terminal:
            tell(f"{labels[place]}: {line_of(last[place])}")

    outcomes: Sequence[RunResult | Failure]
    failed: SweepError | None = None
    options = {"jobs": arguments.jobs, "ray": arguments.ray, "train_all": arguments.train_all}
    options["together"] = arguments.together
    try:
        with sweep_progress(runs, console) as show:

            def on_row(place: int, row: Row) -> None:
                last[place] = row
                show(place, row)

            callbacks: dict[str, Any] = {"on_row": on_row, "on_end": on_end, "on_found": on_found}
            outcomes = sweep(configs, root, **options, **callbacks)
    except SweepError as error:
        outcomes, failed = error.outcomes, error
    except (KeyboardInterrupt, Terminated):
        tell("interrupted; to resume: repeat the command")
        raise
    rows: list[dict[str, Any]] = []
    for entry, outcome in zip(described, outcomes, strict=True):
        if isinstance(outcome, Failure):
            rows.append({**entry, "error": outcome.reason})
        else:
            source = priced_from(outcome.directory)
            priced = {} if source is None else {"priced_from": source}
            rows.append({**entry, **outcome.summary(), **entry, **priced})
    finished = [row for row in rows if "error" not in row]
    _say_priced(tell, [rows[place] for place in executed if "error" not in rows[place]])
    if arguments.json:
        say(json.dumps(rows, indent=2))
    elif finished:
        results = [outcome for outcome in outcomes if not isinstance(outcome, Failure)]
        _print_tables(varied, results)
        say(f"runs: {root}")
    if failed is not None:
        raise failed
    return 0


def _print_tables(varied: Sequence[str], results: Sequence[RunResult]) -> None:
    """Print a table with one line per run and, if seeds vary, one with means over seeds."""
    from wirelessfl.results import Runs

    # Combinations that differ only in a setting without effect are one run.
    runs = Runs({result.directory: result for result in results}.values())
    say(runs.table(varied or None))
    if "seed" in varied:
        say(runs.table([name for name in varied if name != "seed"] or None))


def _say_priced(tell: Callable[[str], None], rows: Sequence[Mapping[str, Any]]) -> None:
    """Say how many of the executed runs have been priced, if any."""
    priced = sum("priced_from" in row for row in rows)
    if priced:
        tell(
            f"trained {len(rows) - priced}, priced {priced}: runs that differ only in an "
            "error-free radio train the same model (--train-all trains each)"
        )


def _varied(coupled: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of coupled settings that have several values."""
    names = dict.fromkeys(name for point in coupled for name in point)
    return [name for name in names if any(p.get(name) != coupled[0].get(name) for p in coupled)]


def coupled_settings(words: str) -> dict[str, Any]:
    """The settings of one point, e.g. ``cells=2,bandwidth_hz=10e6``.

    Settings are separated by commas, or by semicolons if a value is itself a list, as the values of
    flags are: ``cells=2;cpu_hz=1e9,2e9``.
    """
    from wirelessfl.cli.flags import all_flags
    from wirelessfl.config.sections import WITHOUT_RESULTS

    settings: dict[str, Any] = {}
    many = ";" in words
    tuples = {flag.name for flag in all_flags() if get_origin(flag.kind) is tuple}
    for part in words.strip(";").split(";" if many else ","):
        name, equals, value = part.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not (equals and name and value):
            raise ConfigError(
                f"with is {words!r}: {part!r} is not NAME=VALUE. Separate settings by commas, or "
                'by semicolons if a value contains commas: --with "cells=2;cpu_hz=1e9,2e9".'
            )
        if name in settings:
            raise ConfigError(f"with is {words!r}: {name} occurs twice. Give one value.")
        if name in ("task", *WITHOUT_RESULTS):
            raise ConfigError(f"with is {words!r}: {name} has one value in a sweep. Use --{name}.")
        settings[name] = tuple(value.split(",")) if name in tuples else value
    return settings


def config_value(config: Config, flag: str) -> Any:
    """The value of a setting by the name of its flag, for JSON; None if it has no effect."""
    from wirelessfl.config.choices import CHOSEN

    if flag in CHOSEN:
        return config.named(flag) if flag in config.tables else None
    section, key = config.homes.get(flag, ("", ""))
    if not section or (section, key) in config.unused():  # or of a choice that it does not take
        return None
    value = config.table(section).get(key)
    return str(value) if isinstance(value, Path) else value
