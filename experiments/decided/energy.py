"""Energy within a deadline: seconds and joules to an accuracy, of designs with equal accuracies.

Bands, powers and clocks change neither participants nor updates, so one run has the accuracies of
all designs. ``python -m experiments.decided energy --make`` prices stored runs and writes
``energy.json``, from which table and figure follow.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import wirelessfl
from experiments import records
from experiments.axes import log_axes
from experiments.decided.uplinks import EQUAL, OMA, OPTIMAL, shown
from experiments.evidence import Evidence
from experiments.labels import seeds_of
from experiments.priced import over, priced
from experiments.tables import table_of
from wirelessfl.base.figures.curves import line_look, style
from wirelessfl.config import Config
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.panels import grid, legend
from wirelessfl.runs.targets import cost_to

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILE = Path(__file__).with_name("energy.json")
"""Costs of the runs of scale ``small``, in the repository."""
DEADLINES = (1.05, 1.5, 2.0, 4.0)
"""Deadlines of a round, relative to the longest round with optimal bands."""
WEIGHTS = (0.1, 1.0, 10.0)
"""Weights of energy, relative to seconds over joules with optimal bands."""
DEADLINE, WEIGHT = "deadline / minimum", "relative weight of energy"
"""Names of designs, before their numbers."""
CELLS, DISC = "HIST, Section VI-C at 0 dB", "FedAvg, disc of 500 m"
TARGETS = {CELLS: 0.8, DISC: 0.75}


class DesignCost(NamedTuple):
    """What a run costs with a design.

    Args:
        network: algorithm and network.
        seed: seed of the run.
        design: name of the design.
        setting: deadline in seconds or weight in seconds per joule; None if it has none.
        rounds: global rounds to the target accuracy.
        seconds: simulated seconds until then.
        joules: joules until then, mean over the clients.
        largest: joules until then of the client that used the most.
    """

    network: str
    seed: int
    design: str
    setting: float | None
    rounds: int
    seconds: float
    joules: float
    largest: float


def sources(hist: Evidence, decided: Evidence) -> Iterator[tuple[str, StoredRun, dict[str, Any]]]:
    """The stored runs with their networks, and changes of their radio."""
    for case in hist.study("fig7b").where(algorithm="hist", uplink="tdma"):
        for run in hist.study("fig7b").of(case):
            yield CELLS, run, {"network": {"snr_db": 0.0}}
    for case in decided.study("selection").where(select="random"):
        for run in decided.study("selection").of(case):
            yield DISC, run, {}


def costs(network: str, run: StoredRun, changes: Mapping[str, Any]) -> list[DesignCost]:
    """The costs of a run until the target, with each design; none if it does not reach it."""
    until = cost_to(run.rows, TARGETS[network])
    if not until.reached:
        return []
    rounds = int(until.row["round"])
    short = replace(run, rows=[row for row in run.rows if row["round"] <= rounds])

    def cost(design: str, uplink: Mapping[str, Any], setting: float | None = None) -> DesignCost:
        end = priced(short, **changes, uplink=uplink).rows[-1]
        spent = (end["sim_seconds"], end["joules"], end["joules_max"])
        return DesignCost(network, run.seed, design, setting, rounds, *spent)

    equal, best = cost(EQUAL, OMA[EQUAL]), cost(OPTIMAL, OMA[OPTIMAL])
    longest = longest_round(run, rounds, changes)
    designs = [equal, best]
    for factor in DEADLINES:
        deadline = factor * longest
        uplink = {"name": "ofdma", "round_deadline": deadline}
        designs.append(cost(f"{DEADLINE} {factor:g}", uplink, deadline))
    clients = int(run.settings["network"]["clients"])
    for factor in WEIGHTS:
        weight = factor * best.seconds / (best.joules * clients)
        uplink = {"name": "ofdma", "energy_weight": weight}
        designs.append(cost(f"{WEIGHT} {factor:g}", uplink, weight))
    return designs


def longest_round(run: StoredRun, rounds: int, changes: Mapping[str, Any]) -> float:
    """Seconds of the longest of the first rounds with optimal bands: the least deadline of all."""
    config = over(Config.of(run.settings), **changes, uplink=OMA[OPTIMAL])
    return float(wirelessfl.price(config, rounds, joules=False).seconds.max())


def measure(
    hist: Evidence,
    decided: Evidence,
    earlier: Iterable[DesignCost],
    show: Callable[[str], None] = lambda text: None,
) -> list[DesignCost]:
    """The costs of all stored runs; those with known costs are not priced again."""
    before: dict[tuple[str, int], list[DesignCost]] = {}
    for one in earlier:
        before.setdefault((one.network, one.seed), []).append(one)
    designs = []
    for network, run, changes in sources(hist, decided):
        if (network, run.seed) not in before:
            show(f"{network}, seed {run.seed}")
        designs += before.get((network, run.seed)) or costs(network, run, changes)
    return designs


def load(file: Path = FILE) -> list[DesignCost]:
    """The costs of a file; none if there is no file."""
    return records.load(DesignCost, file)


def table(costs: Sequence[DesignCost]) -> str:
    """Seconds and joules to the target, and of a round, of each design."""
    if not costs:
        return "*No run is priced.*"
    seeds: dict[tuple[str, str], list[DesignCost]] = {}
    for cost in costs:
        seeds.setdefault((cost.network, cost.design), []).append(cost)

    def mean(of: Callable[[DesignCost], float], form: str) -> Callable[[list[DesignCost]], str]:
        return lambda mine: format(statistics.mean(map(of, mine)), form)

    return table_of(
        seeds.values(),
        {
            "run": lambda mine: f"{mine[0].network}, {100 * TARGETS[mine[0].network]:g} %",
            "design": lambda mine: shown(mine[0].design),
            "seeds": lambda mine: str(len(mine)),
            "s per round": mean(lambda one: one.seconds / one.rounds, ".3g"),
            "J per client and round": mean(lambda one: one.joules / one.rounds, ".3g"),
            "s to the target": mean(lambda one: one.seconds, ".4g"),
            "J per client to the target": mean(lambda one: one.joules, ".3g"),
            "J, largest client / mean": mean(lambda one: one.largest / one.joules, ".2g"),
        },
    )


def draw(costs: Sequence[DesignCost]) -> Figure | None:
    """Joules against seconds to the target: one panel per network, one line per kind of design."""
    networks = list(dict.fromkeys(one.network for one in costs))
    if not networks:
        return None
    figure, axes = grid(len(networks), height=2.9)
    kinds = list(dict.fromkeys(_kind(one.design) for one in costs))
    for panel, network in zip(axes, networks, strict=True):
        log_axes(panel)
        for number, kind in enumerate(kinds):
            mine = [c for c in costs if c.network == network and _kind(c.design) == kind]
            points, look = _points(mine), line_look(number)
            x, y = [x for x, _ in points.values()], [y for _, y in points.values()]
            panel.plot(x, y, label=shown(kind), **look)
            seeds = [c.seconds for c in mine], [c.joules for c in mine]
            panel.plot(*seeds, ".", color=look["color"], markersize=2, alpha=0.6)
            for design, at in points.items():
                if len(points) > 1:
                    _label(panel, design.rpartition(" ")[2], at, above=kind == WEIGHT)
        panel.margins(0.12)
        panel.set_xlabel(f"simulated seconds to {100 * TARGETS[network]:g} %")
        panel.set_title(network)
    axes[0].set_ylabel("J per client to the target")
    seeds = seeds_of(len({c.seed for c in costs if c.network == one}) for one in networks)
    legend(figure, axes, "Fashion-MNIST, FCNN", f"mean of {seeds}, dots: seeds")
    return figure


def _kind(design: str) -> str:
    """A design without its number."""
    return next((kind for kind in (DEADLINE, WEIGHT) if design.startswith(kind)), design)


def _points(costs: Sequence[DesignCost]) -> dict[str, tuple[float, float]]:
    """Mean seconds and joules by design."""
    by_design: dict[str, list[DesignCost]] = {}
    for one in costs:
        by_design.setdefault(one.design, []).append(one)
    return {
        design: (statistics.mean(c.seconds for c in mine), statistics.mean(c.joules for c in mine))
        for design, mine in by_design.items()
    }


def _label(panel: Axes, text: str, at: tuple[float, float], *, above: bool) -> None:
    """Write the number of a design beside its point, on the other side than other designs do."""
    panel.annotate(
        text,
        at,
        (4, 3) if above else (-4, -3),
        textcoords="offset points",
        ha="left" if above else "right",
        va="bottom" if above else "top",
        fontsize=style().small,
    )
