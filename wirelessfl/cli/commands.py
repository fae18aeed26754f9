"""Implements the commands, given their parsed arguments."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.errors import ConfigError
from wirelessfl.terminal import Terminal, say
from wirelessfl.training.workers.processes import launched

if TYPE_CHECKING:
    from wirelessfl.config import Config
    from wirelessfl.runs.result import RunResult
    from wirelessfl.runs.transitions import Transition
    from wirelessfl.training.shards import Shards

OF_COMMANDS = ("config", "json", "trust", "command", "quiet")
"""Arguments of commands that are not settings of a run."""


def timeline(arguments: argparse.Namespace) -> int:
    """Draw each client's work over simulated time, without training."""
    from wirelessfl.cli.flags import given_flags, merged
    from wirelessfl.pricing.round_timeline import RoundTimeline, round_timeline
    from wirelessfl.runs.files import check_writable
    from wirelessfl.runs.timeline import SECONDS, Timeline
    from wirelessfl.runs.timeline import timeline as task_timeline

    if launched()[0] > 0:  # under torchrun, the first process draws
        return 0
    flags = given_flags(arguments, [*OF_COMMANDS, "seconds", "picture"])
    config = merged(_tables(arguments), flags)
    if arguments.picture.suffix not in (".png", ".pdf"):
        raise ConfigError(f"picture is {arguments.picture}: name a .png or .pdf; both are written.")
    if "out" in flags:  # in a stored configuration, out is ignored
        raise ConfigError(
            f"out={flags['out']} conflicts with timeline, which stores no run: omit --out."
        )
    check_writable(arguments.picture.parent, "picture")
    seconds = arguments.seconds
    if seconds is not None and "rounds" in flags and not config.regime.of_tasks:
        raise ConfigError(
            f"seconds={seconds:g} conflicts with rounds={flags['rounds']}: both say how much to "
            "draw. Give one of them."
        )
    found: Timeline | RoundTimeline
    if config.regime.of_tasks:
        found = task_timeline(config, SECONDS if seconds is None else seconds)
    else:
        found = round_timeline(
            config, config.training.rounds if "rounds" in flags else None, seconds
        )
    try:
        drawn = found.draw(arguments.picture)
    except OSError as error:
        raise ConfigError(
            f"picture is {arguments.picture}: {error.strerror}. Choose another file."
        ) from error
    if arguments.json:
        say(json.dumps(found.summary(), indent=2))
    elif isinstance(found, RoundTimeline):
        for line in found.lines():
            say(line)
    for file in drawn:
        say(f"drawn: {file}", error=arguments.json)
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Train."""
    from wirelessfl.cli.flags import given_flags, merged

    tables = _tables(arguments)
    flags = given_flags(arguments, OF_COMMANDS)
    config = merged(tables, flags)

    from wirelessfl.runs.run import run as run_settings  # loads PyTorch, for correct settings only
    from wirelessfl.setup.computing import fewer_workers
    from wirelessfl.training.shards import sharded

    if "workers" not in flags:  # a stored configuration may be from a larger machine
        config = fewer_workers(config)
    with sharded() as shards:
        if config.run.workers is None and shards.count == 1:  # the command line's default
            config = config.with_run({"workers": "auto"})
        _watch(shards, arguments, partial(run_settings, config))
    return 0


def plan(arguments: argparse.Namespace) -> int:
    """Print what a round costs with each access, without training."""
    from wirelessfl.cli.flags import given_flags, merged
    from wirelessfl.cli.plan import plan_command

    flags = given_flags(arguments, [*OF_COMMANDS, "air_joules"])
    if "out" in flags:
        raise ConfigError(
            f"out={flags['out']} conflicts with plan, which stores no run: omit --out."
        )
    config = merged(_tables(arguments), flags)
    return plan_command(config, arguments, config.training.rounds if "rounds" in flags else None)


def budget(arguments: argparse.Namespace) -> int:
    """Print the link budget of the network."""
    from wirelessfl.cli.budget import ALGORITHM, FLAGS, budget_command, check_flags
    from wirelessfl.cli.flags import given_flags, merged

    if arguments.algorithm is None and arguments.config is None:
        arguments.algorithm = ALGORITHM
    flags = given_flags(arguments, [*OF_COMMANDS, *FLAGS])
    config = merged(_tables(arguments), flags)
    check_flags(config, flags)
    return budget_command(config, arguments)


def design(arguments: argparse.Namespace) -> int:
    """Choose how to train."""
    from wirelessfl.cli.design import OWN, design_command
    from wirelessfl.cli.flags import given_flags

    def train(config: Config) -> dict[str, Any] | None:
        from wirelessfl.runs.run import run as run_settings
        from wirelessfl.training.shards import ALONE

        if config.run.workers is None:
            config = config.with_run({"workers": "auto"})
        start = partial(run_settings, config)
        return _watch(ALONE, arguments, start, shown=not arguments.json)

    flags = given_flags(arguments, [*OF_COMMANDS, *OWN])
    return design_command(_tables(arguments), flags, arguments, train)


def pilot(arguments: argparse.Namespace) -> int:
    """Train pilots, and fit the learning curve."""
    from wirelessfl.cli.flags import given_flags, merged
    from wirelessfl.cli.pilot import FLAGS, LISTS, check_flags, pilot_command

    flags = given_flags(arguments, [*OF_COMMANDS, *FLAGS])
    check_flags(flags)
    lists = {name: flags.pop(name).split(",") for name in LISTS if name in flags}
    if "clients_per_round" in lists:  # other settings may need a number
        *others, flags["clients_per_round"] = lists["clients_per_round"]
        if not others:
            del lists["clients_per_round"]
    return pilot_command(merged(_tables(arguments), flags), lists, arguments)


def _tables(arguments: argparse.Namespace, *, named: bool = False) -> dict[str, Any]:
    """Tables of the configuration file; empty if no file is given.

    Args:
        arguments: parsed command line.
        named: whether further arguments name the algorithm.
    """
    from wirelessfl.config.tables import read_toml

    tables: dict[str, Any] = {}
    if arguments.config:
        tables = read_toml(arguments.config, arguments.trust)
    if arguments.algorithm is None and "algorithm" not in tables and not named:
        raise ConfigError("no algorithm: name one, or give --config FILE.toml.")
    return tables


def sweep(arguments: argparse.Namespace) -> int:
    """Run all combinations of the given values."""
    from wirelessfl.cli.sweep import sweep_command

    named = any("algorithm=" in words for words in arguments.coupled)
    return sweep_command(arguments, _tables(arguments, named=named))


def resume(arguments: argparse.Namespace) -> int:
    """Resume a run."""
    from wirelessfl.runs.extension import Later
    from wirelessfl.runs.run import resume as resume_run
    from wirelessfl.training.shards import sharded

    later = Later(arguments.rounds, arguments.target, arguments.max_seconds)
    with sharded() as shards:
        start = partial(resume_run, arguments.directory, trust=arguments.trust, **later.given)
        _watch(shards, arguments, start)
    return 0


def _watch(
    shards: Shards,
    arguments: argparse.Namespace,
    start: Callable[..., RunResult],
    *,
    shown: bool = True,
) -> dict[str, Any] | None:
    """Execute a run, and show its progress and, if ``shown``, its summary table.

    Returns:
        The summary; None in all processes but the first.
    """
    from wirelessfl.observers import Console as Progress

    if shards.rank > 0:
        start(shards=shards)
        return None
    console = Terminal(stderr=True, quiet=arguments.quiet)
    progress = Progress(console, quiet=arguments.quiet)
    tell = None if arguments.quiet else console.tell  # notes are warnings, and are shown
    result = start(observers=[progress], on_note=tell, shards=shards)
    summary = _summary(result)
    if shown and arguments.json:
        each = result.summaries()
        say(json.dumps({**summary, "tasks": each} if len(each) > 1 else summary, indent=2))
    elif shown:
        _close(result, summary)
    return summary


def _summary(result: RunResult) -> dict[str, Any]:
    """The summary of a run, with transitions between sessions and predictions if it has any."""
    from wirelessfl.runs.predictions import predictions

    summary, changes = result.summary(), _changes(result)
    if changes:
        summary["transitions"] = [vars(change) for change in changes]
    predicted = predictions(result)
    if predicted is not None:
        summary["predicted"] = predicted
    return summary


def _close(result: RunResult, summary: dict[str, Any]) -> None:
    """Show the closing tables of a run."""
    from wirelessfl.cli.show import closing_table, predictions_table, transitions_table
    from wirelessfl.rounds.equal_shares import compared

    changes, predicted = _changes(result), summary.get("predicted")
    console = Terminal()
    console.print(closing_table(result.summaries()))
    bought = compared(summary)
    if bought is not None:
        console.tell(bought)
    if predicted is not None:
        console.print(predictions_table(predicted))
    if changes:
        console.print(transitions_table(changes))
    if result.ended is not None:
        console.tell(f"the run {result.ended}.")
    console.tell(f"rows, parameters and settings: {summary['directory']}")


def _changes(result: RunResult) -> list[Transition]:
    """Accuracy at each change of clients; empty unless sessions' first rounds were evaluated.

    Empty for several tasks, too, whose summaries have the mean accuracy after the changes.
    """
    if result.config.sessions.sessions is None:
        return []
    try:
        return result.transitions()
    except ValueError:  # several tasks, or the first rounds of sessions were not evaluated
        return []


def bench(arguments: argparse.Namespace) -> int:
    """Run the benchmarks, which lie beside the packages of a checkout."""
    checkout = Path(__file__).parents[2]
    if not (checkout / "benchmarks" / "suite.py").is_file():
        raise ConfigError(
            "the benchmarks are not part of the installed package: run `wirelessfl bench` of a "
            "checkout (pip install --editable)."
        )
    sys.path.insert(0, str(checkout))
    status: int = import_module("benchmarks.suite").bench(
        arguments.benchmark, arguments.repeats, arguments.data_dir, arguments.json, arguments.quick
    )
    return status
