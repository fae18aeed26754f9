"""Splits of a training set over clients; files here are discovered automatically."""

from wirelessfl.data.splits.split import DATA_SPLITS, SPLITS, OwnedSplit, Samples, Split, split

__all__ = ["DATA_SPLITS", "SPLITS", "OwnedSplit", "Samples", "Split", "split"]
