"""Algorithms, one a file; a file put here is found by being here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from typing import Any, get_type_hints

from wirelessfl.algorithms.base import Algorithm
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.errors import ConfigError
from wirelessfl.registry import by_name, classes_in, subclass

LOCAL = FedAvg.name
"""What cells run unless ``local`` names another algorithm."""


def algorithm_classes() -> dict[str, type[Algorithm]]:
    """Every algorithm in this folder, by name; over cells, with FedAvg in them."""
    return {
        name: inside(found, FedAvg, LOCAL) if found.takes_local else found
        for name, found in _classes().items()
    }


def _classes() -> Mapping[str, type[Algorithm]]:
    return classes_in(__name__, Algorithm)


def find_algorithm(name: str, local: str | None = None) -> type[Algorithm]:
    """The algorithm called ``name``, or the user's at the import path ``module:Class``.

    Args:
        name: its name or path.
        local: name or path of the algorithm in its cells, where it takes one (``hist``); None:
            FedAvg.

    Raises:
        ConfigError: a name is unknown or not that of an algorithm, or the two do not combine.
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
    """``outer``, which has cells, with ``inner`` run by clients and edge servers.

    Methods and settings are those of both: ``inner``'s go before those of ``Averaging``, from which
    both derive.

    Args:
        outer: an algorithm over cells.
        inner: an algorithm of one server, derived from ``Averaging`` or ``FedAvg``.
        local: what ``inner`` is called.

    Raises:
        ConfigError: they do not combine.
    """
    _check_inner(outer, inner, local)
    hints = get_type_hints(inner, include_extras=True)
    # Defaults of settings that both have are those of the inner one: learning rates differ.
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
            "__doc__": outer.__doc__ if local == LOCAL else f"{outer.name} with {local} in cells.",
            "__module__": outer.__module__,
            "__reduce__": lambda algorithm: (_remake, (outer, inner, local, vars(algorithm))),
        },
        frozen=True,
    )
    if local == LOCAL:
        return both
    replaced = {
        "begin": both.begin is not inner.begin,
        "step": both.step is not inner.step,
        "keep": both.keep is not inner.keep,
        "send": both.send is not inner.send,
        "merge": both.merge is not inner.merge,
    }
    for rule, other in replaced.items():
        if other:
            raise ConfigError(
                f"local is {local!r}, whose {rule} that of {outer.name!r} would replace: derive "
                "it from wirelessfl.algorithms.fedavg.FedAvg."
            )
    return both


def _check_inner(outer: type[Algorithm], inner: type[Algorithm], local: str) -> None:
    """Refuse what cannot run inside the cells of ``outer``.

    Raises:
        ConfigError: it cannot; the message says why.
    """
    if inner.topology != "star":
        raise ConfigError(f"local is {local!r}, which has cells itself: choose one of one server.")
    parts = outer.submodels is not Algorithm.submodels
    if parts and inner.client_submodels is not Algorithm.client_submodels:
        raise ConfigError(
            f"local is {local!r}, whose clients train submodels of their own, and {outer.name!r} "
            "deals out parts of the model to cells: choose hfedavg, where cells have all of it."
        )
    if any(f.default is MISSING for f in fields(inner)):
        raise ConfigError(f"local is {local!r}: every setting of it needs a default.")


def _remake(
    outer: type[Algorithm], inner: type[Algorithm], local: str, settings: dict[str, Any]
) -> Algorithm:
    """An algorithm from another process: its class has no name to be found by."""
    return inside(outer, inner, local)(**settings)


__all__ = ["LOCAL", "Algorithm", "algorithm_classes", "find_algorithm"]
