"""Predictions against runs: designs from pilots, realised by the stored runs of the grid.

``python -m experiments.codesign predictions --make`` prices the stored runs, fits the curves and
writes ``predictions.json``, from which the tables and figures follow.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.codesign.curves import curves
from experiments.codesign.samples import samples
from experiments.codesign.searches import searches
from experiments.codesign.stored import Found
from experiments.codesign.sweep import sweeps, trained
from experiments.codesign.tuned import Tuned, tune
from experiments.evidence import Evidence


def measure(
    evidence: Evidence,
    earlier: Found,
    show: Callable[[str], None] = lambda text: None,
    keep: Callable[[Found], None] = lambda record: None,
) -> Found:
    """All numbers, from stored runs; sweeps that are known and unchanged are not priced again.

    Args:
        evidence: the stored runs.
        earlier: what has been computed before.
        show: is given a line per step.
        keep: is given all numbers after each part that takes long.
    """
    runs = trained(evidence)
    before = {one.place: one for one in earlier.sweeps}
    costs = list(sweeps(evidence, earlier.sweeps, show))
    same = {one.place for one in costs if before.get(one.place) == one}
    old = [one for one in earlier.searches if one.place in same]
    record = Found(runs, costs, curves(evidence), old, earlier.tuned)
    keep(record)
    done = {one.place for one in old}
    new = searches([sweep for sweep in costs if sweep.place not in done], runs, show)
    record = record._replace(searches=[*old, *new])
    keep(record)
    places = [one.design().sweep.place for one in samples(record)]
    tuned: list[Tuned] = []
    for one in tune(evidence, places, earlier.tuned, show):
        tuned.append(one)
        rest = [other for other in earlier.tuned if other.place not in {t.place for t in tuned}]
        keep(record._replace(tuned=[*tuned, *rest]))
    return record._replace(tuned=tuned)
