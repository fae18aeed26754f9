"""The numbers in the findings of the pages, from stored rows and numbers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from experiments.codesign import choosing, designs, tables
from experiments.codesign.crossed import lines
from experiments.codesign.curves import CURVE, LUO
from experiments.codesign.samples import (
    BEST_PILOT,
    DESIGN,
    FEDTUNE,
    JOULES,
    SECONDS,
    SWEEP,
    Sample,
    later,
    median,
    samples,
)
from experiments.codesign.searches import GUIDED
from experiments.codesign.stored import Found
from experiments.codesign.sweep import ALGORITHMS, reached
from experiments.evidence import Evidence


def numbers(record: Found, evidence: Evidence) -> dict[str, str]:
    """Each number by its name on the pages.

    Args:
        record: numbers of the study of predictions.
        evidence: stored runs.
    """
    every = samples(record)
    return {
        **_errors(every),
        **designs.numbers(designs.realised(evidence.study("designs"), designs.load())),
        **_settings(every),
        **{name: _ratios(every, name) for name in (LUO, GUIDED, FEDTUNE)},
        **_transferred(record),
        "rounds of the curve": f"{100 * median(_fit(record)):.2g}",
        "rounds of seeds": f"{100 * median(later(record.trained)):.2g}",
        **choosing.numbers(lines(evidence.study("crossed"))),
    }


def _errors(every: Sequence[Sample]) -> dict[str, str]:
    """Errors of predictions; the designs whose runs end before the target, and their rounds."""
    lost = [one for one in every if math.isinf(one.design().realised.seconds)]
    needed, made = [], []
    for one in lost:
        design = one.design()
        name, place = design.sweep.algorithm, design.place
        needed += reached([one.curves[name, CURVE].rounds[place]])
        made.append(one.trained[name].lengths[place] or 0)
    return {
        "designs": str(len(every)),
        "error of seconds": _percent([one.design().error(SECONDS) for one in every]),
        "error of joules": _percent([one.design().error(JOULES) for one in every]),
        "designs without cost": str(len(lost)),
        "rounds needed": f"{min(needed):.0f} to {max(needed):.0f}",
        "rounds made": f"{min(made)} to {max(made)}",
    }


def _settings(every: Sequence[Sample]) -> dict[str, str]:
    """Designs and the papers' fixed settings: who reaches the target, and what is chosen."""
    made = [one.design() for one in every]
    ends = [
        (math.isfinite(design.realised.seconds), math.isfinite(min(one.fixed().values())))
        for one, design in zip(every, made, strict=True)
    ]
    return {
        "time saved": _percent([tables.saved(one) for one in every]),
        "only designs": f"{ends.count((True, False))} of {len(every)}",
        "only fixed": str(ends.count((False, True))),
        "neither": str(ends.count((False, False))),
        "E = 1": f"{sum(design.pair[1] == 1 for design in made)} of {len(made)}",
        "H >= 20": str(sum(design.pair[0] >= 20 for design in made)),
    }


def _ratios(every: Sequence[Sample], method: str) -> str:
    """Seconds of designs relative to those of a method."""
    ratios = [tables.against(one, method) for one in every]
    ratios = [ratio for ratio in ratios if not math.isnan(ratio)]
    return f"{median(ratios):.2f} (quartiles {tables.quartiles(ratios)}, {len(ratios)} samples)"


def _transferred(record: Found) -> dict[str, str]:
    """How much longer the pair of each method takes than the best pair, with other seeds."""
    longer = {name: 100 * median(values) for name, values in tables.transferred(record).items()}
    methods = SWEEP, GUIDED, DESIGN, BEST_PILOT
    return {f"{name}, other seeds": f"{longer[name]:.0f}" for name in methods}


def _fit(record: Found) -> list[float]:
    """Errors of the curves at pairs that no pilot has."""
    return [
        error for name in ALGORITHMS for error in tables.curve_errors(record, name, at_pilots=False)
    ]


def _percent(values: Sequence[float]) -> str:
    """Their median and quartiles, in percent."""
    percent = [100 * value for value in values]
    return f"{statistics.median(percent):.2g} % (quartiles {tables.quartiles(percent)})"
