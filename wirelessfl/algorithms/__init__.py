"""Algorithms, one a file; a file put here is found by being here."""

from __future__ import annotations

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.registry import by_name, classes_in, subclass


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """Every algorithm in this folder, by name."""
    return classes_in(__name__, Algorithm)


def find_algorithm(name: str) -> type[Algorithm]:
    """The algorithm called ``name``, or the user's at the import path ``module:Class``.

    Raises:
        ConfigError: there is none, or it is no such class.
    """
    found = by_name("algorithm", name, algorithm_classes())
    checked: type[Algorithm] = subclass("algorithm", name, found, Algorithm)
    return checked


__all__ = ["Algorithm", "algorithm_classes", "find_algorithm"]
