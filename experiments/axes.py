"""Axes that figures of several papers have: differences in points, and costs on two log axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from wirelessfl.base.figures.curves import log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINEAR = 1.0
"""Differences between -1 and 1 points have a linear axis, larger ones a logarithmic one."""
DOTS: dict[str, Any] = {"color": "black", "markersize": 2.2, "markeredgewidth": 0, "zorder": 3}
"""Look of single seeds."""


def difference_scale(panel: Axes, way: Literal["x", "y"]) -> None:
    """Give an axis of differences its scale, see ``LINEAR``."""
    getattr(panel, f"set_{way}scale")("symlog", linthresh=LINEAR, linscale=0.6)


def difference_ticks(panel: Axes, way: Literal["x", "y"], ticks: Sequence[float]) -> None:
    """Give an axis of differences its ticks, and a line at zero."""
    getattr(panel, f"set_{way}ticks")(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    (panel.axvline if way == "x" else panel.axhline)(0, color="0.3", linewidth=0.8, zorder=1)


def log_axes(panel: Axes) -> None:
    """Make both axes logarithmic, with ticks at 1, 2 and 5 times powers of ten."""
    panel.set_xscale("log")
    panel.set_yscale("log")
    for axis in (panel.xaxis, panel.yaxis):
        log_ticks(axis)
