"""HIST's Figures 6 and 7 with optimal OMA: seconds to 80 % of stored runs, over other uplinks.

``python -m experiments.decided oma --make`` prices the stored runs of HIST and HFedAvg and writes
``oma.json``, from which table and figure follow.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments import records
from experiments.decided.uplinks import AIR, BEST, OMA, shown
from experiments.evidence import Evidence
from experiments.hist.__main__ import PAPER as HIST
from experiments.labels import seeds_of
from experiments.priced import priced
from experiments.studies import Case, Results
from wirelessfl.base.figures.marks import mean_or_bound
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import MISSING, markdown
from wirelessfl.results.panels import draw_points, grid, legend, room
from wirelessfl.results.selection import NAMES
from wirelessfl.runs.targets import cost_to

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILE = Path(__file__).with_name("oma.json")
"""Seconds of the runs of scale ``small``, in the repository."""
TARGET = 0.8
SNRS = (-20.0, -10.0, 0.0, 10.0, 20.0)
STUDIES = ("fig6", "fig7b", "fig7c")


class Point(NamedTuple):
    """The seconds of a run to 80 %.

    Args:
        study: study of HIST.
        algorithm: name of the algorithm.
        cells: number of cells.
        clients: number of clients.
        snr_db: SNR of all clients; None for that of Section VI-C.
        seed: seed of the run.
        uplink: name of the uplink in tables.
        rounds: global rounds to 80 %; None if the run does not reach it.
        seconds: simulated seconds to 80 %; None if the run does not reach it.
    """

    study: str
    algorithm: str
    cells: int
    clients: int
    snr_db: float | None
    seed: int
    uplink: str
    rounds: int | None
    seconds: float | None

    @property
    def place(self) -> tuple[Any, ...]:
        """All but the result."""
        return tuple(self[:-2])


def load(file: Path = FILE) -> list[Point]:
    """The points of a file; none if there is no file."""
    return records.load(Point, file)


def wanted(evidence: Evidence) -> Iterator[tuple[Point, Case, StoredRun]]:
    """Each place with its stored run; seconds of runs over OMA are not known yet."""
    for name in STUDIES:
        results = evidence.study(name)
        for case in results.where():
            if case["mask_sizes"] == "optimized":  # these submodels depend on the uplink
                continue
            for run in results.of(case):
                until = cost_to(run.rows, TARGET)
                rounds = int(until.row["round"]) if until.reached else None
                air = case["uplink"] == "aircomp"
                snrs = SNRS if name == "fig7b" and not air else (case["snr_db"],)
                for snr in snrs:
                    for uplink in (AIR,) if air else OMA:
                        seconds = float(until.row["sim_seconds"]) if until.reached and air else None
                        place = (case["cells"], case["clients"] or 60, snr, run.seed, uplink)
                        point = Point(name, case["algorithm"], *place, rounds, seconds)
                        yield point, case, run


def measure(
    evidence: Evidence, earlier: Iterable[Point], show: Callable[[str], None] = lambda text: None
) -> list[Point]:
    """The points of all stored runs.

    Args:
        evidence: stored runs of HIST.
        earlier: points with a price, which are not priced again if the run reaches 80 % in the same
            round.
        show: is given a line for each price.
    """
    before = {(*one.place, one.rounds): one for one in earlier}
    points = []
    for point, _, run in wanted(evidence):
        key = (*point.place, point.rounds)
        if point.uplink == AIR or point.rounds is None:
            points.append(point)
        elif key in before:
            points.append(before[key])
        else:
            points.append(point._replace(seconds=seconds(run, point)))
            show(f"{point.study}, {point.uplink}, seed {point.seed}: {points[-1].seconds:.4g} s")
    return points


def seconds(run: StoredRun, point: Point) -> float:
    """Simulated seconds of the run's rounds to 80 % over the uplink of a point."""
    changes: dict[str, Any] = {"uplink": OMA[point.uplink]}
    if point.snr_db is not None:
        changes["network"] = {"snr_db": point.snr_db}
    short = StoredRun(
        run.settings,
        [row for row in run.rows if row["round"] <= (point.rounds or 0)],
        run.about,
        run.machine,
        run.seconds,
    )
    return float(priced(short, joules=False, **changes).rows[-1]["sim_seconds"])


def of(points: Iterable[Point], **fields: Any) -> list[Point]:
    """The points with these values."""
    return [p for p in points if all(getattr(p, name) == value for name, value in fields.items())]


def table(points: Sequence[Point]) -> str:
    """One row per study, algorithm and place: seconds to 80 % over each uplink."""
    uplinks = [*OMA, AIR]
    head = ["figure", "run", "rounds to 80 %", *(f"s, {shown(name)}" for name in uplinks)]
    head += ["seeds at 80 %, OMA", "AirComp", "best OMA / AirComp"]
    rows = []
    places = dict.fromkeys(p[:5] for p in points if p.uplink != AIR)
    for place in sorted(places, key=_order):
        study, algorithm, cells, clients, snr = place
        mine = [p for p in points if p[:5] == place]
        trained = of(mine, uplink=next(iter(OMA)))
        rows.append(
            [
                study.replace("fig", ""),
                f"{NAMES[algorithm]}, {_where(study, cells, clients, snr)}",
                _mean([p.rounds for p in trained], ".0f"),
                *(_mean([p.seconds for p in of(mine, uplink=one)], ".3g") for one in uplinks),
                _reached(trained),
                _reached(of(mine, uplink=AIR)),
                _ratio(mine),
            ]
        )
    return markdown(head, rows)


def _order(place: tuple[Any, ...]) -> tuple[Any, ...]:
    study, algorithm, cells, clients, snr = place
    return study, algorithm != "hist", cells, clients, snr or 0.0


def _reached(points: Sequence[Point]) -> str:
    """How many seeds reach 80 %."""
    return f"{sum(p.rounds is not None for p in points)} of {len(points)}" if points else "-"


def _where(study: str, cells: int, clients: int, snr: float | None) -> str:
    if study == "fig6":
        return f"N = {cells}"
    return f"{clients // cells} clients per cell" if snr is None else f"{snr:g} dB"


def _mean(values: Sequence[float | None], form: str) -> str:
    """The mean; a lower bound if some seeds miss the target."""
    mean = mean_or_bound(values)
    if mean is None:
        return MISSING if values else "not run"
    return "at least " * (None in values) + (f"{mean:.0f}" if mean >= 1000 else format(mean, form))


def advantage(points: Sequence[Point]) -> dict[int, float]:
    """Seconds over the best OMA relative to AirComp, of the seeds that reach 80 % over both."""
    air = {p.seed: p.seconds for p in of(points, uplink=AIR) if p.seconds is not None}
    best: dict[int, float] = {}
    for point in points:
        if point.uplink in BEST and point.seconds is not None and point.seed in air:
            best[point.seed] = min(point.seconds, best.get(point.seed, math.inf))
    return {seed: value / air[seed] for seed, value in best.items()}


def _ratio(points: Sequence[Point]) -> str:
    ratios = list(advantage(points).values())
    if not ratios:
        return "-"
    return f"{statistics.geometric_mean(ratios):.3g} ({seeds_of([len(ratios)])})"


def draw(points: Sequence[Point]) -> Figure | None:
    """Seconds of HIST to 80 % against the SNR, and against clients per cell."""
    hist = of(points, algorithm="hist")
    panels: list[tuple[str, str, list[Point], Callable[[Point], float]]] = [
        ("15 clients per cell", "SNR (dB)", of(hist, study="fig7b"), _snr),
        ("SNRs of Section VI-C", "clients per cell", of(hist, study="fig7c"), _clients),
    ]
    figure, axes = grid(len(panels), height=3.2)
    for panel, (title, label, mine, x) in zip(axes, panels, strict=True):
        panel.set_yscale("log")
        ticks = sorted({x(point) for point in mine})
        apart = min(map(operator.sub, ticks[1:], ticks), default=0.0) / (len(OMA) + 3)
        for number, uplink in enumerate([*OMA, AIR]):
            line = of(mine, uplink=uplink)
            at: dict[float, list[float | None] | None] = dict.fromkeys(ticks)
            for tick in {x(p) for p in line}:
                at[tick] = [p.seconds for p in line if x(p) == tick]
            draw_points(panel, at, shown(uplink), number, shift=apart * (number - len(OMA) / 2))
        panel.set_xticks(ticks)
        panel.set_xlabel(label)
        panel.set_title(title)
        panel.margins(x=0.08)
        room(panel)
    axes[0].set_ylabel(f"simulated seconds to {100 * TARGET:g} %")
    counts = Counter((*p[:5], p.uplink) for *_, mine, _ in panels for p in mine).values()
    legend(
        figure,
        axes,
        "Fashion-MNIST, FCNN, HIST",
        f"target {100 * TARGET:g} %",
        f"mean of {seeds_of(counts)}",
        "AirComp: published convention",
    )
    return figure


def _snr(point: Point) -> float:
    return float(point.snr_db or 0.0)


def _clients(point: Point) -> float:
    return float(point.clients // point.cells)


def evidence() -> Evidence:
    """The stored runs of HIST at scale ``small``."""
    return Evidence.of(HIST)


def beside(results: Results, study: str) -> Results:
    """Stored runs of a study of HIST that are shown beside those of ``results``.

    None are with digits, the data of scale ``smoke``, which has no stored runs.
    """
    figure = evidence().study(study)
    alike = results.study.cases[0]["dataset"] == figure.study.cases[0]["dataset"]
    return figure if alike else Results(figure.study, {place: [] for place in figure.runs})
