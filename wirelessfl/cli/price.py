"""``wirelessfl price``: a trained run over another radio, without training."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import expanded
from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "price a trained run over another radio: wirelessfl price RUN --uplink ofdma"


def add(parser: Parser) -> None:
    """Add the arguments; the flags are those of the run's choices."""
    parser.description = (
        "Print a trained run beside the seconds and joules that it would have had over another "
        "network or uplink. Cells, clients, seed and training stay; nothing is trained, and no "
        "data are read. Flags of the network and the uplink are those of `run`; naming an uplink "
        "replaces all settings of that of the run. --target X prices the rounds to an accuracy "
        "(default: the run's target)."
    )
    parser.add_argument("directory", type=expanded, metavar="RUN", help="folder of the run")
    parser.add_json()
    parser.add_trust()
    words = parser.words or []
    folder = next((word for word in words if Path(word, "config.toml").is_file()), None)
    if folder is not None:
        others = [word for word in words if word != folder]
        parser.words = ["--config", f"{folder}/config.toml", *others]
    elif words:
        parser.words = []
    parser.add_settings(
        algorithm="hfedavg",
        types={"target": float},
        headings=("network", "uplink"),
        usage="RUN [--uplink NAME] [--target X] [--json] [--trust] [--flag value ...]",
    )


def act(arguments: argparse.Namespace) -> int:
    """Print a run beside its price."""
    from wirelessfl.air.links import compared
    from wirelessfl.cli.flags import given_flags
    from wirelessfl.results.elsewhere import price_over
    from wirelessfl.results.load import load

    run = load(arguments.directory, trust=arguments.trust)
    flags = given_flags(arguments)
    target = flags.pop("target", None)
    if not flags:
        raise ConfigError(
            "no setting of the radio is given, so that the run has its own price: give one, such "
            "as --uplink ofdma or --bandwidth-hz 2e6. `wirelessfl show` prints the run."
        )
    prices = price_over(run, flags)
    if arguments.json:
        trained, priced = prices.costs(target)
        changes = {name: list(pair) for name, pair in prices.changes.items()}
        facts = {"run": str(run.directory), "trained": trained, "priced": priced}
        say(json.dumps(facts | {"changes": changes, "rows": prices.rows}, indent=2))
        return 0
    say(f"{prices.label}: {prices.differences()}")
    say(prices.table(target))
    bought = compared(prices.rows[-1])
    if bought is not None:
        say(bought)
    return 0
