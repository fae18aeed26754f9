"""Sync-Bayes-ST: Sync-ST with assignments by Bayesian optimisation (Zhou et al., AAAI 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.sync_st import SyncST


@dataclass(frozen=True)
class SyncBayesST(SyncST):
    """Sync-ST with assignment "bayes": short and fair rounds (Zhou et al., AAAI 2022)."""

    name = "sync-bayes-st"
