"""Pilot runs: their settings, their training, and the curve fitted to them."""

from wirelessfl.designs.pilots.pilot_plan import COUNT, STEPS, planned
from wirelessfl.designs.pilots.pilot_runs import Pilots, pilot
from wirelessfl.designs.pilots.points import PilotChoices, Point, chosen_points

__all__ = ["COUNT", "STEPS", "PilotChoices", "Pilots", "Point", "chosen_points", "pilot", "planned"]
