"""Train once, price many: seconds and joules of stored runs over another radio, without training.

Over an error-free uplink, a model does not depend on the radio if clients and submodels of a round
do not. Then one run has the accuracies for every uplink, SNR and placement; what its rounds cost
there follows from its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wirelessfl.config import Config
from wirelessfl.config.unused import RADIO
from wirelessfl.errors import ConfigError
from wirelessfl.pricing.same_training import TABLES, check_independent, name_of, repriced
from wirelessfl.results.archive import StoredRun

REPLACED = TABLES
"""Tables of settings of the radio."""
NETWORK = tuple(name for name in RADIO if name != "channel")
"""Settings of the network that another price may have."""


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
    check_independent(here)
    there = over(here, **changes)
    rows = repriced(run.rows, here, there, joules=joules).rows
    settings = run.settings | {
        name: dict(table) if "name" in table else run.settings.get(name, {}) | dict(table)
        for name, table in changes.items()
    }
    return replace(run, rows=rows, settings=settings)
