"""Receive beamforming: the beamformer that maximises the weakest client's gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from solvers.backend import load
from solvers.beamforming.beamformer_backend import BeamformerBackend, Certificate, FoundBeamformers
from solvers.beamforming.optimize import BEAMFORMER_BACKENDS, optimize_beamformer

if TYPE_CHECKING:
    from solvers.beamforming.anneal import Anneal
    from solvers.beamforming.beamforming_problem import BeamformingProblems
    from solvers.beamforming.branch_and_bound import BranchAndBound
    from solvers.beamforming.default import Default
    from solvers.beamforming.mirror_prox import MirrorProx
    from solvers.beamforming.relaxation import RelaxationBound
    from solvers.beamforming.sca import Sca
    from solvers.beamforming.sdr import Sdr

_MODULES = {
    "Anneal": "solvers.beamforming.anneal",
    "BranchAndBound": "solvers.beamforming.branch_and_bound",
    "Default": "solvers.beamforming.default",
    "MirrorProx": "solvers.beamforming.mirror_prox",
    "BeamformingProblems": "solvers.beamforming.beamforming_problem",
    "RelaxationBound": "solvers.beamforming.relaxation",
    "Sca": "solvers.beamforming.sca",
    "Sdr": "solvers.beamforming.sdr",
}
__all__ = [
    "BEAMFORMER_BACKENDS",
    "Anneal",
    "BeamformerBackend",
    "BeamformingProblems",
    "BranchAndBound",
    "Certificate",
    "Default",
    "FoundBeamformers",
    "MirrorProx",
    "RelaxationBound",
    "Sca",
    "Sdr",
    "optimize_beamformer",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Load a class on first use, because importing torch takes a second."""
    if name not in _MODULES:
        raise AttributeError(f"module 'solvers.beamforming' has no attribute {name!r}")
    return load(f"{_MODULES[name]}:{name}")
