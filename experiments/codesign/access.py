"""The multiple accesses of the crossed study, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.studies import Scale, Settings

ACCESSES: Mapping[str, Mapping[str, Any]] = {
    "tdma": {"uplink": "tdma"},
    "equal": {"uplink": "ofdma"},
    "optimal": {"uplink": "ofdma", "allocation": "optimal"},
    "physical": {"uplink": "aircomp", "convention": "physical"},
    "mmse": {"uplink": "aircomp", "convention": "mmse"},
}
"""Settings of each access, by flag name."""
NAMES: Mapping[str, str] = {
    "tdma": "TDMA, equal time slots",
    "equal": "OFDMA, equal bandwidth",
    "optimal": "OFDMA, optimal bandwidth",
    "physical": "AirComp, physical",
    "mmse": "AirComp, mmse",
}
"""Names in tables and figures."""
PRICED: Mapping[str, tuple[str, ...]] = {"tdma": ("equal", "optimal")}
"""Accesses over which a synchronous run has a price, by that over which it is trained."""


def complete(settings: Settings, scale: Scale) -> Settings:
    """Replace ``access`` by the settings of this access."""
    others = {name: value for name, value in settings.items() if name != "access"}
    access = dict(ACCESSES[settings["access"]])
    rounds = access["uplink"] == "ofdma" and "cells" in settings
    return others | access | ({"coherence": "round"} if rounds else {})


def access_of(settings: Mapping[str, Any]) -> str:
    """The access of a case that has been completed."""
    return next(
        name
        for name, flags in reversed(ACCESSES.items())  # equal bands are in the settings of optimal
        if all(settings.get(flag) == value for flag, value in flags.items())
    )
