"""``wirelessfl runs``: lists all runs below a folder."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "list all runs below a folder: wirelessfl runs [DIR]"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "List all runs below a folder. A run is finished, running (a process on this machine "
        "executes it), or unfinished (it can be resumed)."
    )
    parser.add_json()
    parser.add_argument(
        "directory",
        nargs="?",
        type=expanded,
        default=Path("runs"),
        metavar="DIR",
        help="folder (default: runs)",
    )


def act(arguments: argparse.Namespace) -> int:
    """List all runs below a folder."""
    from wirelessfl.base.terminal import rendered
    from wirelessfl.results.overview import listed

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
    from wirelessfl.config.stored import dataset_of
    from wirelessfl.results.overview import accuracy_text
    from wirelessfl.results.selection import value_text

    if "error" in line:
        return [line["folder"], *["-"] * 6, line["state"], "-"]
    of = "" if line["rounds"] is None else f"/{line['rounds']}"
    done = line["round"]
    accuracy = "-" if done is None else accuracy_text(line["accuracy"])
    if "loss" in line:  # regression
        accuracy = f"loss {accuracy_text(line['loss'])}"
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
