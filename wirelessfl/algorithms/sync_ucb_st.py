"""Sync-UCB-ST: Sync-ST with assignments by a bandit (Bhuyan and Moharir, COMSNETS 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.sync_st import SyncST


@dataclass(frozen=True)
class SyncUCBST(SyncST):
    """Sync-ST with assignment "bandit": prefers high losses (Bhuyan and Moharir, COMSNETS 2022)."""

    name = "sync-ucb-st"
