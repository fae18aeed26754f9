"""Bands of clients that share an uplink: which share of the band each client gets."""

from solvers.bands.allocate import allocate_bandwidth
from solvers.bands.in_time import BandsInTime, allocate_bands_in_time
from solvers.bands.select import Selection, select_clients

__all__ = [
    "BandsInTime",
    "Selection",
    "allocate_bands_in_time",
    "allocate_bandwidth",
    "select_clients",
]
