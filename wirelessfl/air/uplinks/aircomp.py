"""Over-the-air computation: a cell's clients transmit together; the server gets their mean (V)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from channels import Access, ChannelDraw, Simultaneous
from channels.arrays import BoolArray
from channels.links import SUBCARRIER_HZ, SYMBOL_SECONDS
from channels.precoders import check_convention
from channels.votes import RESOURCES
from solvers import OverTheAir
from solvers.access.over_the_air import AirConvention, inversion
from solvers.beamforming import Anneal, BeamformerBackend, MirrorProx, Sca, Sdr
from wirelessfl.air.uplinks.air_sums import AirReception, Precoding
from wirelessfl.air.uplinks.uplink import Reception, Transmission, Uplink
from wirelessfl.air.uplinks.votes import CoherentVotes, EnergyVotes, Vote
from wirelessfl.base.errors import ConfigError
from wirelessfl.base.needs import COHORTS, Fits, Needs, beside
from wirelessfl.base.rows import BITS_PER_ELEMENT

Beamformer = Literal["anneal", "mirror_prox", "sca", "sdr", "random"]
"""Beamforming methods. Branch and bound is excluded: its result depends on the machine's load."""

_BACKENDS: dict[str, Callable[[int | None], BeamformerBackend]] = {
    backend.name: backend for backend in (Anneal, MirrorProx, Sca, Sdr)
}

INVERTING = ("physical", "published", "one-bit")
"""Conventions in which clients invert their channels."""
PHASED = beside("convention", *INVERTING, "mmse", because=", which needs no channel estimates")
"""Conventions in which phases matter."""


def _lost_by_signs(run: Any) -> list[str]:
    """Payloads of which a sign says too little: models, and terms that are summed over rounds."""
    first, *others = run.settings.rule.payloads
    lost = others if first.change else [first, *others]
    return [payload.name for payload in lost if not payload.each]  # no sum gives each


SIGNS = Fits(
    lambda run, choice: choice.convention not in get_args(Vote) or not _lost_by_signs(run),
    lambda run, _: (
        f'conflicts with algorithm "{run.title}", whose {" and ".join(_lost_by_signs(run))} cannot '
        'be sent as signs, unlike a change of the model: choose convention "physical"'
    ),
)
"""Payloads that can be sent as signs."""


@dataclass(frozen=True)
class AirComp(Uplink):
    """Over-the-air computation: clients transmit at once, and the server receives a noisy sum.

    Each client sends one element of its update per symbol, precoded so that the signals add up to
    the weighted mean at the edge server, (22) to (25). Updates are sent in the unit that the
    algorithm defines: FedAvg and HIST send the negative accumulated gradient, (x_H - x_0) / gamma,
    so the noise enters the model multiplied by gamma, (27).

    ``published`` and ``physical`` invert the channels, so the weakest client limits the power of
    all. With ``threshold``, clients in a fade stay silent instead: truncated channel inversion (Zhu
    et al., IEEE TWC 2020, arXiv:1812.11494, who truncate the gain of one antenna).
    With ``mmse``, they send at full power and arrive with less than their weight.

    In ``one-bit`` and ``majority`` clients send the signs of their elements, and the server decides
    a vote: by the sign of the sum over inverted channels, or by energy on one of two symbols per
    element, without any channel knowledge. The votes are multiplied by a scale that clients send
    error-free (:class:`wirelessfl.air.uplinks.votes.VoteReception`).

    Raises:
        ValueError: the convention is unknown, or does not allow ``elements_per_symbol`` or
            ``threshold``, or the beamformer's solver is not installed.
    """

    name = "aircomp"
    gives = "sum"
    coherence = "edge-round"

    convention: Annotated[
        AirConvention,
        Field(
            description=(
                "power, noise and precoders, or votes by signs (one-bit, majority); see "
                "docs/reference/over-the-air.md"
            )
        ),
        SIGNS,
    ] = "published"
    beamformer: Annotated[
        Beamformer,
        Field(
            description=(
                "receive beamforming method of solvers.optimize_beamformer; random "
                "draws a direction; no effect with convention mmse"
            )
        ),
        beside("convention", *INVERTING, because=", which does not use them"),
    ] = "anneal"
    beamformer_starts: Annotated[
        int | None,
        Field(ge=1, description="random starts of the beamformer (default: the method's default)"),
        PHASED,
        Needs(
            lambda run, choice: choice.convention == "mmse" or choice.beamformer != "random",
            'conflicts with beamformer="random": choose beamformer "anneal"',
        ),
    ] = None
    threshold: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "clients are silent in a block with less channel power than this "
                "fraction of its mean; 0 lets all send"
            ),
        ),
        COHORTS,
        beside("convention", *INVERTING, because=", in which clients in a fade send at full power"),
    ] = 0.0
    correlation: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            description=(
                "correlation of two clients' updates that mmse assumes; at 0 the "
                "sum shrinks where noise is strong"
            ),
        ),
        beside("convention", "mmse"),
    ] = 0.0
    unbiased_sum: Annotated[
        bool,
        Field(
            description=(
                "mmse receives what all updates have in common without bias: good "
                "channels make up for the others"
            )
        ),
        beside("convention", "mmse"),
    ] = False
    elements_per_symbol: Annotated[
        int,
        Field(
            ge=1,
            le=2,
            description="elements per symbol; 2 needs convention physical, mmse or one-bit",
        ),
        beside("convention", "physical", "mmse", "one-bit"),
    ] = 1
    csi_error: Annotated[
        float | None,
        Field(
            ge=0,
            description=(
                "variance of the server's channel estimation error over the "
                "client's mean channel power (default: that of pilot_symbols, 0 without)"
            ),
        ),
        PHASED,
    ] = 0.0
    phase_error_deg: Annotated[
        float,
        Field(
            ge=0,
            le=360,
            description=(
                "standard deviation of the residual phase of a client's signal, in degrees"
            ),
        ),
        PHASED,
    ] = 0.0
    time_offset: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description=(
                "largest delay of a client's signal, in symbols: neighbouring elements mix; delays "
                "are uniform from 0 (default: none)"
            ),
        ),
        beside(
            "convention",
            *INVERTING,
            "mmse",
            because=", whose energies are computed without delays",
        ),
    ] = None
    subcarrier_hz: Annotated[
        float, Field(gt=0, description="subcarrier spacing Delta_f of (34), in Hz")
    ] = SUBCARRIER_HZ
    symbol_seconds: Annotated[
        float, Field(gt=0, description="symbol duration t_s of (34), in seconds")
    ] = SYMBOL_SECONDS

    def __post_init__(self) -> None:
        if self.convention not in get_args(AirConvention):
            names = ", ".join(repr(name) for name in get_args(AirConvention))
            raise ValueError(f"convention is {self.convention!r}: choose from {names}.")
        if self.convention in INVERTING:
            check_convention(inversion(self.convention), self.elements_per_symbol)
        elif self.threshold:
            raise ValueError(
                f"threshold={self.threshold:g} conflicts with convention={self.convention!r}, in "
                "which clients in a fade send at full power: choose convention='physical'."
            )
        if self.beamformer in ("sca", "sdr") and find_spec("cvxpy") is None:
            raise ValueError(
                f"beamformer is {self.beamformer!r}: it needs cvxpy. Run pip install cvxpy, or "
                "choose beamformer 'anneal'."
            )

    @property
    def side_elements(self) -> int:
        """1 unless ``published``: each client's scale is sent error-free with its update."""
        return int(self.convention != "published")

    @property
    def element_bits(self) -> int:
        """1 for signs; an analog element counts as 32 bits."""
        return 1 if self.convention in get_args(Vote) else BITS_PER_ELEMENT

    def silent(self, draws: ChannelDraw) -> BoolArray | None:
        """Clients that stay silent [..., clients]: their channel power is below the threshold."""
        if not self.threshold:
            return None
        mean = draws.network.antennas * draws.path_gain
        return np.asarray(draws.gain < self.threshold * mean)

    @property
    def backend(self) -> BeamformerBackend | None:
        """The beamforming method; None for random directions."""
        if self.beamformer == "random":
            return None
        return _BACKENDS[self.beamformer](self.beamformer_starts)

    @property
    def access(self) -> Access:
        """``solvers.OverTheAir``."""
        majority = self.convention == "majority"
        times = Simultaneous(
            elements_per_symbol=1 / RESOURCES if majority else self.elements_per_symbol,
            subcarrier_hz=self.subcarrier_hz,
            symbol_seconds=self.symbol_seconds,
        )
        starts = self.beamformer_starts if self.convention == "mmse" else None
        return OverTheAir(
            times, self.convention, self.backend, starts, self.correlation, self.unbiased_sum
        )

    @property
    def precoding(self) -> Precoding:
        """How the signals are precoded and received."""
        return Precoding(
            convention="mmse" if self.convention == "mmse" else inversion(self.convention),
            elements_per_symbol=self.elements_per_symbol,
            csi_error=self.csi_error,
            phase_error=float(np.deg2rad(self.phase_error_deg)),
            time_offset=self.time_offset or 0.0,
            beamformer=self.beamformer,
            backend=self.backend,
            starts=self.beamformer_starts,
            correlation=self.correlation,
            unbiased_sum=self.unbiased_sum,
        )

    def receive(self, air: Transmission) -> Reception:
        """Start an upload over the air.

        Raises:
            ConfigError: the clients do not upload at the same time.
        """
        if air.draw is None:
            raise ConfigError(
                "uplink='aircomp' needs simultaneous uploads, and here each client uploads at a "
                'different time: choose uplink "tdma", "ofdma" or "fixed".'
            )
        if self.convention == "majority":
            return EnergyVotes(air, air.draw)
        precoding = replace(self.precoding, pilot_symbols=air.pilot_symbols)
        if self.convention == "one-bit":
            return CoherentVotes(precoding, air, air.draw)
        return AirReception(precoding, air, air.draw)
