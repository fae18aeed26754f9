"""The interface of a layout as a setting."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from channels.layouts import Layout
from wirelessfl.guard import returns
from wirelessfl.needs import Needs
from wirelessfl.registry import Choice
from wirelessfl.returned import instance

COMMON_BLOCKS = Needs(
    lambda run, _: run.regime != "tasks" or run.schedule.work != "requests",
    'conflicts with schedule "{run.schedule.title}", whose uploads have no common block: choose '
    'schedule "rounds"',
)


@dataclass(frozen=True)
class LayoutModel(Choice, ABC):
    """Base class of all layouts; those with positions derive from ``Placed``."""

    positions: ClassVar[bool]
    """Whether cells and clients have positions, which give the mean channel gains."""

    @abstractmethod
    def build(self) -> Layout | None:
        """Create the layout; None without positions."""


@dataclass(frozen=True)
class Placed(LayoutModel, ABC):
    """Base class of layouts with positions.

    Args:
        antenna_gain_db: gain of the antenna elements of both ends together, in dB.
        reuse_factor: number of bands among which neighbouring cells are divided; cells of one band
            interfere. None: no interference.
    """

    positions: ClassVar[bool] = True

    antenna_gain_db: Annotated[
        float, Field(ge=-30, le=60, description="antenna gain of both ends together, dB")
    ] = 0.0
    reuse_factor: Annotated[
        int | None,
        Field(
            ge=1,
            le=1000,
            description="number of bands of neighbouring cells; cells of one band interfere "
            "(default: no interference)",
        ),
        COMMON_BLOCKS,
    ] = None

    @returns(instance(Layout))
    @abstractmethod
    def build(self) -> Layout:
        """Create the layout.

        Raises:
            ValueError: a setting is out of range.
        """
