"""Warm starts of sessions, one a file; a file put here is found by being here."""

from __future__ import annotations

from wirelessfl.registry import by_name, classes_in, subclass
from wirelessfl.warm_starts.base import WarmStart


def warm_start_classes() -> dict[str, type[WarmStart]]:
    """Every warm start in this folder, by name."""
    return classes_in(__name__, WarmStart)


def find_warm_start(name: str) -> type[WarmStart]:
    """The warm start called ``name``, or the user's at the import path ``module:Class``.

    Raises:
        ConfigError: there is none, or it is no such class.
    """
    found = by_name("warm_start", name, warm_start_classes())
    checked: type[WarmStart] = subclass("warm_start", name, found, WarmStart)
    return checked


__all__ = ["WarmStart", "find_warm_start", "warm_start_classes"]
