"""Algorithms, by family. A file that is added to this folder is discovered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields

from wirelessfl.algorithms.algorithm import Algorithm, Method
from wirelessfl.algorithms.assigners import Assigner, NoAssigner
from wirelessfl.algorithms.fedavg import FedAvg
from wirelessfl.algorithms.hfedavg import HFedAvg
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.registry import by_name, classes_in, subclass

WHOLE = NoAssigner()
LOCAL = FedAvg.name
"""The algorithm that cells run by default, unless ``local`` names another."""


def algorithm_classes() -> Mapping[str, type[Method]]:
    """All algorithms in this folder, by name."""
    return classes_in(__name__, Method)


def find_algorithm(name: str) -> type[Method]:
    """Find the algorithm called ``name``, or the user's class at this import path.

    Raises:
        ConfigError: it is unknown, or is not an algorithm.
    """
    return _class_of("algorithm", name)


def find_local(outer: type[Method], name: str = LOCAL) -> type[Algorithm]:
    """Find the algorithm that runs inside the cells of another.

    Args:
        outer: an algorithm with cells, see ``hfedavg.HFedAvg``.
        name: name or import path of an algorithm with one server.

    Raises:
        ConfigError: it is unknown, is not an algorithm, or the two cannot be combined.
    """
    inner = _class_of("local", name)
    if not issubclass(inner, Algorithm):
        raise ConfigError(
            f"local is {name!r}, which has cells itself: choose an algorithm with one server."
        )
    if issubclass(outer, Assigner) and issubclass(inner, Assigner):
        raise ConfigError(
            f"local={name!r} conflicts with algorithm={outer.title!r}: clients of {name!r} "
            f"choose their own submodels, and {outer.title!r} already assigns one to each cell. "
            "Choose algorithm hfedavg, whose cells train the full model."
        )
    for key in {f.name for f in fields(inner)} & {f.name for f in fields(outer)}:
        raise ConfigError(
            f"local is {name!r}, whose setting {key} has the name of a setting of "
            f"algorithm {outer.title!r}: give it another name."
        )
    if any(f.default is MISSING for f in fields(inner)):
        raise ConfigError(
            f"local is {name!r}, which has settings without defaults: give each a default."
        )
    return inner


def rule_of(algorithm: Method) -> Algorithm:
    """The rules of the clients and of the servers that they report to."""
    rule = algorithm.local if isinstance(algorithm, HFedAvg) else algorithm
    assert isinstance(rule, Algorithm)
    return rule


def assigner_of(algorithm: Method) -> Assigner:
    """Who trains which neurons: an algorithm that derives from an assigner, or full models."""
    parts = (algorithm, rule_of(algorithm))
    return next((part for part in parts if isinstance(part, Assigner)), WHOLE)


def _class_of(setting: str, name: str) -> type[Method]:
    """The class of the algorithm that a setting names."""
    classes = algorithm_classes()
    if isinstance(name, str) and name in classes:
        return classes[name]
    cls = by_name(setting, name, classes)
    base = HFedAvg if isinstance(cls, type) and issubclass(cls, HFedAvg) else Algorithm
    algorithm: type[Method] = subclass(setting, name, cls, base)
    return algorithm


__all__ = [
    "LOCAL",
    "Algorithm",
    "HFedAvg",
    "Method",
    "algorithm_classes",
    "assigner_of",
    "find_algorithm",
    "find_local",
    "rule_of",
]
