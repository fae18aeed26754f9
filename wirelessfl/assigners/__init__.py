"""Assigners, one per file: who trains which neurons. Files in this folder are discovered."""

from __future__ import annotations

from wirelessfl.assigners.base import Assigner
from wirelessfl.assigners.none import NoAssigner
from wirelessfl.registry import Kind

ASSIGNERS: Kind[Assigner] = Kind("assigner", __name__, Assigner)
"""All assigners, which give cells and clients their submodels."""

__all__ = ["ASSIGNERS", "Assigner", "NoAssigner"]
