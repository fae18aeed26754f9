"""Settings of the clients' CPUs: the seconds and joules of local steps."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from wirelessfl.config.sections.section import Section
from wirelessfl.needs import BUILT, CELLS, LINKS, Needs, Suits, without


def _unless_beta(need: Needs) -> Needs:
    """The need of ``step_seconds``, which is beta of a latency model that replaces links."""
    return Needs(lambda run, own: not run.radio or need.met(run, own), need.reason)


STEP = tuple(map(_unless_beta, BUILT))
SPEEDS = Suits(
    lambda _, own: own.cpu_hz is None or 0 < own.cpu_hz[0] <= own.cpu_hz[1],
    "cpu_hz is {own.cpu_hz}: give 0 < LOW <= HIGH, in Hz",
)


class DevicesSection(Section):
    """CPU speeds, cycles and energy; defaults from Section VI-C of the HIST paper."""

    cpu_hz: Annotated[tuple[float, float] | None, BUILT, LINKS, without("step_seconds"), SPEEDS] = (
        Field(None, description="CPU speeds, Hz (default: 1-2 GHz in slow, 2-4 in fast cells)")
    )
    slowdown: Annotated[float, BUILT, CELLS, LINKS] = Field(
        1.0,
        ge=1,
        description="slowdown of CPUs and bandwidth in half the cells",
    )
    cycles_per_step: Annotated[
        float, BUILT, LINKS, without("step_seconds"), without("cycles_per_flop")
    ] = Field(1e6, gt=0, description="CPU cycles per step of the full model")
    cycles_per_flop: Annotated[float | None, BUILT, LINKS, without("step_seconds")] = Field(
        None,
        gt=0,
        le=1e30,
        description="CPU cycles per counted FLOP of a full-model step (default: not counted)",
    )
    step_seconds: Annotated[float | None, STEP] = Field(
        None,
        gt=0,
        le=1e15,
        description="seconds per full-model step (default: CPU cycles / CPU speed)",
    )
    switched_capacitance: Annotated[float, BUILT, LINKS] = Field(
        1e-28, ge=0, le=1, description="kappa: a CPU cycle at f Hz uses kappa f^2 joules"
    )
