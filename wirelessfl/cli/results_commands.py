"""The commands for stored runs, given their parsed arguments."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wirelessfl.config.stored import dataset_of
from wirelessfl.errors import ConfigError
from wirelessfl.figures import save_figure, use_style
from wirelessfl.results import Runs, load, load_all
from wirelessfl.results.comparison import compare as compared
from wirelessfl.results.export import export as exported
from wirelessfl.results.overview import draw_partition, listed, overview, size_text
from wirelessfl.results.selection import value_text
from wirelessfl.results.tables import number_text
from wirelessfl.results.text import rendered
from wirelessfl.runs.files import check_writable
from wirelessfl.runs.predictions import prediction_rows
from wirelessfl.terminal import say


def runs(arguments: argparse.Namespace) -> int:
    """List all runs below a folder."""
    lines = listed(arguments.directory)
    if arguments.json:
        say(json.dumps(lines, indent=2))
        return 0
    head = ["folder", "algorithm", "data", "uplink", "seed", "round", "accuracy", "state", "date"]
    say(rendered(head, [_listed_cells(line) for line in lines], left=4))
    for line in lines:
        if "error" in line:
            say(f"{line['folder']}: {line['error']}", error=True)
    return 0


def _listed_cells(line: dict[str, Any]) -> list[str]:
    """The cells of a run in the list."""
    if "error" in line:
        return [line["folder"], *["-"] * 6, line["state"], "-"]
    of = "" if line["rounds"] is None else f"/{line['rounds']}"
    done = line["round"]
    accuracy = "-" if done is None else _accuracy(line["accuracy"])
    if "loss" in line:  # regression
        accuracy = f"loss {_accuracy(line['loss'])}"
    return [
        line["folder"],
        value_text(line["algorithm"]),
        dataset_of(line),
        *(value_text(line[key]) for key in ("uplink", "seed")),
        "-" if done is None else f"{done}{of}",
        accuracy,
        line["state"],
        "-" if line["date"] is None else line["date"][:16].replace("T", " "),
    ]


def _accuracy(value: float | None) -> str:
    return "diverged" if value is None else f"{value:.3f}"


def show(arguments: argparse.Namespace) -> int:
    """Show a run."""
    run = load(arguments.run, trust=arguments.trust)
    facts = overview(run, trust=arguments.trust)
    if arguments.partition is not None:
        _check_figure("partition", arguments.partition)
        facts["partition"] = [*map(str, draw_partition(run.directory, arguments.partition))]
    if arguments.json:
        say(json.dumps(facts, indent=2))
        return 0
    say(f"{facts['run']}: {facts['state']}, {run.directory}")
    of = "" if facts["rounds"] is None else f" of {facts['rounds']}"
    say(f"round {facts['round']}{of}" if run.rows else "no rows yet")
    if facts["ended"]:
        say(f"the run {facts['ended']}")
    for note in facts["notes"]:
        say(f"note: {note}")
    for name, given in facts["given"].items():
        say(f"given from Python: {name} = {given}")
    if facts["without_defaults"]:
        say("\nsettings that differ from defaults, and the algorithm:")
    else:
        say("\nsettings (--trust imports the code that they name, to leave out defaults):")
    for section, table in facts["settings"].items():
        _print_table(section, table)
    say("\nresults:")
    for summary in facts["summaries"]:
        _print_summary(summary)
    if facts["predicted"]:
        head = ["", "predicted", "realised", "difference"]
        say(f"\nthe design and its run:\n{rendered(head, prediction_rows(facts['predicted']))}")
    if facts["clients"]:
        say("\nwhere the time goes:")
    for line in facts["clients"]:
        say(f"  {line}")
    if facts["last_rows"]:
        say("\nlast row:" if len(facts["last_rows"]) == 1 else "\nlast rows:")
    for row in facts["last_rows"]:
        say("  " + ", ".join(f"{key} {_shown(value)}" for key, value in row.items()))
    say("\ncomputed with: " + _words(facts["computed_with"]))
    say("versions: " + _words(facts["versions"]))
    for task, text in facts["data"].items():
        say(f"data {task}: {text}")
    for name in facts["named"]:
        say(f"code or files: {name}")
    if facts["resumed"]:
        say(f"resumed {facts['resumed']} times")
    say("files: " + ", ".join(f"{name} ({size_text(n)})" for name, n in facts["files"].items()))
    if "partition" in facts:
        say("partition drawn: " + ", ".join(facts["partition"]))
    return 0


def _check_figure(name: str, path: Path) -> None:
    """Refuse the path of a figure that cannot be written.

    Raises:
        ConfigError: it has another suffix, or its folder cannot be written.
    """
    if path.suffix not in (".png", ".pdf"):
        raise ConfigError(f"{name} is {path}: name a .png or .pdf; both are written.")
    check_writable(path.parent, name)


def _print_table(section: str, table: Any) -> None:
    """Print a table of settings, or the tables of tasks."""
    for one in table if isinstance(table, list) else [table]:
        say(f"  [{section}] " + ", ".join(f"{k} = {value_text(v)}" for k, v in one.items()))


def _print_summary(summary: dict[str, Any]) -> None:
    """Print accuracy and costs of a run or of one of its tasks."""
    label = f"{summary['label']}: " if "task" in summary else ""
    field = "accuracy" if "accuracy" in summary else "loss"
    say(
        f"  {label}{field} {_accuracy(summary[field])}, best "
        f"{_accuracy(summary[f'best_{field}'])}, {number_text(summary['sim_seconds'])} s "
        f"simulated, {number_text(summary['uplink_mib'])} MiB and {number_text(summary['joules'])} "
        f"J per client, {summary['wall_seconds']:.1f} s wall-clock"
    )
    if "target" in summary:
        rounds = summary["rounds_to_target"]
        costs = (
            "not reached"
            if rounds is None
            else f"round {rounds}, {number_text(summary['seconds_to_target'])} s, "
            f"{number_text(summary['mib_to_target'])} MiB per client"
        )
        say(f"  target {summary['target']}: {costs}")


def _shown(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(value) if number else value_text(value)


def _words(facts: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value_text(value)}" for key, value in facts.items())


def compare(arguments: argparse.Namespace) -> int:
    """Compare runs or groups of runs."""
    if arguments.by is None:
        names = dict.fromkeys(path.rstrip("/") for path in arguments.runs)
        groups = {name: load_all(name) for name in names}
    else:
        cases = load_all(arguments.runs).cases(_names(arguments.by))
        groups = {case.label: Runs(case.runs) for case in cases}
    found = compared(groups, target=arguments.target, field=arguments.field, tests=arguments.tests)
    say(json.dumps(found.to_dict(), indent=2) if arguments.json else found)
    return 0


def table(arguments: argparse.Namespace) -> int:
    """Print a table over seeds."""
    formats = [name for name in ("json", "csv", "latex") if getattr(arguments, name)]
    if len(formats) > 1:
        raise ConfigError(f"{' and '.join(formats)} conflict: choose one of them.")
    found = load_all(arguments.runs).table(
        None if arguments.by is None else _names(arguments.by),
        target=arguments.target,
        field=arguments.field,
        sort=arguments.sort,
        tests=arguments.tests,
    )
    if arguments.json:
        say(found.to_json())
    elif arguments.csv:
        say(found.to_csv(), end="")
    elif arguments.latex:
        say(found.to_latex(), end="")
    else:
        say(found)
    return 0


def plot(arguments: argparse.Namespace) -> int:
    """Plot runs."""
    output: Path = arguments.output
    _check_figure("output", output)
    by = None if arguments.by is None else _names(arguments.by)
    chosen = load_all(arguments.runs)
    try:
        figure = chosen.plot(
            arguments.x,
            arguments.y,
            by=by,
            target=arguments.target,
            log=arguments.log,
            smooth=arguments.smooth,
            style=arguments.style,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    with use_style(arguments.style):
        files = save_figure(figure, output)
    for case in chosen.cases(by):
        for note in case.notes:
            say(f"Note: {note}.", error=True)
    for file in files:
        say(f"drawn: {file}")
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write parameters or rows to a file."""
    say(f"written: {exported(load_all(arguments.runs), arguments.output, best=arguments.best)}")
    return 0


def _names(words: str) -> Sequence[str]:
    """Names of settings, separated by commas, as written on the command line."""
    names = [word.strip().removeprefix("--").replace("-", "_") for word in words.split(",")]
    return [name for name in names if name]
