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


class Dominant(NamedTuple):
    """One draw of channels that makes much of a mean over draws, and the client that causes it.

    Args:
        cost: "seconds" or "joules".
        sample: "the design" or "the evaluation", whose draws they are.
        draw: number of the draw in the sample, from 0.
        draws: number of draws.
        client: the client for which this round waits, and of several the one with the slowest
            upload.
        share: part of the mean that the draw alone adds to that of the others.
        value: mean cost of a global round.
        without: mean over the other draws.
    """

    cost: str
    sample: str
    draw: int
    draws: int
    client: int
    share: float
    value: float
    without: float

    def __str__(self) -> str:
        unit = "s" if self.cost == "seconds" else "J per client"
        return (
            f"one fade dominates the mean {self.cost} by the draws of {self.sample}: client "
            f"{self.client} in draw {self.draw} of {self.draws} makes {100 * self.share:.0f} % of "
            f"them ({self.value:.4g} {unit} per round; without this draw {self.without:.4g})."
        )


class Prediction(NamedTuple):
    """What the run of a design should take.

    Intervals cover the rounds to the target and the channels of these rounds.

    Args:
        rounds: global rounds.
        seconds: simulated seconds, by other draws of channels than those of the design: their
            mean, or the quantile that the design minimises.
        joules: joules per client, mean over the clients, by the same statistic.
        accuracy: validation accuracy at the end.
        design_seconds, design_joules: seconds and joules by the draws of the design, which has been
            chosen for them.
        quantiles: simulated seconds of the predicted rounds that 10, 50 and 90 % of draws of their
            channels do not exceed.
        dominant: draws that make much of a mean.
    """

    rounds: Interval
    seconds: Interval
    joules: Interval
    accuracy: float
    design_seconds: float
    design_joules: float
    quantiles: tuple[float, ...]
    dominant: tuple[Dominant, ...] = ()

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
