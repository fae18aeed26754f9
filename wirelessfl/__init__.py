"""wirelessfl: design wireless networks and federated learning together.

>>> import wirelessfl
>>> config = wirelessfl.Config.from_flags("hist", cells=2, clients=8, rounds=1, out="my-first-run")
>>> result = wirelessfl.run(config)
>>> [row["round"] for row in result.rows]
[0, 1]

Train:
    Config            settings of a run: from flags, tables or a TOML file
    run               train, with your own model, data, loss, metrics, network, observers if any
    Given             what can be given to run, resume, price, pilot from Python instead of settings
    resume            continue an interrupted run, or extend a finished one
    combinations      configurations for all combinations of some values
    sweep             execute many runs, or read those that exist

Read stored runs, without training:
    RunResult         what a run returns: rows, parameters, model, summary
    load              the run in a folder
    load_all          many runs, to select, tabulate and plot
    ClientLog         what rounds cost each client: seconds, joules, who is last
    read_client_log   the client log of a run

Design without training:
    price             what the rounds of a configuration cost, or a trained run over other networks
    Prices            what price returns: seconds, bytes and joules of each round
    PricedRun         the rows of a trained run with the seconds and joules of another radio
    NetworkPrices     the same rounds over many networks, as arrays
    PricedNetworks    a trained run over many networks
    plan              what a round costs with each access, side by side
    Options           what plan returns: an Option for each access
    Option            seconds, bytes and joules of a round with one access
    model_mask_sizes  the problem of submodel sizes for your own model and channels

Design network and training together:
    design            choose algorithm, H, E, clients, masks and uplink for a target or a budget
    Design            what design finds: a configuration, its prediction, tables, figures
    pilot             train a few short runs, from which a learning curve is fitted
    Pilots            what pilot returns: the runs, their number and their curve
    fit_rounds        rounds to an accuracy as a function of the settings, from pilot runs
    RoundsCurve       what fit_rounds returns: rounds, intervals, accuracies
    Pilot             a run as fit_rounds sees it

Redesign a run while it trains:
    Redesign          derive from it: decides every R rounds how the next ones train and send
    RoundSettings     what it decides: local steps, edge rounds, participants, uplink settings

Test your own parts:
    check             whether your algorithm, uplink, model, ... does what its kind requires

Errors:
    ConfigError       a wrong setting or argument; the message names it and the remedy
    DataError         missing, damaged or unsuitable data
    TrainingError     your own code, or the training itself, has failed

Warnings:
    Note              something that is allowed, but probably not meant, e.g. a band of 20 Hz

Each has an example: ``help(wirelessfl.run)``. Packages to look at next:
    channels                 networks, path loss, fading, rates, accesses, over-the-air sums
    solvers                  bands, energy, submodel sizes, beamformers, with proven bounds
    wirelessfl.extend        base classes of your own parts, and what their methods receive
    wirelessfl.data          data sets, your own data, and splits over clients
    wirelessfl.models        models, and how your own is built
    wirelessfl.losses        losses, also of labels of other shapes, and your own
    wirelessfl.metrics       further metrics of rows, and your own
    wirelessfl.observers     early stopping, best model, trackers, your own hooks
    wirelessfl.results       selection, tables and figures of stored runs
    wirelessfl.theory        bounds of convergence
    wirelessfl.bridges       clients of a Flower app, and splits of Flower's partitioners

In a shell, ``wirelessfl --help`` lists the commands, and ``wirelessfl list`` all choices.
"""

from __future__ import annotations

import random
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wirelessfl.base import (
    import_paths as import_paths,  # lets every process import files by their path
)

if TYPE_CHECKING:
    from channels import Note
    from wirelessfl.base.errors import ConfigError, DataError, TrainingError
    from wirelessfl.config import Config
    from wirelessfl.config.combinations import combinations
    from wirelessfl.designs.curve import RoundsCurve
    from wirelessfl.designs.design import design
    from wirelessfl.designs.fit import fit_rounds
    from wirelessfl.designs.observed import Pilot
    from wirelessfl.designs.pilot_runs import Pilots, pilot
    from wirelessfl.designs.solution import Design
    from wirelessfl.engine.rounds.client_log import ClientLog
    from wirelessfl.engine.rounds.mask_sizes import model_mask_sizes
    from wirelessfl.engine.rounds.redesign import Redesign, RoundSettings
    from wirelessfl.results import load, load_all
    from wirelessfl.results.price import price
    from wirelessfl.results.priced_runs import PricedNetworks, PricedRun
    from wirelessfl.runs.build.given import Given
    from wirelessfl.runs.checking import check
    from wirelessfl.runs.folder.client_log import read_client_log
    from wirelessfl.runs.pricing.network_prices import NetworkPrices
    from wirelessfl.runs.pricing.options import Option, Options, plan
    from wirelessfl.runs.pricing.prices import Prices
    from wirelessfl.runs.result import RunResult
    from wirelessfl.runs.run import resume, run
    from wirelessfl.runs.sweep import sweep

    # At run time there is none: help(wirelessfl) would print the whole help of each of its names.
    __all__ = [
        "ClientLog",
        "Config",
        "ConfigError",
        "DataError",
        "Design",
        "Given",
        "NetworkPrices",
        "Note",
        "Option",
        "Options",
        "Pilot",
        "Pilots",
        "PricedNetworks",
        "PricedRun",
        "Prices",
        "Redesign",
        "RoundSettings",
        "RoundsCurve",
        "RunResult",
        "TrainingError",
        "check",
        "combinations",
        "design",
        "fit_rounds",
        "load",
        "load_all",
        "model_mask_sizes",
        "pilot",
        "plan",
        "price",
        "read_client_log",
        "resume",
        "run",
        "sweep",
    ]

_HOMES = {
    "Config": "wirelessfl.config",
    "ConfigError": "wirelessfl.base.errors",
    "DataError": "wirelessfl.base.errors",
    "Pilot": "wirelessfl.designs.observed",
    "Pilots": "wirelessfl.designs.pilot_runs",
    "NetworkPrices": "wirelessfl.runs.pricing.network_prices",
    "Note": "channels.notes",
    "PricedNetworks": "wirelessfl.results.priced_runs",
    "PricedRun": "wirelessfl.results.priced_runs",
    "Option": "wirelessfl.runs.pricing.options",
    "Options": "wirelessfl.runs.pricing.options",
    "Design": "wirelessfl.designs.solution",
    "Given": "wirelessfl.runs.build.given",
    "Prices": "wirelessfl.runs.pricing.prices",
    "RoundsCurve": "wirelessfl.designs.curve",
    "Redesign": "wirelessfl.engine.rounds.redesign",
    "RoundSettings": "wirelessfl.engine.rounds.redesign",
    "TrainingError": "wirelessfl.base.errors",
    "check": "wirelessfl.runs.checking",
    "combinations": "wirelessfl.config.combinations",
    "design": "wirelessfl.designs.design",
    "fit_rounds": "wirelessfl.designs.fit",
    "load": "wirelessfl.results",
    "load_all": "wirelessfl.results",
    "model_mask_sizes": "wirelessfl.engine.rounds.mask_sizes",
    "pilot": "wirelessfl.designs.pilot_runs",
    "plan": "wirelessfl.runs.pricing.options",
    "price": "wirelessfl.results.price",
    "ClientLog": "wirelessfl.engine.rounds.client_log",
    "read_client_log": "wirelessfl.runs.folder.client_log",
    "RunResult": "wirelessfl.runs.result",
    "resume": "wirelessfl.runs.run",
    "run": "wirelessfl.runs.run",
    "sweep": "wirelessfl.runs.sweep",
}
PUBLIC = (
    *("bridges", "data", "extend", "losses", "metrics"),
    *("models", "observers", "results", "theory"),
)
"""Modules with public names; all others may move."""


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__"])


def check_packages() -> None:
    """Check that no other package named ``channels`` or ``solvers`` hides those of wirelessfl.

    Raises:
        ImportError: another package is found first; the message says where.
    """
    for name, mark in (("channels", "path_loss"), ("solvers", "mask_sizes")):
        spec = find_spec(name)  # imports nothing
        folders = getattr(spec, "submodule_search_locations", None) or ()
        if not any(Path(folder, mark).is_dir() for folder in folders):
            raise ImportError(
                f"package {name!r} at {getattr(spec, 'origin', None)} does not belong to "
                "wirelessfl. Uninstall it, or install wirelessfl into a separate environment."
            )


def __getattr__(name: str) -> Any:
    """Import a public name on first use, because torch takes a second to import."""
    if name == "__version__":
        return str(import_module("wirelessfl.base.packages").version())
    if name in PUBLIC:
        return import_module(f"wirelessfl.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'wirelessfl' has no attribute {name!r}")
    check_packages()
    if _HOMES[name] not in sys.modules:
        state = random.getstate()  # rich draws from the global generator when it is imported
        import_module(_HOMES[name])
        random.setstate(state)
    return getattr(import_module(_HOMES[name]), name)
