"""Uplinks, one a file; a file put here is found by being here."""

from __future__ import annotations

from wirelessfl.registry import by_name, classes_in, subclass
from wirelessfl.uplinks.base import AirRound, Reception, Uplink


def uplink_classes() -> dict[str, type[Uplink]]:
    """Every uplink in this folder, by name."""
    return classes_in(__name__, Uplink)


def find_uplink(name: str) -> type[Uplink]:
    """The uplink called ``name``, or the user's at the import path ``module:Class``.

    Raises:
        ConfigError: the name is unknown, or not the path of an uplink class.
    """
    found = by_name("uplink", name, uplink_classes())
    checked: type[Uplink] = subclass("uplink", name, found, Uplink)
    return checked


__all__ = ["AirRound", "Reception", "Uplink", "find_uplink", "uplink_classes"]
