"""The interface of a model of uploads that fail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from channels import ChannelDraw
from channels.arrays import FloatArray
from wirelessfl.guard import UnfitError, returns
from wirelessfl.registry import Choice
from wirelessfl.returned import number, reals


def _probabilities(value: Any, failures: Failures, snr: FloatArray, *_: Any) -> FloatArray:
    """Check for a probability per client and block."""
    wanted = f"of shape {list(snr.shape)}, probabilities of at most 1"
    found: FloatArray = reals(value, (snr.shape,), wanted)
    if (found > 1).any():
        raise UnfitError(f"{found.max():g} as a probability", "probabilities from 0 to 1")
    return found


@dataclass(frozen=True)
class Failures(Choice, ABC):
    """Base class of all models of uploads that fail."""

    never: ClassVar[bool] = False
    """Whether all uploads arrive."""

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
            snr: [..., clients], received SNR of each client at its power in its part of the band.
            draws: channels of the clients, as the server knows them.

        Returns:
            [..., clients].
        """


@dataclass(frozen=True)
class Failing(Failures):
    """Base class of models in which uploads can fail.

    Args:
        on_failure: with "lost", a failed update is missing in the node's mean. With "repeat", a
            client sends again, on the same channel, until its update arrives.
    """

    on_failure: Annotated[
        Literal["lost", "repeat"],
        Field(description="whether a failed update is lost, or repeated until it arrives"),
    ] = "lost"

    @property
    def repeats(self) -> bool:
        """See :class:`Failures`."""
        return self.on_failure == "repeat"
