"""Failures of uploads: interface and built-in models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from channels import ChannelDraw, outage_probability, packet_error_probability
from channels.arrays import FloatArray
from wirelessfl.base.guard import UnfitError, number, reals, returns
from wirelessfl.base.needs import CHANNEL, Needs
from wirelessfl.base.registry import Choice, Kind


def _probabilities(value: Any, failures: Failures, snr: FloatArray, *_: Any) -> FloatArray:
    """Check for a probability per client and block."""
    required = f"of shape {list(snr.shape)}, probabilities of at most 1"
    probabilities: FloatArray = reals(value, (snr.shape,), required)
    if (probabilities > 1).any():
        raise UnfitError(f"{probabilities.max():g} as a probability", "probabilities from 0 to 1")
    return probabilities


@dataclass(frozen=True)
class Failures(Choice, ABC):
    """Base class of all models of uploads that fail."""

    name = "failures"

    never: ClassVar[bool] = False
    """Whether all uploads arrive."""
    flat: ClassVar[bool] = False
    """Whether it needs channels that are flat over the band."""

    @property
    def repeats(self) -> bool:
        """Whether a client sends again until its update arrives."""
        return False

    @property
    @returns(number(above=True))
    def margin(self) -> float:
        """Ratio of the received SNR to that for which rates are chosen; 1 for no margin."""
        return 1.0

    @returns(_probabilities)
    @abstractmethod
    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """Probability that an upload fails.

        Args:
            snr: [..., clients], received SNR of each client at its power in its part of the band;
                with subcarriers, that of a flat channel of the same capacity.
            draws: channels of the clients, as the server knows them.

        Returns:
            [..., clients].
        """


@dataclass(frozen=True)
class Failing(Failures):
    """Base class of models in which uploads can fail."""

    name = "failures"

    on_failure: Annotated[
        Literal["lost", "repeat"],
        Field(
            description=(
                "whether a failed update is missing in the mean (lost), or sent "
                "again on the same channel until it arrives (repeat)"
            )
        ),
    ] = "lost"

    @property
    def repeats(self) -> bool:
        """See :class:`Failures`."""
        return self.on_failure == "repeat"


PACKETS = (
    Needs(
        lambda run, _: not run.regime.of_tasks,
        'conflicts with schedule "{run.schedule.title}": set drop_out, or choose schedule "rounds"',
    ),
    Needs(
        lambda run, _: run.uplink.gives != "sum",
        'conflicts with uplink "{run.uplink.title}", which sends no packets: choose uplink "tdma"',
    ),
    CHANNEL,
)
FAILURES: Kind[Failures] = Kind(
    "failures",
    __name__,
    Failures,
    default="none",
    needs=PACKETS,
    text="uploads that fail",
    heading="uplink",
)
"""All models of uploads that fail."""


@dataclass(frozen=True)
class NoFailures(Failures):
    """All uploads arrive."""

    name = "none"

    never: ClassVar[bool] = True

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """0."""
        return np.zeros(snr.shape)


@dataclass(frozen=True)
class Outage(Failing):
    """An upload fails if its rate exceeds what the true channel carries.

    The channel of the simulation is what the server knows. The true one differs by a Gaussian error
    in each antenna. Clients send at the rate for an SNR that is lower by a margin.
    """

    name = "outage"
    flat = True

    csi_error: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description=(
                "variance of the server's channel estimation error over the "
                "client's mean channel power"
            ),
        ),
    ] = 0.01
    margin_db: Annotated[
        float,
        Field(
            ge=0,
            le=100,
            description=(
                "ratio of the known SNR to that for which clients choose their rates, in dB"
            ),
        ),
    ] = 3.0

    @property
    def margin(self) -> float:
        """See :class:`Failures`."""
        return float(10 ** (self.margin_db / 10))

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """See :class:`Failures`."""
        variance, antennas = self.csi_error * draws.path_gain, draws.network.antennas
        probabilities = outage_probability(draws.gain, self.margin_db, variance, antennas)
        return np.asarray(np.broadcast_to(probabilities, snr.shape))


@dataclass(frozen=True)
class Waterfall(Failing):
    """An upload is one packet, which fails with probability 1 - exp(-m / SNR).

    The SNR is that in the client's part of the band (Chen et al., arXiv:1909.07972).
    """

    name = "waterfall"

    waterfall_db: Annotated[
        float,
        Field(ge=-100, le=100, description="waterfall threshold m of packet errors, in dB"),
    ] = 0.023

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """See :class:`Failures`."""
        return packet_error_probability(snr, self.waterfall_db)


__all__ = ["FAILURES", "Failing", "Failures"]
