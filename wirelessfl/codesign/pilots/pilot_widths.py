"""Whether the widths of clients can be chosen, and those of pilots that vary them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from wirelessfl.assigners import Assigner
from wirelessfl.config import Config
from wirelessfl.config.tables import read_toml
from wirelessfl.errors import ConfigError
from wirelessfl.wording import shown

NARROWEST = 0.125
"""The narrowest width of pilots, unless another one is given."""
STATED = ("capacities", "widths", "budget", "min_coverage")
"""Settings that state widths."""
DEFAULT = {"widths": None, "budget": "width", "min_coverage": 0}
"""Values with which they leave the widths open."""


def pilot_widths(assigner: Assigner, narrowest: float) -> tuple[tuple[float, ...], ...]:
    """Widths of two pilots: equal ones, and ones that differ between clients.

    If submodels are the first neurons, some clients must train the others: both differ.

    Args:
        assigner: gives each client a width.
        narrowest: the narrowest width, in (0, 1).
    """
    unequal = tuple(round(narrowest ** (k / 3), 9) for k in range(4))
    if assigner.nested:
        return (1.0, *(3 * (narrowest,))), unequal
    return (narrowest,), unequal


def widths_kept(config: Config) -> str | None:
    """Why a design cannot choose the widths of clients, even without capacities; None if it can."""
    assigner = config.used_assigner
    if assigner.sized != "clients":
        table = submodel_table(config.tables)
        return (
            f'{table} "{config.named(table)}", in which no client has a width of its own: choose '
            "e.g. ra-fed"
        )
    if getattr(assigner, "masks", "") == "partition":
        return "masks=partition, which scale widths so that they cover each neuron once"
    if not config.regime.common_rounds:
        return "asynchronous cells, whose designs keep widths"
    for name, value in DEFAULT.items():
        if getattr(assigner, name) != value:
            return f"{name}={getattr(assigner, name)}, which states widths"
    return None


def states_widths(config: Config | Mapping[str, Any] | str | Path) -> bool:
    """Whether settings state widths, which are kept: clients may not be able to train others.

    Args:
        config: settings as given by the user.
    """
    if isinstance(config, Config):
        return any(config.states(submodel_table(config.tables), name) for name in STATED)
    tables = config if isinstance(config, Mapping) else read_toml(Path(config), trust=True)
    table = tables.get(submodel_table(tables))
    return isinstance(table, Mapping) and any(name in table for name in STATED)


def submodel_table(tables: Mapping[str, Any]) -> str:
    """The table with the settings of submodels: that of the assigner, if one is chosen."""
    return "assigner" if tables.get("assigner") is not None else "algorithm"


def narrowest_width(narrowest: Any, free: Collection[str]) -> float:
    """The least width of designs.

    Args:
        narrowest: the given one; None for the default.
        free: names of the algorithms whose widths are designed.

    Raises:
        ConfigError: it is wrong, or has no effect.
    """
    if narrowest is None:
        return NARROWEST
    number = isinstance(narrowest, int | float) and not isinstance(narrowest, bool)
    if not number or not 0 < narrowest < 1:
        raise ConfigError(f"narrowest is {shown(narrowest)}: give a width above 0 and below 1.")
    if not free:
        raise ConfigError(
            f"narrowest={narrowest:g} has no effect: the algorithm has no widths of clients, or "
            "the settings state them. Leave it out."
        )
    return float(narrowest)
