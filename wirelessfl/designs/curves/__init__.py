"""Learning curves: global rounds to an accuracy as a function of the settings."""

from wirelessfl.designs.curves.curve import RoundsCurve
from wirelessfl.designs.curves.fit import fit_rounds
from wirelessfl.designs.curves.pilot import Pilot, PilotReached

__all__ = ["Pilot", "PilotReached", "RoundsCurve", "fit_rounds"]
