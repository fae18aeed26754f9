"""Assigners, one per file: who trains which neurons. Files in this folder are discovered."""

from __future__ import annotations

from wirelessfl.assigners.assigner import Assigner
from wirelessfl.assigners.none import NoAssigner
from wirelessfl.needs import Needs
from wirelessfl.registry import Kind

ASSIGNERS: Kind[Assigner] = Kind(
    "assigner",
    __name__,
    Assigner,
    default=NoAssigner.name,
    text="which neurons cells and clients train",
    needs=(
        Needs(
            lambda run, _: not run.brings_assigner,
            'conflicts with algorithm "{run.title}", which has its own: choose another '
            "algorithm, such as fedavg or hfedavg",
        ),
    ),
)
"""All assigners, which give cells and clients their submodels."""

__all__ = ["ASSIGNERS", "Assigner", "NoAssigner"]
