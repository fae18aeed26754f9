"""Sync-Bayes-ST: Sync-ST with assignments by Bayesian optimisation (Zhou et al., AAAI 2022)."""

from __future__ import annotations

from dataclasses import dataclass

from wirelessfl.algorithms.sync_st import SyncST


@dataclass(frozen=True)
class SyncBayesST(SyncST):
    """Sync-ST whose clients are chosen for short and fair rounds (assignment ``bayes``)."""

    name = "sync-bayes-st"
