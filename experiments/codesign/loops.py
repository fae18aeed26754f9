"""Closed loop: designs that are trained once, against the same designs redesigned as they train.

``python -m experiments.codesign loop --make`` trains what is missing, stores its rows in
``rows/loops``
and writes ``loops.json``. Designs without redesigns are runs of the grid if these are evaluated in
each round, priced over the network. A run whose redesigns change nothing is the run without them,
so redesigns are first asked about its rows; a run is trained if they change something.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import wirelessfl
from experiments.codesign.curves import as_pilot, designed, evaluated, fitted
from experiments.codesign.networks import NETWORKS, OPTIMAL, over
from experiments.codesign.sweep import CRITERIA, PAIRS, TARGETS, by_place, first_round, short
from experiments.evidence import Evidence
from wirelessfl.codesign.pilots.pilot_runs import COUNT
from wirelessfl.config import Config
from wirelessfl.pricing.same_training import repriced
from wirelessfl.results.archive import SUFFIX, StoredRun
from wirelessfl.setup.planners import plan_without_data
from wirelessfl.setup.redesigns import make_redesigns
from wirelessfl.training.shards import Shards

STATED = CRITERIA["loop"]
EVERY: int = STATED["every"]
"""R, global rounds between two redesigns."""
ROUNDS: int = STATED["rounds"]
"""Rounds after which a run ends that has not reached its target."""
SEEDS: tuple[int, ...] = tuple(STATED["seeds"])
DATASETS: tuple[str, ...] = tuple(STATED["datasets"])
OWN, SEED, NETWORK = "own", "seed", "network"
CASES: tuple[str, ...] = (OWN, SEED, NETWORK)
"""Whose pilots and network a design is made for, see ``criteria.toml``."""
FOLDER = Path(__file__).with_name("rows") / "loops"
"""Rows of runs that are not those of the grid."""
FILE = Path(__file__).with_name("loops.json")
ALGORITHM = "hist"
STEPS, EDGES = (sorted({pair[i] for pair in PAIRS}) for i in (0, 1))
"""Numbers of local steps and edge rounds to choose from, those of the grid."""


class LoopRun(NamedTuple):
    """A run that is redesigned, and the same design without redesigns.

    Args:
        case: one of ``CASES``.
        dataset: name of the data set.
        network: network of the run, one of ``networks.NETWORKS``.
        seed: seed of the run.
        pair: local steps and edge rounds (H, E) of the design.
        once: rounds, simulated seconds and joules per client to the target; None if the run does
            not reach it.
        redesigned: the same with redesigns.
        changes: round, H and E of each change.
        trainings: number of pilots and of runs without and with redesigns.
    """

    case: str
    dataset: str
    network: str
    seed: int
    pair: tuple[int, int]
    once: tuple[float, float, float] | None
    redesigned: tuple[float, float, float] | None
    changes: tuple[tuple[int, int, int], ...]
    trainings: tuple[int, int]

    @property
    def place(self) -> tuple[str, str, str, int]:
        """All but the numbers."""
        return self[:4]


def places(datasets: Iterable[str] = DATASETS) -> Iterator[tuple[str, str, str, int]]:
    """All samples of some data sets, see ``Sample.place``."""
    for dataset in datasets:
        for case in CASES:
            for seed in SEEDS:
                for network in NETWORKS:
                    yield case, dataset, network, seed


def planned_for(case: str, network: str, seed: int) -> tuple[str, int]:
    """The network and the seed of the pilots that a design is made for.

    Args:
        case: one of ``CASES``.
        network, seed: those of the run.
    """
    names = [*NETWORKS]
    if case == NETWORK:
        network = names[names.index(network) - 1]
    if case == SEED:
        seed = SEEDS[SEEDS.index(seed) - 1]
    return network, seed


class Designs:
    """Designs from pilots of the grid, made when they are needed.

    Args:
        evidence: stored runs of the grid.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.runs = by_place(evidence)
        self.cases = {
            case["dataset"]: case
            for case in evidence.study("grid").study.cases
            if case["algorithm"] == ALGORITHM
        }
        self._curves: dict[tuple[str, int], wirelessfl.RoundsCurve] = {}
        self._made: dict[tuple[str, str, int, int], wirelessfl.Design] = {}

    def of(self, dataset: str, network: str, seed: int, piloted: int) -> wirelessfl.Design:
        """The design over a network with the pilots of a seed.

        Args:
            dataset: name of the data set.
            network: one of ``networks.NETWORKS``.
            seed: seed of the network.
            piloted: seed of the pilots.
        """
        key = dataset, network, seed, piloted
        if key not in self._made:
            config = over(self.cases[dataset].config(seed), network, OPTIMAL)
            curve = self._curve(dataset, piloted)
            made = wirelessfl.design(
                config,
                target=TARGETS[dataset],
                among=ALGORITHM,
                uplinks=["ofdma"],
                local_steps=STEPS,
                edge_rounds=EDGES,
                curve=curve,
            ).value
            assert made is not None
            self._made[key] = made
        return self._made[key]

    def _curve(self, dataset: str, seed: int) -> wirelessfl.RoundsCurve:
        if (dataset, seed) not in self._curves:
            by_pair, target = self.runs[dataset, ALGORITHM, seed], TARGETS[dataset]
            pairs = [PAIRS[place] for place in designed()]
            pilots = {pair: as_pilot(by_pair[pair], target) for pair in pairs}
            self._curves[dataset, seed] = fitted(pilots, target)
        return self._curves[dataset, seed]

    def planned(self, place: Sequence[Any]) -> tuple[Config, wirelessfl.ClosedLoop]:
        """The settings of a sample's run before any redesign, and what redesigns it.

        Redesigns know the network of the run, and the pilots of the design.
        """
        case, dataset, network, seed = place
        there, piloted = planned_for(case, network, seed)
        here = self.of(dataset, network, seed, piloted)
        choice = self.of(dataset, there, seed, piloted).choice
        tables = here.config.given_tables()
        tables["training"] = dict(tables["training"]) | {
            "local_steps": choice.local_steps,
            "edge_rounds": choice.edge_rounds,
            "rounds": ROUNDS,
        }
        tables["evaluation"] = dict(tables["evaluation"]) | {
            "eval_every": 1,
            "stop_at_target": True,
        }
        return Config.of(tables), here.closed_loop(EVERY)

    def once(self, place: Sequence[Any], config: Config, folder: Path) -> StoredRun:
        """The run of a sample without redesigns, over any network: of the grid, stored, or new."""
        _, dataset, _, seed = place
        pair = config.training.local_steps, config.training.edge_rounds or 1
        run = self.runs[dataset, ALGORITHM, seed].get(pair)
        if run is not None and evaluated(*pair) == 1:
            hit = first_round(run.rows, TARGETS[dataset])
            if hit is not None:
                return replace(run, rows=[row for row in run.rows if row["round"] <= hit])
        name = f"once-{dataset}-{seed}-H{pair[0]}-E{pair[1]}{SUFFIX}"
        return _stored(folder / name, config, None)


def make(
    evidence: Evidence,
    known: Iterable[LoopRun],
    show: Callable[[str], None] = lambda text: None,
    datasets: Iterable[str] = DATASETS,
    folder: Path = FOLDER,
) -> Iterator[LoopRun]:
    """All samples; runs that are not stored are trained.

    Args:
        evidence: stored runs of the grid.
        known: samples that have been made, which are kept.
        show: is given a line per sample.
        datasets: names of data sets.
        folder: where rows are stored.
    """
    done = {one.place: one for one in known}
    designs = Designs(evidence)
    for place in places(datasets):
        if place not in done:
            done[place] = _made(designs, place, folder)
            show(f"{', '.join(map(str, place))}: {done[place][4:8]}")
        yield done[place]


def _made(designs: Designs, place: tuple[str, str, str, int], folder: Path) -> LoopRun:
    config, loop = designs.planned(place)
    once = designs.once(place, config, folder)
    target = TARGETS[place[1]]
    spent = _spent(repriced(once.rows, Config.of(once.settings), config).rows, target)
    with_loop, changed = spent, ()
    if first_change(config, loop, once.rows) is not None:
        run = _stored(folder / ("-".join(map(str, place)) + SUFFIX), config, loop)
        with_loop, changed = _spent(run.rows, target), changes(run.rows)
    training = config.training
    pair = training.local_steps, training.edge_rounds or 1
    return LoopRun(*place, pair, spent, with_loop, changed, (COUNT + 1, COUNT + 1))


def _stored(file: Path, config: Config, redesign: wirelessfl.ClosedLoop | None) -> StoredRun:
    """The run of a file, which is trained if there is none."""
    if not file.is_file():
        tables = config.given_tables()
        with TemporaryDirectory() as folder:
            tables["run"] = dict(tables["run"]) | {"out": Path(folder, "run"), "threads": 1}
            StoredRun.of(wirelessfl.run(tables, redesign=redesign)).save(file)
    return StoredRun.load(file)


def first_change(
    config: Config, loop: wirelessfl.ClosedLoop, rows: Sequence[Mapping[str, Any]]
) -> int | None:
    """Complete rounds at the first redesign that would change a run; None if none does.

    Args:
        config: settings of the run.
        loop: its redesigns.
        rows: rows of the run without redesigns.
    """
    redesigns = make_redesigns(config, loop, plan_without_data(config).planner, Shards())
    everyone = {"clients_per_round": config.network.clients}  # in rows of redesigned runs only
    for number in range(EVERY, int(rows[-1]["round"]), EVERY):
        redesigns.rows = [{**row, **everyone} for row in rows if row["round"] <= number]
        redesigns.settle(number)
        if redesigns.of_round(number) != redesigns.of_round(0):
            return number
    return None


def changes(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, int, int], ...]:
    """Round, H and E of each change of H or E in a run."""
    pairs = [(int(row["local_steps"]), int(row["edge_rounds"])) for row in rows]
    return tuple(
        (int(row["round"]), *pair)
        for row, pair, before in zip(rows[2:], pairs[2:], pairs[1:], strict=False)
        if pair != before
    )


def _spent(rows: Sequence[Mapping[str, Any]], target: float) -> tuple[float, float, float] | None:
    """Rounds, seconds and joules to the target; None if it is not reached."""
    hit = first_round(map(dict, rows), target)
    last = next((row for row in rows if row["round"] == hit), None)
    if last is None:
        return None
    return float(last["round"]), short(last["sim_seconds"]), short(last["joules"])


def save(found: Iterable[LoopRun], file: Path = FILE) -> None:
    """Write the numbers, a line per sample."""
    file.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", encoding="utf-8")


def load(file: Path = FILE) -> list[LoopRun]:
    """The numbers of a file; none if there is no file."""
    if not file.is_file():
        return []
    return [LoopRun(*map(_tuple, line)) for line in json.loads(file.read_text(encoding="utf-8"))]


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
