"""Accesses that solve a problem for each load. One access per file."""

from solvers.access.over_the_air import OverTheAir

__all__ = ["OverTheAir"]
