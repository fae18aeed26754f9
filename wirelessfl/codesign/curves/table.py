"""The table of a learning curve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from wirelessfl.codesign.curves.curve import RoundsCurve


def table(curve: RoundsCurve) -> str:
    """The errors of all forms, the coefficients, and each pilot beside its prediction.

    ``left out``: rounds as predicted from the pilots with other settings; ``>`` and ``<`` mark
    bounds.
    """
    return "\n".join(_lines(curve))


def _lines(curve: RoundsCurve) -> Iterator[str]:
    observed = curve.observed
    wall = sum(run.wall_seconds for run in curve.runs)
    pairs = observed.rounds.size
    bounds = f"{curve.censored} censored, {int(observed.early.sum())} before the first evaluation"
    yield f"Rounds to a validation accuracy, from {curve.pilots} pilots ({wall:.0f} s of training)"
    yield f"pilots x targets: {pairs} ({bounds})"
    yield ""
    yield "form                  error of left-out pilots"
    for form, error in curve.errors.items():
        chosen = "  chosen" if form == curve.form else ""
        yield f"{form:20}  {np.expm1(error):>7.1%}{chosen}"
    yield ""
    for name, values in curve.coefficients.items():
        if np.any(values):
            yield f"{name:20}  " + "  ".join(f"{value:>8.4g}" for value in np.atleast_1d(values))
    yield ""
    targets = "  ".join(f"{target:>17.4g}" for target in curve.targets)
    yield f"{'validation accuracy':22}{targets}"
    yield f"{'rounds':22}" + "  ".join([f"{'measured':>8} {'left out':>8}"] * len(curve.targets))
    for i, run in enumerate(curve.runs):
        cells = []
        for t in range(len(curve.targets)):
            sign = ">" if observed.censored[i, t] else "<" if observed.early[i, t] else ""
            measured = f"{sign}{observed.rounds[i, t]:.4g}"
            cells.append(f"{measured:>8} {curve.left_out[i, t]:>8.4g}")
        yield f"{run.label:22}" + "  ".join(cells)
