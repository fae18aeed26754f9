"""The interface of a fading model as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from channels import Fading
from wirelessfl.registry import Choice


@dataclass(frozen=True)
class FadingModel(Choice, ABC):
    """Base of every fading model; ``channels`` draws from what it builds."""

    @abstractmethod
    def build(self) -> Fading:
        """The distribution of the channel vectors."""
