"""``wirelessfl run``: trains."""

from __future__ import annotations

import argparse
from functools import partial

from wirelessfl.cli.parser import Parser

HELP = "train: wirelessfl run ALGORITHM [--flag value ...], or --config FILE.toml"


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Train a model over a simulated wireless network. Name an algorithm, or give a "
        "configuration file; flags override the file."
    )
    parser.add_configuration()
    parser.add_quiet()
    parser.add_settings()


def act(arguments: argparse.Namespace) -> int:
    """Train."""
    from wirelessfl.cli.flags import given_flags, merged, tables_of

    tables, flags = tables_of(arguments), given_flags(arguments)
    config = merged(tables, flags)

    from wirelessfl.cli.output import watch
    from wirelessfl.runs.build.computing import fewer_workers
    from wirelessfl.runs.run import run  # loads PyTorch, for correct settings only
    from wirelessfl.training.workers.shards import sharded

    if "workers" not in flags:  # a stored configuration may be from a larger machine
        config = fewer_workers(config)
    with sharded() as shards:
        if config.run.workers is None and shards.count == 1:  # the command line's default
            config = config.with_run({"workers": "auto"})
        watch(shards, arguments, partial(run, config))
    return 0
