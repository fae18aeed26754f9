"""``wirelessfl pilot``: trains pilot runs and fits the learning curve to them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import Terminal, say
from wirelessfl.cli.parser import Parser, integers, numbers

if TYPE_CHECKING:
    from wirelessfl.config import Config
    from wirelessfl.designs.pilot_runs import Pilots

HELP = "fit a learning curve to short runs: wirelessfl pilot hist --target 0.8"
LISTS = {
    "local_steps": "local_steps",
    "edge_rounds": "edge_rounds",
    "clients_per_round": "clients",
}
"""Settings that take several values, and the arguments of ``wirelessfl.pilot``."""
REPLACED = ("rounds", "eval_every", "stop_at_target", "patience", "min_delta", "metric")
"""Settings of a run that pilots have of their own."""
SHOWN = {"validation_accuracy": ".3f"}
"""Fields of rows that are shown while pilots train; test data are left aside."""
DEFAULT_ROOT = "runs/pilots"
COLUMNS = {
    "local_steps": ("H", "d"),
    "edge_rounds": ("E", "d"),
    "clients": ("K", "d"),
    "largest": ("m", ".3g"),
    "snr_db": ("SNR dB", "g"),
    "rounds": ("rounds", "d"),
    "validation_accuracy": ("best val.", ".3f"),
    "rounds_to_target": ("to target", "d"),
    "wall_seconds": ("wall s", ".1f"),
}
"""Heading and format of each column."""


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Train a few short runs that differ in local steps H and edge rounds E, up to the target, "
        "and fit the rounds to the target as a function of H and E. Flags are those of `run`; "
        "--local-steps, --edge-rounds and --clients-per-round accept lists of values to choose "
        "from (default: H from 2 to 40, E from 1 to 10). Pilots do not depend on the radio; they "
        "are stored in --out (default: runs/pilots) and read if they exist."
    )
    parser.add_configuration()
    parser.add_quiet()
    parser.add_settings(types=dict.fromkeys(LISTS, integers))
    parser.add_argument("--pilots", type=int, metavar="N", help="pilots over H and E (default: 8)")
    parser.add_argument(
        "--steps", type=int, metavar="N", help="local steps of a client (default: 4000)"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="concurrent runs (default: 1)"
    )
    parser.add_argument(
        "--unequal-masks", action="store_true", help="add pilots of hist with unequal submodels"
    )
    parser.add_argument(
        "--air-snr-db",
        type=numbers,
        metavar="X,...",
        help="add pilots over the air with these SNR, dB",
    )


def act(arguments: argparse.Namespace) -> int:
    """Train or read the pilots, and print them and the curve."""
    from wirelessfl.base.wording import count_of
    from wirelessfl.cli.flags import given_flags, merged, tables_of

    flags = given_flags(arguments)
    for name in REPLACED:
        if name in flags:
            remedy = "give --steps for their length" if name == "rounds" else "leave it out"
            raise ConfigError(f"{name}={flags[name]} has no effect on pilots: {remedy}.")
    root = flags.pop("out", DEFAULT_ROOT)
    options = {LISTS[name]: flags.pop(name) for name in LISTS if name in flags}
    if "clients" in options:  # other settings may need a number
        *others, flags["clients_per_round"] = options["clients"]
        if not others:
            del options["clients"]
    for name, value in (
        ("snr_db", arguments.air_snr_db),
        ("count", arguments.pilots),
        ("steps", arguments.steps),
    ):
        if value is not None:
            options[name] = value
    options["masks"] = arguments.unequal_masks
    config = merged(tables_of(arguments), flags)
    console = Terminal(stderr=True, quiet=arguments.quiet)
    pilots = _trained(config, options, expanded(root), arguments.jobs, console)
    console.tell(
        f"{count_of(len(pilots), 'training')} in {pilots.wall_seconds:.1f} wall s: "
        f"{pilots.trained} now, {pilots.kept} read",
    )
    if not arguments.json:
        Terminal().print(_table(pilots))
    try:
        curve = pilots.curve()
    except ConfigError:
        if arguments.json:
            say(json.dumps(_as_json(pilots), indent=2))
        raise
    if arguments.json:
        fitted = {
            "form": curve.form,
            "errors": curve.errors,
            "targets": curve.targets.tolist(),
            "coefficients": {name: value.tolist() for name, value in curve.coefficients.items()},
        }
        say(json.dumps(_as_json(pilots) | {"curve": fitted}, indent=2))
    else:
        say(curve.table())
        say(f"pilots: {root}")
    return 0


def _trained(
    config: Config, options: Mapping[str, Any], root: Path, jobs: int, console: Terminal
) -> Pilots:
    """The pilots, with bars on a terminal and otherwise a line per pilot."""
    from wirelessfl.base.wording import count_of
    from wirelessfl.cli.output import sweep_progress
    from wirelessfl.designs.pilot_plan import PilotRequest, planned
    from wirelessfl.designs.pilot_runs import pilot
    from wirelessfl.runs.observers.console import metrics_of

    plan = planned(config, PilotRequest(**options))
    runs = [
        (point.label, pilot_config.total_rounds)
        for point, pilot_config in zip(plan.points, plan.configs, strict=True)
    ]
    last: dict[int, dict[str, Any]] = {}

    def on_found(finished: Sequence[int], others: Sequence[int]) -> None:
        if not config.data.validation_fraction:
            share = plan.configs[0].data.validation_fraction
            console.tell(f"validation_fraction={share:g}: held out, since the settings have none")
        if finished:
            console.tell(f"reading {count_of(len(finished), 'pilot')}, training {len(others)}")

    def on_end(place: int) -> None:
        if place in last and not console.is_terminal:
            row = last[place]
            console.tell(f"{runs[place][0]}: round {row['round']}  {metrics_of(row, SHOWN)}")

    with sweep_progress(runs, console, SHOWN) as show:

        def on_row(place: int, row: dict[str, Any]) -> None:
            last[place] = row
            show(place, row)

        callbacks: dict[str, Any] = {"on_row": on_row, "on_end": on_end, "on_found": on_found}
        return pilot(config, root=root, jobs=jobs, **options, **callbacks)


def _table(pilots: Pilots) -> Table:
    """One line per pilot, without the columns in which all pilots are equal."""
    rows = pilots.rows()
    varied = ("clients", "largest", "snr_db")
    equal = {name for name in varied if len({r[name] for r in rows}) == 1}
    if pilots.target is None:
        equal.add("rounds_to_target")
    columns = {key: column for key, column in COLUMNS.items() if key not in equal}
    to = "" if pilots.target is None else f" up to validation accuracy {pilots.target:g}"
    table = Table(title=f"pilots{to}")
    for heading, _ in columns.values():
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        missing = {"rounds_to_target": f"> {row['rounds']}"}
        table.add_row(
            *(
                missing.get(key, "-") if row[key] is None else format(row[key], form)
                for key, (_, form) in columns.items()
            )
        )
    return table


def _as_json(pilots: Pilots) -> dict[str, Any]:
    return {
        "trainings": len(pilots),
        "trained": pilots.trained,
        "kept": pilots.kept,
        "wall_seconds": pilots.wall_seconds,
        "target": pilots.target,
        "pilots": pilots.rows(),
    }
