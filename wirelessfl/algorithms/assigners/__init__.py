"""Assigners: who trains which neurons. A file that is added to this folder is discovered."""

from __future__ import annotations

from wirelessfl.algorithms.assigners.assigner import Assigner, NoAssigner
from wirelessfl.base.needs import Needs
from wirelessfl.base.registry import Kind

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
