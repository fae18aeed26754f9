"""Closed loop: designs that are trained once, against the same designs redesigned as they train.

``python -m experiments.codesign loop --make`` trains what is missing, stores the rows in ``loops``
and writes ``loops.json``. A run without redesigns is trained once per pair (H, E) and priced over
the networks; one with redesigns is trained over its network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import wirelessfl
from experiments.codesign.curves import as_pilot, designed, fitted
from experiments.codesign.networks import NETWORKS, OPTIMAL, over
from experiments.codesign.sweep import CRITERIA, PAIRS, TARGETS, by_place, first_round, short
from experiments.evidence import Evidence
from wirelessfl.codesign.pilots.pilot import COUNT
from wirelessfl.config import Config
from wirelessfl.pricing.same_training import repriced
from wirelessfl.results.archive import SUFFIX, StoredRun

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
FOLDER = Path(__file__).with_name("loops")
"""Rows of the runs."""
FILE = Path(__file__).with_name("loops.json")
ALGORITHM = "hist"


class Sample(NamedTuple):
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
                config, target=TARGETS[dataset], among=ALGORITHM, uplinks=["ofdma"], curve=curve
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


def train(
    evidence: Evidence,
    datasets: Iterable[str] = DATASETS,
    show: Callable[[str], None] = lambda text: None,
    folder: Path = FOLDER,
) -> None:
    """Train all runs without a file.

    Args:
        evidence: stored runs of the grid.
        datasets: names of data sets.
        show: is given a line per run.
        folder: where rows are stored.
    """
    designs = Designs(evidence)
    for place in places(datasets):
        files = _files(place, folder)
        if files is not None:
            continue
        config, loop = designs.planned(place)
        redesigned = folder / _name(place)
        once = folder / _once(config.given_tables(), place)
        for file, redesign in ((once, None), (redesigned, loop)):
            if not file.is_file():
                run = _trained(config, redesign)
                run.save(file)
                show(f"{file.name}: {run.rows[-1]['round']} rounds, {run.seconds:.3g} s")


def _trained(config: Config, redesign: wirelessfl.ClosedLoop | None) -> StoredRun:
    tables = config.given_tables()
    with TemporaryDirectory() as folder:
        tables["run"] = dict(tables["run"]) | {"out": Path(folder, "run"), "threads": 1}
        return StoredRun.of(wirelessfl.run(tables, redesign=redesign))


def _name(place: Sequence[Any]) -> str:
    """Name of the file of a run with redesigns."""
    return "-".join(map(str, place)) + SUFFIX


def _once(tables: Mapping[str, Any], place: Sequence[Any]) -> str:
    """Name of the file of the run without redesigns, which the networks share."""
    training = tables["training"]
    pair = f"H{training['local_steps']}-E{training['edge_rounds']}"
    return f"once-{place[1]}-{place[3]}-{pair}{SUFFIX}"


def _files(place: Sequence[Any], folder: Path) -> tuple[StoredRun, StoredRun] | None:
    """The runs of a sample without and with redesigns; None if one is missing."""
    file = folder / _name(place)
    if not file.is_file():
        return None
    redesigned = StoredRun.load(file)
    once = folder / _once(redesigned.settings, place)
    return (StoredRun.load(once), redesigned) if once.is_file() else None


def samples(folder: Path = FOLDER) -> list[Sample]:
    """All samples whose runs are stored."""
    found = []
    for place in places():
        files = _files(place, folder)
        if files is not None:
            found.append(sample(place, *files))
    return found


def sample(place: Sequence[Any], once: StoredRun, redesigned: StoredRun) -> Sample:
    """The numbers of two runs; the first is priced over the network of the second."""
    case, dataset, network, seed = place
    there = {name: t for name, t in redesigned.settings.items() if name != "given"}
    rows = repriced(once.rows, Config.of(once.settings), Config.of(there)).rows
    training = redesigned.settings["training"]
    pairs = [(row["local_steps"], row["edge_rounds"]) for row in redesigned.rows]
    changes = [
        (int(row["round"]), *pair)
        for row, pair, before in zip(redesigned.rows[1:], pairs[1:], pairs, strict=False)
        if pair != before
    ]
    return Sample(
        case,
        dataset,
        network,
        seed,
        (training["local_steps"], training["edge_rounds"]),
        _spent(rows, TARGETS[dataset]),
        _spent(redesigned.rows, TARGETS[dataset]),
        tuple(changes),
        (COUNT + 1, COUNT + 1),
    )


def _spent(rows: Sequence[Mapping[str, Any]], target: float) -> tuple[float, float, float] | None:
    """Rounds, seconds and joules to the target; None if it is not reached."""
    hit = first_round(map(dict, rows), target)
    last = next((row for row in rows if row["round"] == hit), None)
    if last is None:
        return None
    return float(last["round"]), short(last["sim_seconds"]), short(last["joules"])


def save(found: Iterable[Sample], file: Path = FILE) -> None:
    """Write the numbers, a line per sample."""
    file.write_text("[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n", encoding="utf-8")


def load(file: Path = FILE) -> list[Sample]:
    """The numbers of a file; none if there is no file."""
    if not file.is_file():
        return []
    return [Sample(*map(_tuple, line)) for line in json.loads(file.read_text(encoding="utf-8"))]


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value
