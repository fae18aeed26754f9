"""Figures of runs: curves, marks and styles."""
