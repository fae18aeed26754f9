"""What all figures of studies say: data sets, seeds, costs with bounds, and old runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.studies import Case, Results
from wirelessfl.figures import AtLeast, save_figure
from wirelessfl.results.names import DATA, MODELS
from wirelessfl.results.panels import note, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SPREAD = "mean and range"
"""What curves, bars and points show of several seeds."""
LINES = 2
"""Most lines of a note; a longer one gives the number of cases instead of their names."""


def data_name(cases: Iterable[Case]) -> str:
    """The data sets of these cases and their models, as in ``Fashion-MNIST, LeNet-5``."""
    pairs = dict.fromkeys((case["dataset"], case["model"]) for case in cases)
    sets = " and ".join(dict.fromkeys(DATA.get(data, data) for data, _ in pairs))
    models = " and ".join(dict.fromkeys(MODELS.get(model, str(model)) for _, model in pairs))
    return f"{sets}, {models}"


def seeds_text(results: Results, cases: Iterable[Case], spread: str = SPREAD) -> str:
    """What is shown of the finished seeds, as in ``mean and range of 1 to 3 seeds``."""
    counts = {len(results.of(case)) for case in cases} - {0}
    if counts <= {1}:
        return "1 seed"
    least, most = min(counts), max(counts)
    return f"{spread} of {most} seeds" if least == most else f"{spread} of {least} to {most} seeds"


def costs_of(
    results: Results, case: Case, quantity: str, target: float, tests: int = 1
) -> list[float | None]:
    """For each finished seed, ``quantity`` when ``target`` is first reached, to be drawn.

    A run that does not reach it has the cost of the whole run, as a bound; see ``Results.costs``.
    """
    ends = [rows[-1][quantity] for rows in results.rows(case)]
    costs = results.costs(case, quantity, target, tests)
    return [AtLeast(end) if cost is None else cost for cost, end in zip(costs, ends, strict=True)]


def save(figure: Figure, results: Results, path: Path) -> list[Path]:
    """Save a figure, with a note on runs of an older version of the results."""
    cases = results.study.cases
    old = [case for case in cases if not all(run.current for run in results.of(case))]
    if old:
        text = "made by an older version"
        said = wrapped(figure, f"{text}: {_names(old, cases)}")
        if said.count("\n") >= LINES:
            said = f"{text}: {_count(old, cases)}"
        note(figure, said)
    return save_figure(figure, path)


def _names(named: Sequence[Case], cases: Sequence[Case]) -> str:
    """The labels of cases, if all cases with these labels are meant, or else their number."""
    labels = {case.label for case in named}
    if {case.label for case in cases if case not in named} & labels:
        return _count(named, cases)
    return "; ".join(sorted(labels))


def _count(named: Sequence[Case], cases: Sequence[Case]) -> str:
    return f"{len(named)} of {len(cases)} cases of the study"
