"""Algorithm x access x schedule in one network: seconds, MiB and joules to the target accuracy."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from experiments.axes import log_axes
from experiments.codesign.access import ACCESSES, NAMES, PRICED, access_of
from experiments.labels import data_name, seeds_of
from experiments.priced import priced
from experiments.studies import Case, Results
from wirelessfl.base.figures.curves import MARKERS, looks, style
from wirelessfl.base.figures.marks import draw_bound
from wirelessfl.results import selection as names
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import final_accuracy, markdown, reached, spread
from wirelessfl.results.panels import PARTLY, grid, legend, same_limits
from wirelessfl.runs.targets import cost_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TARGET = 0.8
ROUNDS, BUFFERED = "rounds", "buffered"
SCHEDULES = {ROUNDS: "synchronous rounds", BUFFERED: "asynchronous"}
COSTS = {"sim_seconds": "s", "uplink_mib": "MiB", "joules": "J"}
"""Fields of rows and their units; MiB and joules are those of the mean client."""


@dataclass(frozen=True)
class Line:
    """A combination with its runs.

    Args:
        schedule: ``rounds`` or ``buffered``.
        run: the algorithm, and the masks of HIST if they are optimized.
        access: name of the access.
        case: the case whose runs were trained.
        runs: a run per seed; those with a price have costs up to the target only, or of all rounds
            if they do not reach it.
        trained: the runs as they were trained, which have all accuracies.
    """

    schedule: str
    run: str
    access: str
    case: Case
    runs: list[StoredRun]
    trained: list[StoredRun]

    @property
    def priced(self) -> bool:
        """Whether its costs are prices of runs over another access."""
        return self.access != access_of(self.case.settings)

    def costs(self, field: str) -> list[float]:
        """The costs of the target of the seeds that reach it."""
        costs = [cost_to(run.rows, TARGET).of(field) for run in self.runs]
        return [until.cost for until in costs if until.reached]

    def of_seeds(self, seeds: Collection[int]) -> Line:
        """The same with the runs of some seeds."""
        runs, trained = (
            [run for run in some if run.seed in seeds] for some in (self.runs, self.trained)
        )
        return replace(self, runs=runs, trained=trained)

    @property
    def finals(self) -> dict[int, float]:
        """The final accuracy in percent, by seed."""
        return {run.seed: final_accuracy(run.rows) for run in self.trained}

    @property
    def key(self) -> tuple[str, str, str]:
        """Schedule, run and access."""
        return self.schedule, self.run, self.access


def run_name(case: Case) -> str:
    """The algorithm, and the masks of HIST if they are optimized."""
    masks = ", optimized masks" * (case["mask_sizes"] == "optimized")
    return names.NAMES[case["algorithm"]] + masks


@lru_cache(maxsize=1)
def lines(results: Results) -> list[Line]:
    """All combinations with runs, in order of schedule, algorithm and access.

    They are priced once for all tables and figures that need them.
    """
    order = list(ACCESSES)
    runs = list(dict.fromkeys(map(run_name, results.study.cases)))
    return sorted(
        _lines(results),
        key=lambda one: (one.schedule != ROUNDS, runs.index(one.run), order.index(one.access)),
    )


def _lines(results: Results) -> Iterator[Line]:
    for case in results.where():
        runs, access = results.of(case), access_of(case.settings)
        place = (case["schedule"] or ROUNDS, run_name(case))
        yield Line(*place, access, case, runs, runs)
        if case["schedule"] is None and case["mask_sizes"] is None and access in PRICED:
            for other in PRICED[access]:
                yield Line(*place, other, case, [over(run, other) for run in runs], runs)


def over(run: StoredRun, access: str) -> StoredRun:
    """The run up to the target accuracy, with the costs of another access."""
    place = cost_to(run.rows, TARGET).place
    rows = run.rows if place is None else run.rows[: place + 1]
    flags = dict(ACCESSES[access])
    return priced(replace(run, rows=rows), uplink={"name": flags.pop("uplink"), **flags})


def table(results: Results) -> str:
    """Costs of the target and final accuracy of each combination."""
    head = ["schedule", "run", "access", "seeds"]
    head += [f"{unit} to {100 * TARGET:g} %" for unit in COSTS.values()]
    head += ["final accuracy (%)"]
    rows = []
    for line in lines(results):
        seeds = [run.rows for run in line.runs]
        costs = (reached(seeds, TARGET, field, ".3g") for field in COSTS)
        finals = spread([*line.finals.values()])
        row = [SCHEDULES[line.schedule], line.run, NAMES[line.access], str(len(seeds))]
        rows.append([*row, *costs, finals])
    return markdown(head, rows)


def draw(results: Results) -> Figure:
    """Joules against seconds to the target: a panel per schedule, a marker per access."""
    drawn = lines(results)
    runs = list(dict.fromkeys(run_name(case) for case in results.study.cases))
    colours = {name: look["color"] for name, look in looks(runs).items()}
    figure, axes = grid(len(SCHEDULES), height=2.9)
    for panel, (schedule, title) in zip(axes, SCHEDULES.items(), strict=True):
        log_axes(panel)
        for name in runs:
            panel.plot([], [], color=colours[name], label=name, linewidth=style().line)
        for place, name in enumerate(ACCESSES):
            panel.plot([], [], MARKERS[place], color="0.4", label=NAMES[name])
        for line in (one for one in drawn if one.schedule == schedule):
            _point(panel, line, colours[line.run])
        panel.set_title(title)
        panel.set_xlabel(f"simulated seconds to {100 * TARGET:g} %")
        panel.margins(0.1)
    axes[0].set_ylabel(f"J per client to {100 * TARGET:g} %")
    same_limits(axes, x=True)
    seeds = seeds_of({len(line.runs) for line in drawn} or {1})
    shown = seeds if seeds == "1 seed" else f"mean of {seeds}, dots: seeds"
    legend(figure, axes, data_name(results.study.cases), shown)
    return figure


def _point(panel: Axes, line: Line, colour: str) -> None:
    """The mean over the seeds; hollow and with an arrow if some seeds do not reach the target."""
    marker, size = MARKERS[list(ACCESSES).index(line.access)], style().small / 1.8
    seconds, joules = (
        [cost_to(run.rows, TARGET).of(field) for run in line.runs]
        for field in ("sim_seconds", "joules")
    )
    if not any(one.reached for one in seconds):
        return
    at = statistics.mean(s.cost for s in seconds), statistics.mean(j.cost for j in joules)
    for s, j in zip(seconds, joules, strict=True):
        if s.reached:
            panel.plot(s.cost, j.cost, ".", color=colour, markersize=2, alpha=0.6)
    panel.plot(*at, marker, color=colour, markersize=size)
    if not all(one.reached for one in seconds):
        panel.plot(*at, marker, color="white", markersize=size / 2, gid=PARTLY)
        draw_bound(panel, *at, colour)
