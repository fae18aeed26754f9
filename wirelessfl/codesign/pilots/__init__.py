"""Pilot runs: their settings, their training, and the curve fitted to them."""

from wirelessfl.codesign.pilots.pilot_plan import COUNT, STEPS, planned
from wirelessfl.codesign.pilots.pilot_runs import Pilots, pilot
from wirelessfl.codesign.pilots.points import PilotChoices, Point, chosen_points

__all__ = ["COUNT", "STEPS", "PilotChoices", "Pilots", "Point", "chosen_points", "pilot", "planned"]
