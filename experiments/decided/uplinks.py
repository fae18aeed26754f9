"""The uplinks that are compared, by name."""

from __future__ import annotations

from collections.abc import Mapping

SLOTS, READY = "TDMA, equal slots", "TDMA, in order of readiness"
EQUAL, OPTIMAL = "OFDMA, equal bands", "OFDMA, optimal bands"
AIR = "AirComp"
OMA: Mapping[str, Mapping[str, str]] = {
    SLOTS: {"name": "tdma", "order": "slots"},
    READY: {"name": "tdma", "order": "ready"},
    EQUAL: {"name": "ofdma", "allocation": "equal"},
    OPTIMAL: {"name": "ofdma", "allocation": "optimal"},
}
"""Error-free uplinks: a run over one of them has a price over all of them."""
BEST = (READY, OPTIMAL)
"""Those that decide something; the faster one of both is the best OMA."""


def shown(name: str) -> str:
    """The name of an uplink in tables and figures; stored prices keep the names above.

    >>> shown(OPTIMAL), shown(SLOTS)
    ('OFDMA, optimal bandwidth', 'TDMA, equal time slots')
    """
    for before, after in (("bands", "bandwidth"), ("equal slots", "equal time slots")):
        name = name.replace(before, after)
    return name.replace("in order of readiness", "sequential")
