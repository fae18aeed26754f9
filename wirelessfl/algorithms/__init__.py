"""Algorithms, one a file; a file put here is found by being here."""

from __future__ import annotations

from typing import Any

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.registry import by_name, classes_in


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """Every algorithm in this folder, by name."""
    return classes_in(__name__, Algorithm)


def find_algorithm(name: str) -> type[Algorithm]:
    """The algorithm called ``name``, or the user's at the import path ``module:Class``.

    Raises:
        ConfigError: there is none.
    """
    found: Any = by_name("algorithm", name, algorithm_classes())
    return found  # type: ignore[no-any-return]


__all__ = ["Algorithm", "algorithm_classes", "find_algorithm"]
