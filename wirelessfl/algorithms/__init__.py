"""Algorithms, one a file; a file put here is found by being here."""

from __future__ import annotations

from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import Any, get_type_hints

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.errors import ConfigError
from wirelessfl.registry import by_name, classes_in, subclass

LOCAL = "fedavg"
"""What cells run unless ``local`` names another algorithm."""


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """Every algorithm in this folder, by name."""
    return classes_in(__name__, Algorithm)


def find_algorithm(name: str, local: str | None = None) -> type[Algorithm]:
    """The algorithm called ``name``, or the user's at the import path ``module:Class``.

    Args:
        name: its name or path.
        local: likewise, what its cells run, for an algorithm that has a choice (``hist``).

    Raises:
        ConfigError: there is none, it is no such class, or the two do not go together.
    """
    found = by_name("algorithm", name, algorithm_classes())
    outer: type[Algorithm] = subclass("algorithm", name, found, Algorithm)
    if local is None or local == LOCAL or "local" not in {f.name for f in fields(outer)}:
        return outer
    found = by_name("local", local, algorithm_classes())
    return inside(outer, subclass("local", local, found, Algorithm), local)


@cache
def inside(outer: type[Algorithm], inner: type[Algorithm], local: str) -> type[Algorithm]:
    """``outer``, which deals out submodels to cells, with ``inner`` run by clients and edges.

    Methods and settings are those of both: ``inner``'s go before FedAvg's, which ``outer`` would
    run without it.

    Args:
        outer: an algorithm over cells.
        inner: an algorithm of one server, derived from FedAvg.
        local: what ``inner`` is called.

    Raises:
        ConfigError: they are no such algorithms.
    """
    if inner.topology != "star":
        raise ConfigError(f"local is {local!r}, which has cells itself: choose one of one server.")
    if inner.timing != "rounds":
        raise ConfigError(
            f"local is {local!r}, which has a time of its own: choose one with rounds, such as "
            "fedavg."
        )
    parts = outer.submodels is not Algorithm.submodels
    if parts and inner.client_submodels is not Algorithm.client_submodels:
        raise ConfigError(
            f"local is {local!r}, whose clients train submodels of their own, and {outer.name!r} "
            "deals out parts of the model to cells: choose hfedavg, where cells have all of it."
        )
    hints = get_type_hints(inner, include_extras=True)
    # Defaults of settings that both have are those of the inner one: learning rates differ.
    settings: list[tuple[str, Any, Any]] = [
        (f.name, hints[f.name], field(default=f.default)) for f in fields(inner)
    ]
    if any(f.default is MISSING for f in fields(inner)):
        raise ConfigError(f"local is {local!r}: every setting of it needs a default.")
    choice = get_type_hints(outer, include_extras=True)["local"]
    settings.append(("local", choice, field(default=local)))
    both: type[Algorithm] = make_dataclass(
        f"{outer.__name__}With{inner.__name__}",
        settings,
        bases=(outer, inner),
        namespace={
            "name": outer.name,
            "__doc__": f"{outer.name} whose cells run {local}.",
            "__module__": outer.__module__,
            "__reduce__": lambda own: (_remake, (outer, inner, local, vars(own))),
        },
        frozen=True,
    )
    for rule in ("begin", "step", "keep", "send", "merge"):
        if getattr(both, rule) is not getattr(inner, rule):
            raise ConfigError(
                f"local is {local!r}, whose {rule} that of {outer.name!r} would replace: derive "
                "it from wirelessfl.algorithms.fedavg.FedAvg."
            )
    return both


def _remake(
    outer: type[Algorithm], inner: type[Algorithm], local: str, settings: dict[str, Any]
) -> Algorithm:
    """An algorithm from another process: its class has no name to be found by."""
    return inside(outer, inner, local)(**settings)


__all__ = ["Algorithm", "algorithm_classes", "find_algorithm"]
