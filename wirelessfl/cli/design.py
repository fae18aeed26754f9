"""``wirelessfl design``: chooses how to train over the configured network."""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import Terminal, say
from wirelessfl.cli.parser import Parser, check_figure, integers, names, numbers

if TYPE_CHECKING:
    from wirelessfl.config import Config

HELP = "choose how to train: wirelessfl design hist --target 0.8 [--flag value ...]"
LISTS = {
    "local_steps": "local_steps",
    "edge_rounds": "edge_rounds",
    "clients_per_round": "clients",
    "uplink": "uplinks",
}
"""Settings that restrict what is chosen from, and the arguments of ``wirelessfl.design``."""
OPTIONS = (
    *("objective", "among", "max_client_joules", "statistic", "pilots", "pilot_steps"),
    *("air_snr_db", "jobs", "draws"),
)
"""Arguments of the command that are those of ``wirelessfl.design``."""
CHOSEN = (
    *("mask_sizes", "mask_shares", "allocation", "order", "round_deadline", "energy_weight"),
    "rates",
    *("late", "stop_at_target", "client_joules", "battery_joules", "availability_trace", "rounds"),
)
"""Settings that a design chooses, or that it does not consider."""


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Choose algorithm, local steps, edge rounds, clients, masks, uplink and allocation with "
        "which the target takes the fewest seconds or joules, or with which --max-seconds or "
        "--max-client-joules buys the most accuracy. A few pilots are trained, or read from --out "
        "(default: runs/pilots). Flags are those of `run`; lists of --local-steps, --edge-rounds, "
        "--clients-per-round and --uplink restrict the choice."
    )
    parser.add_configuration()
    parser.add_quiet()
    types = dict.fromkeys(LISTS, integers) | {"target": float, "max_seconds": float}
    parser.add_settings(types=types | {"uplink": names})
    parser.add_argument(
        "--objective",
        type=_objective,
        metavar="X",
        help="seconds, joules, or W_T,W_E for W_T x seconds + W_E x joules per client, until the "
        "target (default: seconds)",
    )
    parser.add_argument(
        "--among",
        type=names,
        metavar="NAMES",
        help="algorithms to choose from, e.g. hfedavg,hist, each with settings of its own after "
        "+, e.g. fedavg,fedavg+uplink_compression=sign",
    )
    parser.add_argument(
        "--max-client-joules",
        type=float,
        metavar="X",
        help="limit on the joules of the run, mean per client",
    )
    parser.add_argument(
        "--statistic",
        type=_statistic,
        metavar="X",
        help="mean, median, or a quantile such as 0.9 of the run's costs over its channels, which "
        "is minimised (default: mean)",
    )
    parser.add_argument(
        "--pilots",
        type=int,
        metavar="N",
        help="pilots per algorithm that differ in H and E (default: 8)",
    )
    parser.add_argument(
        "--pilot-steps",
        type=int,
        metavar="N",
        help="most local steps of a client in a pilot (default: 4000)",
    )
    parser.add_argument(
        "--air-snr-db",
        type=numbers,
        metavar="X,...",
        help="SNR of the pilots over the air, dB, with --uplink aircomp (default: the network's)",
    )
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="number of pilots that train at a time (default: 1)"
    )
    parser.add_argument(
        "--draws",
        type=int,
        metavar="N",
        help="rounds that are simulated for the costs (default: 16)",
    )
    parser.add_argument(
        "--save", type=expanded, metavar="FILE", help="write the design as .toml, for run --config"
    )
    parser.add_argument("--run", action="store_true", help="train the design")
    parser.add_argument(
        "--picture", type=expanded, metavar="FILE", help="figure to write, as .png and .pdf"
    )


def act(arguments: argparse.Namespace) -> int:
    """Design a run, print the tables, write the configuration and the figure, and train it."""
    from wirelessfl.cli.flags import given_flags, merged, tables_of
    from wirelessfl.designs.design import design

    flags, tables = given_flags(arguments), tables_of(arguments)
    for name in CHOSEN:
        if name in flags:
            raise ConfigError(
                f"{name}={flags[name]} conflicts with design, which chooses it or does without: "
                f"leave --{name.replace('_', '-')} out."
            )
    _check_files(arguments)
    options = {name: getattr(arguments, name) for name in OPTIONS}
    options |= {LISTS[name]: flags.pop(name, None) for name in LISTS}
    options |= {name: flags.pop(name, None) for name in ("target", "max_seconds")}
    options["root"] = flags.pop("out", None)
    options = {name: value for name, value in options.items() if value is not None}
    if "aircomp" in options.get("uplinks", ()):
        flags["uplink"] = "aircomp"  # the other settings of this uplink are those of the design
    console = Terminal(stderr=True, quiet=arguments.quiet)
    on_note = None if arguments.quiet else console.tell
    solution = design(merged(tables, flags), **options, on_note=on_note)
    chosen = solution.value
    assert chosen is not None
    facts = chosen.facts() | {"solution": str(solution)}
    if arguments.json and not arguments.run:
        say(json.dumps(facts, indent=2))
    elif not arguments.json:
        say(chosen.table())
        say(solution)
    if arguments.save is not None:
        trusting = " --trust" if chosen.config.code else ""
        console.tell(
            f"to train it: wirelessfl run --config {chosen.save(arguments.save)}{trusting}"
        )
    if arguments.picture is not None:
        from wirelessfl.base.figures.curves import save_figure

        for file in save_figure(chosen.plot(), arguments.picture):
            console.tell(f"drawn: {file}")
    if arguments.run:
        summary = _trained(chosen.config, arguments)
        if arguments.json:
            say(json.dumps(facts | {"run": summary}, indent=2))
    return 0


def _trained(config: Config, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Train the design; the summary is printed here unless it is part of JSON."""
    from wirelessfl.cli.output import watch
    from wirelessfl.runs.run import run
    from wirelessfl.training.workers.shards import ALONE

    if config.run.workers is None:
        config = config.with_run({"workers": "auto"})
    return watch(ALONE, arguments, partial(run, config), shown=not arguments.json)


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before any work."""
    from wirelessfl.base.files import check_writable

    if arguments.save is not None:
        if arguments.save.suffix != ".toml":
            raise ConfigError(f"save is {arguments.save}: name a .toml file.")
        check_writable(arguments.save.parent, "save")
    if arguments.picture is not None:
        check_figure("picture", arguments.picture)


def _statistic(word: str) -> str | float:
    try:
        return float(word)
    except ValueError:  # a name, which design checks
        return word


def _objective(words: str) -> str | list[float]:
    try:
        return numbers(words) if "," in words else words
    except argparse.ArgumentTypeError:
        remedy = "give seconds, joules, or two weights, e.g. 1,50"
        raise argparse.ArgumentTypeError(f"{words!r} is no objective: {remedy}") from None
