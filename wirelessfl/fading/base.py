"""The interface of a fading model as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from channels import Fading
from wirelessfl.registry import Choice


@dataclass(frozen=True)
class FadingModel(Choice, ABC):
    """Base class of all fading models."""

    @abstractmethod
    def build(self) -> Fading:
        """Create the distribution of the channel vectors."""
