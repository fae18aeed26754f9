"""Uplinks, one a file; a file put here is found by being here."""

from __future__ import annotations

from typing import Any

from wirelessfl.registry import by_name, classes_in
from wirelessfl.uplinks.base import AirRound, Reception, Uplink


def uplink_classes() -> dict[str, type[Uplink]]:
    """Every uplink in this folder, by name."""
    return classes_in(__name__, Uplink)


def find_uplink(name: str) -> type[Uplink]:
    """The uplink called ``name``, or the user's at the import path ``module:Class``.

    Raises:
        ConfigError: there is none.
    """
    found: Any = by_name("uplink", name, uplink_classes())
    return found  # type: ignore[no-any-return]


__all__ = ["AirRound", "Reception", "Uplink", "find_uplink", "uplink_classes"]
