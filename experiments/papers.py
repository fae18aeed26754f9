"""The papers whose experiments this folder contains."""

from __future__ import annotations

from importlib import import_module

from experiments.paper import Paper

NAMES = ("hist", "fedast", "fadamgc", "dynamic_clients", "ra_fed", "decided", "codesign")


def papers() -> dict[str, Paper]:
    """All papers, by name of their folder."""
    return {name: import_module(f"experiments.{name}.__main__").PAPER for name in NAMES}
