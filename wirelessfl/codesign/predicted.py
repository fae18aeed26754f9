"""What the run of a design should take, and what tables and figures show of a design."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from wirelessfl.codesign.design_choices import DesignChoice
from wirelessfl.codesign.goals import Goal
from wirelessfl.codesign.reports import Reports
from wirelessfl.config import Config


class Interval(NamedTuple):
    """A predicted number, with an interval of 90 %.

    Args:
        value: the prediction.
        low, high: ends of the interval; ``value`` if there is none.
    """

    value: float
    low: float
    high: float


class Prediction(NamedTuple):
    """What the run of a design should take.

    Args:
        rounds: global rounds.
        seconds: simulated seconds, by other draws of channels than those of the design.
        joules: mean over the clients, by the same draws.
        accuracy: validation accuracy at the end.
        design_seconds, design_joules: seconds and joules by the draws of the design, which has been
            chosen for them.
    """

    rounds: Interval
    seconds: Interval
    joules: Interval
    accuracy: float
    design_seconds: float
    design_joules: float

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """Rounds, seconds, joules per client and accuracy."""
        return self.rounds.value, self.seconds.value, self.joules.value, self.accuracy


class Designed(Protocol):
    """A design, see ``wirelessfl.Design``."""

    @property
    def config(self) -> Config:
        """The configuration of its run."""

    @property
    def goal(self) -> Goal:
        """What it is for."""

    @property
    def choice(self) -> DesignChoice:
        """What has been chosen."""

    @property
    def predicted(self) -> Prediction:
        """What its run should take."""

    @property
    def trainings(self) -> int:
        """Number of pilots."""

    @property
    def wall_seconds(self) -> float:
        """Wall-clock seconds of the pilots."""

    @property
    def reports(self) -> Reports:
        """The other designs."""
