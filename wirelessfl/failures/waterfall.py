"""Packet errors in noise: a waterfall threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from channels import ChannelDraw, packet_error_probability
from channels.arrays import FloatArray
from wirelessfl.failures.failures import Failing


@dataclass(frozen=True)
class Waterfall(Failing):
    """An upload is one packet, which fails with probability 1 - exp(-m / SNR).

    The SNR is that in the client's part of the band (Chen et al., arXiv:1909.07972).

    Args:
        waterfall_db: threshold m, in dB; the default is that of the paper.
    """

    waterfall_db: Annotated[
        float,
        Field(ge=-100, le=100, description="waterfall threshold m of packet errors, in dB"),
    ] = 0.023

    def probability(self, snr: FloatArray, draws: ChannelDraw) -> FloatArray:
        """See :class:`Failures`."""
        return packet_error_probability(snr, self.waterfall_db)
