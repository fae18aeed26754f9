"""``wirelessfl show``: settings, results and files of a run."""

from __future__ import annotations

import argparse
import json
from typing import Any

from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser, check_figure

HELP = "show a run: wirelessfl show RUN"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Show a run: settings that differ from defaults, last row, best accuracy, costs, where the "
        "time goes if the run has a client log, versions and files. Nothing is trained."
    )
    parser.add_json()
    parser.add_argument("run", type=expanded, metavar="RUN", help="folder of the run")
    parser.add_trust("the code that the runs' settings name as module:name")
    parser.add_argument(
        "--partition",
        type=expanded,
        metavar="FILE",
        help="draw the labels of each client into FILE, .png or .pdf, both are written; with "
        "tables of tasks, the task's name is added to that of the file",
    )


def act(arguments: argparse.Namespace) -> int:
    """Show a run."""
    from wirelessfl.base.terminal import rendered
    from wirelessfl.results.load import load
    from wirelessfl.results.overview import draw_partition, overview, size_text
    from wirelessfl.runs.summaries import PREDICTION_HEAD, prediction_rows

    run = load(arguments.run, trust=arguments.trust)
    facts = overview(run, trust=arguments.trust)
    if arguments.partition is not None:
        check_figure("partition", arguments.partition)
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
    for name, text in facts["given"].items():
        say(f"given from Python: {name} = {text}")
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
        table = rendered(list(PREDICTION_HEAD), prediction_rows(facts["predicted"]))
        say(f"\nthe design and its run:\n{table}")
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


def _print_table(section: str, table: Any) -> None:
    """Print a table of settings, or the tables of tasks."""
    from wirelessfl.results.selection import value_text

    for settings in table if isinstance(table, list) else [table]:
        say(f"  [{section}] " + ", ".join(f"{k} = {value_text(v)}" for k, v in settings.items()))


def _print_summary(summary: dict[str, Any]) -> None:
    """Print accuracy and costs of a run or of one of its tasks."""
    from wirelessfl.results.overview import accuracy_text
    from wirelessfl.results.tables import number_text

    label = f"{summary['label']}: " if "task" in summary else ""
    field = "accuracy" if "accuracy" in summary else "loss"
    say(
        f"  {label}{field} {accuracy_text(summary[field])}, best "
        f"{accuracy_text(summary[f'best_{field}'])}, {number_text(summary['sim_seconds'])} s "
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
        say(f"  {label}target {summary['target']}: {costs}")


def _shown(value: Any) -> str:
    from wirelessfl.results.selection import value_text
    from wirelessfl.results.tables import number_text

    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number_text(value) if number else value_text(value)


def _words(facts: dict[str, Any]) -> str:
    from wirelessfl.results.selection import value_text

    return ", ".join(f"{key} {value_text(value)}" for key, value in facts.items())
