"""Learning curves: global rounds to an accuracy as a function of the settings."""

from wirelessfl.codesign.curves.curve import RoundsCurve
from wirelessfl.codesign.curves.fit import fit_rounds
from wirelessfl.codesign.curves.pilot import Pilot, PilotReached

__all__ = ["Pilot", "PilotReached", "RoundsCurve", "fit_rounds"]
