"""Sync-ST: FedAvg of several tasks on disjoint clients (Bhuyan, Moharir and Joshi, 2023)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.task_rule import TaskRule


@dataclass(frozen=True)
class SyncST(TaskRule):
    """FedAvg of several tasks at once on disjoint clients (Bhuyan, Moharir and Joshi, 2023)."""

    name = "sync-st"
