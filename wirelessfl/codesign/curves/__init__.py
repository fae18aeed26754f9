"""Learning curves: global rounds to an accuracy as a function of the settings."""

from wirelessfl.codesign.curves.curve import RoundsCurve
from wirelessfl.codesign.curves.fit import fit_rounds
from wirelessfl.codesign.curves.pilot import Pilot, Reached

__all__ = ["Pilot", "Reached", "RoundsCurve", "fit_rounds"]
