"""Interfaces of the backends and certificates for receive beamforming."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from solvers.backend import Backend
from solvers.settings import check_seed, check_starts

if TYPE_CHECKING:
    from torch import Tensor

    from solvers.beamforming.beamforming_problem import BeamformingProblems


PROVEN_GAP = 1e-4
"""Maximum relative gap in |a^H h|^2 of an optimal solution; 1e-6 would need too many nodes."""


class FoundBeamformers(NamedTuple):
    """Result of a backend or a certificate.

    >>> import torch
    >>> from solvers.beamforming import FoundBeamformers
    >>> first = FoundBeamformers(torch.ones(1, 2, dtype=torch.complex128), torch.tensor([2.0]))
    >>> first.then(FoundBeamformers(first.value, torch.tensor([1.5]))).bound.tolist()
    [1.5]

    Args:
        value: beamformers [problems, dimensions] complex128, nonzero, on the device of ``h``.
        bound: proven upper bounds [problems] on min_i |a^H h_i|^2; None if nothing is proven.
        message: further information.
    """

    value: Tensor
    bound: Tensor | None = None
    message: str = ""

    def then(self, later: FoundBeamformers) -> FoundBeamformers:
        """Combine this result with ``later``: its value, the smaller bounds, both messages."""
        bound = self.bound
        if later.bound is not None:
            bound = later.bound if bound is None else bound.minimum(later.bound)
        message = "; ".join(text for text in (self.message, later.message) if text)
        return FoundBeamformers(later.value, bound, message)


class BeamformerBackend(Backend["BeamformingProblems", FoundBeamformers]):
    """A method for ``optimize_beamformer``.

    It receives a batch of scaled problems: complex128 channels ``problem.h`` [problems, clients,
    dimensions], with at least one problem and at least two dimensions.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import solvers
    >>> from solvers.beamforming import BeamformerBackend, FoundBeamformers
    >>> @dataclass(frozen=True)
    ... class Towards(BeamformerBackend):
    ...     # The sum of all channels
    ...     name = "towards"
    ...     def solve(self, problem):
    ...         return FoundBeamformers(problem.h.sum(1))
    >>> h = np.array([[1.0, 0.0], [0.0, 1.0]]) + 0j
    >>> abs(solvers.optimize_beamformer(h, backend=Towards()).value).round(3).tolist()
    [0.707, 0.707]
    """


@dataclass(frozen=True)
class FromRandomStarts(BeamformerBackend):
    """Base class of methods with random starts.

    Args:
        starts: number of random starts, the same for every problem; None for the method's default.
        seed: seed of the starts.
    """

    starts: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_starts("starts", self.starts)
        check_seed(self.seed)


class Certificate(ABC):
    """A method that proves bounds for given beamformers; derive a frozen dataclass.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import solvers
    >>> from solvers.beamforming import Certificate, FoundBeamformers
    >>> @dataclass(frozen=True)
    ... class Weakest(Certificate):
    ...     # No beamformer of norm 1 receives more of a client than its whole channel
    ...     name = "weakest"
    ...     def certify(self, problem, found):
    ...         return FoundBeamformers(found.value, problem.h.abs().square().sum(-1).amin(-1))
    >>> h = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]) + 0j
    >>> round(float(solvers.optimize_beamformer(h, certificate=Weakest()).bound), 6)
    1.0

    Attributes:
        name: name of the method; the certificate is skipped if the backend has the same name.
    """

    name: ClassVar[str]

    @abstractmethod
    def certify(self, problem: BeamformingProblems, start: FoundBeamformers) -> FoundBeamformers:
        """Compute bounds; return them with the beamformers of ``start`` or better ones."""
