"""Outage: the server knows the channels with errors, and chooses rates that they may not carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from channels import ChannelDraw, outage_probability
from channels.arrays import FloatArray
from channels.links import snr_linear
from wirelessfl.failures.failures import Failing


@dataclass(frozen=True)
class Outage(Failing):
    """An upload fails if its rate exceeds what the true channel carries.

    The channel of the simulation is what the server knows. The true one differs by a Gaussian error
    in each antenna. Clients send at the rate for an SNR that is lower by a margin.

    Args:
        csi_error: variance of the server's channel estimation error, as a fraction of the client's
            mean channel power.
        margin_db: ratio of the known SNR to that for which rates are chosen, in dB.
    """

    csi_error: Annotated[
        float,
        Field(ge=0, le=100, description="variance of channel errors over mean channel power"),
    ] = 0.01
    margin_db: Annotated[
        float,
        Field(ge=0, le=100, description="SNR margin with which clients choose their rates, in dB"),
    ] = 3.0

    @property
    def margin(self) -> float:
        """See :class:`Failures`."""
        return float(10 ** (self.margin_db / 10))

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """See :class:`Failures`."""
        network = draws.network
        variance = self.csi_error * snr_linear(network.path_gain_db)
        found = outage_probability(draws.gain, self.margin_db, variance, network.antennas)
        return np.asarray(np.broadcast_to(found, snr.shape))
