"""Whether the widths of clients can be chosen, and those of pilots that vary them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.algorithms.heterofl import HeteroFL
from wirelessfl.algorithms.narrow import Adaptive
from wirelessfl.algorithms.ra_fed import RaFed
from wirelessfl.config import Config
from wirelessfl.config.tables import read_toml

NARROW = ((0.125,), (1.0, 0.5, 0.25, 0.125))
"""Widths of pilots: equal ones, and ones that differ between clients."""
NESTED = ((1.0, 0.125, 0.125, 0.125), (1.0, 0.5, 0.25, 0.125))
"""Widths of pilots whose submodels are the first neurons: the others need some wide clients."""
STATED = ("capacities", "widths", "budget", "min_coverage")
"""Settings of an algorithm that state its widths."""
DEFAULT = {"widths": None, "budget": "width", "min_coverage": 0}
"""Values with which they leave the widths open."""


def nested(algorithm: Algorithm) -> bool:
    """Whether each submodel contains all narrower ones, so that no client need train a neuron."""
    ordered = isinstance(algorithm, RaFed) and algorithm.masks == "ordered"
    return ordered or isinstance(algorithm, HeteroFL)


def widths_kept(config: Config) -> str | None:
    """Why the widths of clients cannot be chosen, whatever the capacities: None if they can."""
    algorithm = config.choices.algorithm
    if not isinstance(algorithm, Adaptive):
        name = config.algorithm["name"]
        return f'algorithm "{name}", in which no client has a width of its own: choose e.g. ra-fed'
    if isinstance(algorithm, RaFed) and algorithm.masks == "partition":
        return "masks=partition, which scale widths so that they cover each neuron once"
    if config.regime != "rounds":
        return "asynchronous cells, whose designs keep widths"
    for name, value in DEFAULT.items():
        if getattr(algorithm, name) != value:
            return f"{name}={getattr(algorithm, name)}, which states widths"
    return None


def states_widths(config: Config | Mapping[str, Any] | str | Path) -> bool:
    """Whether settings state widths, which are kept: clients may not be able to train others.

    Args:
        config: settings as given by the user.
    """
    if isinstance(config, Config):
        return any(config.states("algorithm", name) for name in STATED)
    tables = config if isinstance(config, Mapping) else read_toml(Path(config), trust=True)
    table = tables.get("algorithm")
    return isinstance(table, Mapping) and any(name in table for name in STATED)
