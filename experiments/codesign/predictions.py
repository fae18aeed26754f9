"""Predictions against runs: designs from pilots, realised by the stored runs of the grid.

``python -m experiments.codesign predictions --make`` prices the stored runs, fits the curves and
writes ``predictions.json``, from which the tables and figures follow.
"""

from __future__ import annotations

from collections.abc import Callable

from experiments.codesign.choices import samples
from experiments.codesign.curves import curves
from experiments.codesign.searches import searches
from experiments.codesign.stored import Found
from experiments.codesign.sweep import sweeps, trained
from experiments.codesign.tuned import tune
from experiments.evidence import Evidence


def measure(
    evidence: Evidence, known: Found, show: Callable[[str], None] = lambda text: None
) -> Found:
    """All numbers, from stored runs; sweeps that are known and unchanged are not priced again."""
    runs = trained(evidence)
    before = {one.place: one for one in known.sweeps}
    costs = list(sweeps(evidence, known.sweeps, show))
    same = {one.place for one in costs if before.get(one.place) == one}
    old = [one for one in known.searches if one.place in same]
    done = {one.place for one in old}
    new = searches([sweep for sweep in costs if sweep.place not in done], runs, show)
    found = Found(runs, costs, curves(evidence), [*old, *new], [])
    places = [one.design().sweep.place for one in samples(found) if one.whole]
    return found._replace(tuned=list(tune(evidence, places, known.tuned, show)))
