"""Arguments of the commands for stored runs: runs, show, compare, table, plot, export."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from wirelessfl.import_paths import expanded

RUNS = "folders of runs, folders of run folders such as a sweep's, or patterns such as 'runs/*'"
BY = "settings that distinguish groups, by flag name, such as algorithm,cells (default: all that "
BY += "differ, except seeds)"
TARGET = "value to reach, such as 0.8 for 80 %% (default: the runs' --target, if all have the same)"
FIELD = "field of rows that --target refers to (default: accuracy, on validation samples if any)"
TESTS = "number of tests that are averaged, because single tests vary (default: 1)"
TRUST = "import the code that the runs' settings name as module:name"


def add_result_commands(subparsers: Any) -> None:
    """Add the commands for stored runs, which never train and never change the runs."""
    runs = _command(subparsers, "runs", "list all runs below a folder: wirelessfl runs [DIR]")
    runs.description = (
        "List all runs below a folder. A run is finished, running (a process on this machine "
        "executes it), or unfinished (it can be resumed)."
    )
    runs.add_argument(
        "directory", nargs="?", type=expanded, default=Path("runs"), metavar="DIR",
        help="folder (default: runs)",
    )  # fmt: skip
    show = _command(subparsers, "show", "show a run: wirelessfl show RUN")
    show.description = (
        "Show a run: settings that differ from defaults, last row, best accuracy, costs, where the "
        "time goes if the run has a client log, versions and files. Nothing is trained."
    )
    show.add_argument("run", type=expanded, metavar="RUN", help="folder of the run")
    show.add_argument("--trust", action="store_true", help=TRUST)
    show.add_argument(
        "--partition", type=expanded, metavar="FILE",
        help="draw the labels of each client into FILE, .png or .pdf, both are written; with "
        "tables of tasks, the task's name is added to that of the file",
    )  # fmt: skip
    compare = _command(subparsers, "compare", "compare runs: wirelessfl compare RUN RUN ...")
    compare.description = (
        "Compare runs, or groups of runs, with the first one: settings that differ, final "
        "accuracy, and costs until a target. Groups with common seeds are compared seed by seed, "
        "with the mean and its 95 % interval. Each RUN is a group, unless --by is given."
    )
    _add_runs(compare)
    compare.add_argument(
        "--by", metavar="SETTING,...", help="group all runs by these settings, by flag name"
    )
    _add_target(compare)
    table = _command(
        subparsers, "table", "table over seeds: wirelessfl table RUN ... --by algorithm"
    )
    table.description = (
        "Print final accuracy and costs until a target: mean and range over the runs of each "
        "group, and how many reached the target. Groups in which most runs reach it come first, "
        "then those of lower cost."
    )
    _add_runs(table)
    table.add_argument("--by", metavar="SETTING,...", help=BY)
    _add_target(table)
    table.add_argument(
        "--sort", choices=["seconds", "rounds", "mib", "joules"], metavar="COST",
        help="seconds, rounds, mib or joules (default: seconds; by accuracy without a target)",
    )  # fmt: skip
    form = table.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="print the numbers as CSV")
    form.add_argument("--latex", action="store_true", help="print LaTeX, for package booktabs")
    plot = _command(subparsers, "plot", "plot runs: wirelessfl plot RUN ... -o FIG.pdf", json=False)
    plot.description = (
        "Plot a field of the rows: one curve per group, the mean over its runs with their range. "
        "A curve ends with the shortest run of its group."
    )
    _add_runs(plot)
    plot.add_argument(
        "--x", default="seconds", metavar="FIELD",
        help="rounds, seconds, mib, joules, wall, or a field of rows (default: seconds)",
    )  # fmt: skip
    plot.add_argument(
        "--y", metavar="FIELD",
        help="accuracy, loss, or another field of rows (default: accuracy; without classes loss)",
    )  # fmt: skip
    plot.add_argument("--group-by", "--by", dest="by", metavar="SETTING,...", help=BY)
    plot.add_argument("--target", type=float, metavar="X", help="value of y to mark with a line")
    plot.add_argument(
        "--log", default="", choices=["x", "y", "xy"], metavar="AXES",
        help="axes with a logarithmic scale: x, y or xy",
    )  # fmt: skip
    plot.add_argument(
        "--smooth", type=int, default=1, metavar="N",
        help="number of successive rows that are averaged, odd (default: 1)",
    )  # fmt: skip
    plot.add_argument(
        "--style", default="ieee", choices=["ieee", "screen"],
        help="ieee: one column at print size; screen: for slides (default: ieee)",
    )  # fmt: skip
    plot.add_argument(
        "-o", "--output", type=expanded, default=Path("runs.pdf"), metavar="FIG",
        help=".pdf or .png; both are written (default: runs.pdf)",
    )  # fmt: skip
    export = _command(
        subparsers, "export", "export parameters or rows: wirelessfl export RUN -o FILE", json=False
    )
    export.description = (
        "Write the parameters of a run's last checkpoint by name (.safetensors, .pt), or the rows "
        "of runs (.csv, .parquet, .jsonl), with settings that differ if there are several runs."
    )
    _add_runs(export)
    export.add_argument(
        "-o", "--output", type=expanded, required=True, metavar="FILE",
        help=".safetensors or .pt for parameters; .csv, .parquet or .jsonl for rows",
    )  # fmt: skip
    export.add_argument(
        "--best", action="store_true", help="the best parameters, if the run kept them"
    )


def _command(subparsers: Any, name: str, text: str, *, json: bool = True) -> Any:
    """Add a command whose function of the same name is imported when it is called."""
    parser = subparsers.add_parser(name, help=text, allow_abbrev=False)

    def call(arguments: argparse.Namespace) -> int:
        from wirelessfl.cli import results_commands

        status: int = getattr(results_commands, name)(arguments)
        return status

    parser.set_defaults(command=call)
    if json:
        parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", type=float, metavar="X", help=TARGET)
    parser.add_argument("--field", metavar="FIELD", help=FIELD)
    parser.add_argument("--tests", type=int, default=1, metavar="N", help=TESTS)
