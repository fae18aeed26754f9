"""Bands of clients that share an uplink: which share of the band each client gets."""

from solvers.bands.allocate import allocate_bandwidth

__all__ = ["allocate_bandwidth"]
