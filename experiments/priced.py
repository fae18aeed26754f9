"""Train once, price many: stored runs over another radio, see ``wirelessfl.price``.

Stored runs are files of rows and settings, without a folder of a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from wirelessfl.base.errors import ConfigError
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.runs.pricing.radio import TABLES, Radio, check_independent, repriced
from wirelessfl.runs.pricing.radio import over as over_radio


def over(config: Config, **changes: Mapping[str, Any]) -> Config:
    """The configuration with other settings of the radio.

    Args:
        config: a configuration.
        changes: tables of settings of the radio. A table with a name replaces that of the
            configuration; of the network, the given settings are replaced.
    """
    flags: dict[str, Any] = {}
    for section, table in changes.items():
        if section not in TABLES:
            raise ConfigError(
                f"{section} does not belong to the radio: choose from {', '.join(TABLES)}."
            )
        if section != "uplink":
            flags |= {section if key == "name" else key: value for key, value in table.items()}
    return over_radio(config, Radio(changes.get("uplink"), flags=flags))


def priced(run: StoredRun, *, joules: bool = True, **changes: Mapping[str, Any]) -> StoredRun:
    """The stored run as it would have been over another radio.

    Its rows have the accuracies of the run and the costs of the other radio, to the bit those of a
    run that is trained there.

    Args:
        run: a stored run.
        joules: whether to compute energy; otherwise rows have none.
        changes: see :func:`over`, such as ``uplink={"name": "ofdma", "allocation": "optimal"}``.
    """
    here = Config.of(run.settings)
    check_independent(here)
    rows = repriced(run.rows, here, over(here, **changes), joules=joules).rows
    settings = run.settings | {
        name: dict(table) if "name" in table else run.settings.get(name, {}) | dict(table)
        for name, table in changes.items()
    }
    return replace(run, rows=rows, settings=settings)
