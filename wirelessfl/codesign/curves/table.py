"""The table of a learning curve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wirelessfl.codesign.curves.shown import ShownCurve


def table(curve: ShownCurve) -> str:
    """The errors of all forms, the coefficients, and each pilot beside its prediction.

    ``left out``: rounds as predicted from the pilots with other settings; ``>`` and ``<`` mark
    bounds.
    """
    return "\n".join(_lines(curve))


def _lines(curve: ShownCurve) -> Iterator[str]:
    observed = curve.observed
    wall = sum(run.wall_seconds for run in curve.runs)
    censored, early = int(observed.censored.sum()), int(observed.early.sum())
    yield f"Rounds to a validation accuracy, from {len(curve.runs)} pilots"
    yield f"training of the pilots: {wall:.0f} wall-clock seconds"
    yield f"pilots x targets: {observed.rounds.size}"
    yield f"  end before the target: {censored}"
    yield f"  reach it before the first evaluation: {early}"
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
    targets = observed.targets
    yield f"{'validation accuracy':22}" + "  ".join(f"{target:>17.4g}" for target in targets)
    yield f"{'rounds':22}" + "  ".join([f"{'measured':>8} {'left out':>8}"] * len(targets))
    for i, run in enumerate(curve.runs):
        cells = []
        for t in range(len(targets)):
            sign = ">" if observed.censored[i, t] else "<" if observed.early[i, t] else ""
            measured = f"{sign}{observed.rounds[i, t]:.4g}"
            cells.append(f"{measured:>8} {curve.left_out[i, t]:>8.4g}")
        yield f"{run.label:22}" + "  ".join(cells)
