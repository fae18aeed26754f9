"""``wirelessfl export``: writes parameters or rows of runs to a file."""

from __future__ import annotations

import argparse

from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "export parameters, a model card, or rows: wirelessfl export RUN -o FILE"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Write the parameters of a run's last checkpoint by name (.safetensors, .pt), or the rows "
        "of runs (.csv, .parquet, .jsonl), with settings that differ if there are several runs. "
        "With --card, write a folder for the Hugging Face hub."
    )
    parser.add_runs()
    parser.add_argument(
        "-o",
        "--output",
        type=expanded,
        required=True,
        metavar="FILE",
        help=".safetensors or .pt for parameters; .csv, .parquet or .jsonl for rows; a folder with "
        "--card",
    )
    parser.add_argument(
        "--card",
        action="store_true",
        help="write a folder with model.safetensors and README.md, a model card with settings, "
        "accuracy, seconds, joules and MiB",
    )
    parser.add_argument(
        "--best", action="store_true", help="the best parameters, if the run kept them"
    )


def act(arguments: argparse.Namespace) -> int:
    """Write parameters or rows to a file."""
    from wirelessfl.results import load_all
    from wirelessfl.results.card import card
    from wirelessfl.results.export import export

    write = card if arguments.card else export
    say(f"written: {write(load_all(arguments.runs), arguments.output, best=arguments.best)}")
    return 0
