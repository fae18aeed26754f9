"""The uplinks that are compared, by name in tables and figures."""

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
