"""Algorithms, one per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import Any, get_type_hints

from wirelessfl.algorithms.algorithm import Algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.errors import ConfigError
from wirelessfl.registry import by_name, classes_in, subclass

LOCAL = FedAvg.name
"""The algorithm that cells run by default, unless ``local`` names another."""


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """All algorithms in this folder, by name; those with cells run FedAvg inside each cell."""
    return {
        name: inside(found, FedAvg, LOCAL) if found.takes_local else found
        for name, found in _classes().items()
    }


def _classes() -> Mapping[str, type[Algorithm]]:
    return classes_in(__name__, Algorithm)


def find_algorithm(name: str, local: str | None = None) -> type[Algorithm]:
    """Find the algorithm called ``name``, or the user's class at this import path.

    Args:
        name: its name or import path.
        local: name or import path of the algorithm that runs inside its cells, for algorithms with
            the setting ``local`` (``hist``); None for FedAvg.

    Raises:
        ConfigError: a name is unknown, or is not an algorithm, or the two cannot be combined.
    """
    classes = _classes()
    outer: type[Algorithm] = subclass(
        "algorithm", name, by_name("algorithm", name, classes), Algorithm
    )
    if not outer.takes_local:
        return outer
    if local is None or local == LOCAL:
        return inside(outer, FedAvg, LOCAL)
    return inside(
        outer, subclass("local", local, by_name("local", local, classes), Algorithm), local
    )


@cache
def inside(outer: type[Algorithm], inner: type[Algorithm], local: str) -> type[Algorithm]:
    """Combine ``outer``, an algorithm with cells, with the rules of ``inner`` for each cell.

    The two have no method in common: ``outer`` says how the cells are combined and, perhaps, which
    neurons they train; ``inner`` has the rules of clients and servers. Settings are those of both.

    Args:
        outer: an algorithm with cells, see ``hfedavg.HFedAvg``.
        inner: an algorithm with one server.
        local: name of ``inner``.

    Raises:
        ConfigError: the two cannot be combined.
    """
    _check_inner(outer, inner, local)
    hints = get_type_hints(inner, include_extras=True)
    # Common settings take the inner algorithm's defaults: each algorithm has its own step sizes.
    settings: list[tuple[str, Any, Any]] = [
        (f.name, hints[f.name], field(default=f.default)) for f in fields(inner)
    ]
    choice = get_type_hints(outer, include_extras=True)["local"]
    settings.append(("local", choice, field(default=local)))
    both: type[Algorithm] = make_dataclass(
        f"{outer.__name__}With{inner.__name__}",
        settings,
        bases=(outer, inner),
        namespace={
            "name": outer.name,
            "title": outer.title if local == LOCAL else f"{outer.title} with local={local}",
            "__doc__": outer.__doc__ if local == LOCAL else f"{outer.name} with {local} in cells.",
            "__module__": outer.__module__,
            "overrides": tuple(name for name, *_ in settings),
            "__reduce__": lambda algorithm: (_remake, (outer, inner, local, vars(algorithm))),
        },
        frozen=True,
    )
    return both


def _check_inner(outer: type[Algorithm], inner: type[Algorithm], local: str) -> None:
    """Check that ``inner`` can run inside the cells of ``outer``.

    Raises:
        ConfigError: ``inner`` cannot; the message says why.
    """
    if inner.topology != "star":
        raise ConfigError(
            f"local is {local!r}, which has cells itself: choose an algorithm with one server."
        )
    if outer.brings_assigner and inner.brings_assigner:
        raise ConfigError(
            f"local={local!r} conflicts with algorithm={outer.title!r}: clients of {local!r} "
            f"choose their own submodels, and {outer.title!r} already assigns one to each cell. "
            "Choose algorithm hfedavg, whose cells train the full model."
        )
    common = {f.name for f in fields(Algorithm)}
    for name in {f.name for f in fields(inner)} & {f.name for f in fields(outer)} - common:
        raise ConfigError(
            f"local is {local!r}, whose setting {name} has the name of a setting of "
            f"algorithm {outer.title!r}: give it another name."
        )
    if any(f.default is MISSING for f in fields(inner)):
        raise ConfigError(
            f"local is {local!r}, which has settings without defaults: give each a default."
        )


def _remake(
    outer: type[Algorithm], inner: type[Algorithm], local: str, settings: dict[str, Any]
) -> Algorithm:
    """Unpickle a combined algorithm, whose generated class cannot be imported by name."""
    return inside(outer, inner, local)(**settings)


__all__ = ["LOCAL", "Algorithm", "algorithm_classes", "find_algorithm"]
