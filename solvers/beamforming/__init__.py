"""Receive beamforming: the direction in which an edge server hears all clients at once."""

from solvers.beamforming.optimize import BEAMFORMER_BACKENDS, optimize_beamformer

__all__ = ["BEAMFORMER_BACKENDS", "optimize_beamformer"]
