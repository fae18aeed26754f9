"""Train once, price many: seconds and joules of stored runs over another radio, without training.

Over an error-free uplink, a model does not depend on the radio if clients and submodels of a round
do not. Then one run has the accuracies for every uplink, SNR and placement; what its rounds cost
there follows from its plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import wirelessfl
from experiments.repriced import RELATIVE, row_key
from wirelessfl.config import Config
from wirelessfl.config.unused import RADIO
from wirelessfl.errors import ConfigError
from wirelessfl.results.archive import Row, StoredRun

REPLACED = ("uplink", "network", "layout", "path_loss", "fading")
"""Tables of settings of the radio."""
NETWORK = tuple(name for name in RADIO if name != "channel")
"""Settings of the network that another price may have."""
TRAFFIC = ("uplink_mib", "downlink_mib", "backhaul_mib")
"""Fields of rows that are equal over all radios, unless participants or submodels differ."""
BLIND = ("random", "round-robin")
"""Selections of clients that know nothing of the radio."""
TIMED = {"mask_sizes": ("optimized",), "budget": ("deadline", "fastest")}
"""Settings of algorithms whose submodels depend on seconds, with their values."""


def dependences(config: Config) -> Iterator[str]:
    """Why the trajectory of a run depends on its radio, by setting.

    Args:
        config: the run's configuration, of rounds or sessions.
    """
    uplink, schedule = config.choices.uplink, config.schedule["name"]
    if uplink.gives == "sum":
        yield f"uplink={config.uplink['name']}: the sums have errors, which depend on the channels"
    if config.uplink.get("late") == "lost":
        yield "late=lost: clients that would miss the deadline stay out"
    failures = name_of(config, "failures", "none")
    if failures != "none":
        yield f"failures={failures}: the channels decide which uploads are lost"
    if config.regime not in ("rounds", "sessions"):
        yield f"schedule={schedule}: the order of the merges depends on seconds"
    for name, values in TIMED.items():
        if config.algorithm.get(name) in values:
            yield f"{name}={config.algorithm[name]}: the submodels depend on seconds"
    select = name_of(config, "select", "random")
    if select not in BLIND:
        yield f"select={select}: channels, seconds or losses decide who takes part"
    for name, why in (
        ("max_seconds", "the number of rounds depends on seconds"),
        ("client_joules", "clients end when they have spent their energy"),
    ):
        if getattr(config.training, name, None) is not None:
            yield f"{name}={getattr(config.training, name):g}: {why}"


def name_of(config: Config, kind: str, default: str) -> str:
    """The name of a choice; ``default`` if the run has no choice of this kind."""
    table = getattr(config, kind, None)
    return str(table["name"]) if table else default


def over(config: Config, **changes: Mapping[str, Any]) -> Config:
    """The configuration with other settings of the radio.

    Args:
        config: a configuration.
        changes: tables of ``REPLACED``. A table with a name replaces that of the configuration;
            of the network, the given settings are replaced.

    Raises:
        ConfigError: a change is not one of the radio, or settings conflict.
    """
    tables = config.given_tables()
    if name_of(config, "failures", "none") == "none":
        tables.pop("failures", None)  # not every uplink has failures
    for section, table in changes.items():
        if section not in REPLACED:
            raise ConfigError(
                f"{section} does not belong to the radio: choose from {', '.join(REPLACED)}."
            )
        others = sorted(table.keys() - set(NETWORK)) if section == "network" else []
        if others:
            raise ConfigError(
                f"network.{others[0]} does not belong to the radio: choose from "
                f"{', '.join(NETWORK)}."
            )
        kept = {} if "name" in table else tables.get(section, {})
        tables[section] = {**kept, **table}
    return Config.of(tables)


def priced(run: StoredRun, *, joules: bool = True, **changes: Mapping[str, Any]) -> StoredRun:
    """The stored run as it would have been over another radio.

    Its rows have the accuracies of the run and the costs of the other radio, to the bit those of a
    run that is trained there.

    Args:
        run: a stored run.
        joules: whether to compute energy; otherwise rows have none.
        changes: see :func:`over`, such as ``uplink={"name": "ofdma", "allocation": "optimal"}``.

    Raises:
        ConfigError: the trajectory depends on the radio, here or there; the message names the
            setting.
    """
    here = Config.of(run.settings)
    _check(here)
    there = over(here, **changes)
    _check(there)
    prices = wirelessfl.price(there, max(row["round"] for row in run.rows), joules=joules)
    found: dict[Any, Row] = {}
    for row in prices.rows:
        found.setdefault(row_key(row), row)
    rows = [_with_costs(row, found[row_key(row)]) for row in run.rows]
    settings = run.settings | {
        name: dict(table) if "name" in table else run.settings.get(name, {}) | dict(table)
        for name, table in changes.items()
    }
    return replace(run, rows=rows, settings=settings)


def _check(config: Config) -> None:
    """Refuse a run whose trajectory depends on its radio.

    Raises:
        ConfigError: it does; the message names the first setting.
    """
    for reason in dependences(config):
        raise ConfigError(
            "the run has no price over another radio, because its model depends on it: "
            f"{reason}. Train it there."
        )


def _with_costs(row: Row, costs: Row) -> Row:
    """The row with other costs.

    Raises:
        ConfigError: its traffic differs from the price.
    """
    for name in TRAFFIC:
        if abs(row[name] - costs[name]) > RELATIVE * abs(row[name]):
            raise ConfigError(
                f"{name} after round {row['round']} is {row[name]!r}, and {costs[name]!r} over the "
                "other radio: its participants or submodels differ. Train the run there."
            )
    kept = {name: value for name, value in row.items() if not name.startswith("joules")}
    return kept | costs
