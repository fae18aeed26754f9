"""Splits of a training set over clients, one per file; files here are discovered automatically."""

from wirelessfl.data.splits.deal import DATA_SPLITS, SPLITS, split
from wirelessfl.data.splits.split import OwnedSplit, Samples, Split

__all__ = ["DATA_SPLITS", "SPLITS", "OwnedSplit", "Samples", "Split", "split"]
