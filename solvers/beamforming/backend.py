"""What backends of receive beamforming are given, and what they return."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from solvers.backend import Backend
from solvers.settings import check_seed, check_starts

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.beamforming.problem import Problems


PROVEN_GAP = 1e-4
"""Largest relative gap in |a^H h|^2 of an optimum; 1e-6 would take far too many nodes."""


class Found(NamedTuple):
    """What a backend or a certificate found.

    Args:
        value: beamformers [problems, dimensions] complex128, on the device of ``h``; of any
            norm but 0.
        bound: proven upper bounds [problems] on min_i |a^H h_i|^2; None where it proves none.
        message: what else there is to say.
    """

    value: Tensor
    bound: Tensor | None = None
    message: str = ""

    def then(self, later: Found) -> Found:
        """What is known when ``later`` has looked at this: its value, the lower bounds, both
        messages."""
        bound = self.bound
        if later.bound is not None:
            bound = later.bound if bound is None else bound.minimum(later.bound)
        message = "; ".join(text for text in (self.message, later.message) if text)
        return Found(later.value, bound, message)


class BeamformerBackend(Backend["Problems", Found]):
    """A method for ``optimize_beamformer``. It gets a batch of scaled problems: complex128 channels
    ``problem.h`` [problems, clients, dimensions], with two dimensions and one problem at least."""


@dataclass(frozen=True)
class FromRandomStarts(BeamformerBackend):
    """A method that begins at random directions; a part of others.

    Args:
        starts: random starts, the same for every problem; None for the method's own number.
        seed: of the starts.

    Raises:
        ValueError: a setting is out of range.
    """

    starts: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_starts("starts", self.starts)
        check_seed(self.seed)


class Certificate(ABC):
    """A proof of how good beamformers are; derive a frozen dataclass as for a backend.

    Attributes:
        name: of the method. A backend of the same name needs no such certificate.
    """

    name: ClassVar[str]

    @abstractmethod
    def certify(self, problem: Problems, found: Found) -> Found:
        """Bounds, and beamformers: those of ``found``, or better ones."""
