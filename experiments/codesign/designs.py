"""Designs off the grid, with unequal masks and all uplinks: made by ``wirelessfl.design``, trained.

``python -m experiments.codesign made --make`` makes them from the pilots and writes their settings,
``settings/designs.toml``, and predictions, ``designs.json``. They are trained as any other study.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import wirelessfl
from experiments import records
from experiments.codesign.curves import SHARES, as_pilot, designed
from experiments.codesign.grid import STEPS as GRID_STEPS
from experiments.codesign.networks import NETWORKS, over
from experiments.codesign.sweep import ALGORITHMS, PAIRS, TARGETS, by_place, first_round, short
from experiments.decided.uplinks import SLOTS
from experiments.evidence import Evidence
from experiments.studies import Results
from wirelessfl.results.archive import StoredRun
from wirelessfl.results.costs import markdown
from wirelessfl.results.selection import DATA, NAMES

FILE = Path(__file__).with_name("designs.json")
SETTINGS = Path(__file__).with_name("settings") / "designs.toml"
BOOTSTRAP = 100
LONGER = 2.0
"""Rounds of runs that need more local steps than the grid has, relative to predicted ones."""
HEAD = """\
# Designs off the grid, written by `python -m experiments.codesign made --make`: each run has the
# algorithm, local steps, edge rounds, masks and uplink that `wirelessfl.design` has chosen for its
# data, network and seed from pilots of the grid and of `masks`.

[settings]
model = "fcnn"
cells = 4
clients = 20
split = "noniid"
batch_size = 50
lr = 0.05
validation_fraction = 0.1
stop_at_target = false
coherence = "round"
"""

AIR = {"antenna_gain_db": 0.0, "noise_dbm_per_hz": -174.0, "noise_figure_db": 5.0}
STATED: Mapping[str, Mapping[str, Any]] = {
    "section-vi-c": {},
    "disc": AIR,
    "uma": AIR
    | {"carrier_ghz": 3.5, "base_station_height_m": 25.0}
    | {"client_height_m": 1.5, "line_of_sight": "random"},
}
"""Settings of the networks that are those of the package."""


class Made(NamedTuple):
    """A design with its prediction.

    Args:
        dataset: name of the data set.
        network: one of ``networks.NETWORKS``.
        seed: seed of pilots and run.
        settings: settings of its run by flag that differ from those of other designs.
        rounds: predicted rounds, with the ends of their 90 % interval.
        seconds: predicted seconds and interval.
        joules: predicted joules per client and interval.
        trainings: number of pilots.
        cpu_seconds: seconds of their training.
    """

    dataset: str
    network: str
    seed: int
    settings: dict[str, Any]
    rounds: tuple[float, float, float]
    seconds: tuple[float, float, float]
    joules: tuple[float, float, float]
    trainings: int
    cpu_seconds: float


def load(file: Path = FILE) -> list[Made]:
    """The designs of a file; none if there is no file."""
    return records.load(Made, file)


def save(made: Iterable[Made], file: Path = FILE, settings: Path = SETTINGS) -> None:
    """Write the designs, and the settings of their runs."""
    made = list(made)
    records.save(made, file)
    parts = [HEAD] + [_entry(one, first=not place) for place, one in enumerate(made)]
    settings.write_text("\n".join(parts), encoding="utf-8")


def _entry(one: Made, *, first: bool) -> str:
    """The lines of a run; the first has a small variant for scale ``smoke``."""
    table: dict[str, Any] = {"rank": list(TARGETS).index(one.dataset)}
    table |= {"dataset": one.dataset, "target": TARGETS[one.dataset], "seeds": [one.seed]}
    table |= {name: [v] if isinstance(v, list) else v for name, v in one.settings.items()}
    table |= STATED[one.network]
    steps = int(table["local_steps"]) * int(table["edge_rounds"])
    if one.rounds[0] * steps > GRID_STEPS["small"]:  # a run of the grid would end too early
        table["rounds"] = math.ceil(LONGER * one.rounds[0])
    lines = ["[[grid]]", f"# {one.network}"]
    lines += [] if first else ['scales = ["small"]']
    lines += [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    if first:
        lines.append("smoke = { clients = 8, target = 0.5, local_steps = 5, edge_rounds = 1 }")
    return "\n".join(lines) + "\n"


def pilots(evidence: Evidence) -> dict[tuple[str, str, int], list[StoredRun]]:
    """The pilots by data set, algorithm and seed, where all of them are stored."""
    by_run = by_place(evidence)
    unequal = evidence.study("masks")
    masks: dict[tuple[str, str, int], list[StoredRun]] = {}
    for case in unequal.where():
        for run in unequal.of(case):
            masks.setdefault((case["dataset"], "hist", run.seed), []).append(run)
    number = len({(c["local_steps"], c["edge_rounds"]) for c in unequal.study.cases})
    complete = {}
    for place, by_pair in by_run.items():
        runs = [by_pair[PAIRS[one]] for one in designed() if PAIRS[one] in by_pair]
        more = masks.get(place, [])
        if len(runs) == len(designed()) and (place[1] != "hist" or len(more) == number):
            complete[place] = [as_pilot(run, TARGETS[place[0]]) for run in (*runs, *more)]
    return complete


def make(
    evidence: Evidence, designs: Iterable[Made], show: Callable[[str], None] = lambda text: None
) -> Iterator[Made]:
    """The designs of all data sets, networks and seeds, among the algorithms with all pilots.

    Args:
        evidence: stored runs of the grid and of ``masks``.
        designs: designs that have been made, which are kept.
        show: is given a line per design.
    """
    done = {one[:3]: one for one in designs}
    by_place = pilots(evidence)
    for dataset, seed in dict.fromkeys((dataset, seed) for dataset, _, seed in by_place):
        runs = {
            name: by_place[dataset, name, seed]
            for name in ALGORITHMS
            if (dataset, name, seed) in by_place
        }
        target, curves = TARGETS[dataset], {}
        for network in NETWORKS:
            if (dataset, network, seed) in done:
                yield done[dataset, network, seed]
                continue
            if not curves:
                targets = [share * target for share in SHARES]
                curves = {
                    name: wirelessfl.fit_rounds(some, targets, bootstrap=BOOTSTRAP)
                    for name, some in runs.items()
                }
            case = next(
                case
                for case in evidence.study("grid").study.cases
                if (case["dataset"], case["algorithm"]) == (dataset, "hist")
            )
            config = over(case.config(seed), network, SLOTS)
            design = wirelessfl.design(config, target=target, among=[*runs], curve=curves).value
            assert design is not None
            every = [run for some in runs.values() for run in some]
            yield Made(
                dataset,
                network,
                seed,
                _flags(design, network),
                *(tuple(map(short, part)) for part in design.predicted[:3]),
                len(every),
                short(sum(run.seconds for run in every)),
            )
            show(f"{dataset}, seed {seed}, {network}: {design!r}")


def _flags(design: wirelessfl.Design, network: str) -> dict[str, Any]:
    """The settings of the design's run that differ from those of other designs, by flag."""
    choice = design.choice
    flags: dict[str, Any] = {
        "algorithm": choice.family.algorithm,
        "local_steps": choice.local_steps,
        "edge_rounds": choice.edge_rounds,
    }
    for name in ("mask_sizes", "mask_shares"):
        if name in design.config.tables["algorithm"]:
            flags[name] = design.config.tables["algorithm"][name]
    flags |= {"uplink": choice.way.name, **choice.way.settings, **NETWORKS[network]}
    return {name: _plain(value) for name, value in flags.items()}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def realised(results: Results, made: Iterable[Made]) -> list[tuple[Made, Mapping[str, Any] | None]]:
    """Each design whose run is stored, with the row that first reaches the target."""
    runs = {
        _place(case["dataset"], run.seed, case.settings): run
        for case in results.where()
        for run in results.of(case)
    }
    trained = []
    for one in made:
        run = runs.get(_place(one.dataset, one.seed, one.settings))
        if run is not None:
            hit = first_round(run.rows, TARGETS[one.dataset])
            trained.append((one, next((r for r in run.rows if r["round"] == hit), None)))
    return trained


def _place(dataset: str, seed: int, settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """What identifies a design: networks differ in their layouts."""
    return dataset, seed, settings.get("layout")


def numbers(trained: Sequence[tuple[Made, Mapping[str, Any] | None]]) -> dict[str, str]:
    """How many runs reach the target, and how far predictions are from them."""
    hits = [(one, hit) for one, hit in trained if hit is not None]
    errors = {
        f"trained, {name}": f"{100 * statistics.median(values):.2g}"
        for name, field in (("seconds", "sim_seconds"), ("joules", "joules"))
        for values in [[abs(getattr(one, name)[0] / hit[field] - 1) for one, hit in hits]]
        if values
    }
    inside = sum(one.seconds[1] <= hit["sim_seconds"] <= one.seconds[2] for one, hit in hits)
    return {"trained": f"{len(hits)} of {len(trained)}", "trained, inside": str(inside), **errors}


def table(results: Results) -> str:
    """One row per design: what has been chosen, predicted and realised."""
    trained = realised(results, load())
    head = ["data", "network", "seed", "algorithm", "H", "E", "masks", "uplink"]
    head += ["predicted s (90 %)", "realised s", "predicted J", "realised J", "trainings"]
    rows = []
    for one, hit in trained:
        s = one.settings
        shares = s.get("mask_shares")
        masks = " : ".join(f"{x:.2g}" for x in shares) if shares else s.get("mask_sizes", "equal")
        rows.append(
            [
                DATA[one.dataset],
                one.network,
                str(one.seed),
                NAMES[s["algorithm"]],
                str(s["local_steps"]),
                str(s["edge_rounds"]),
                masks if s["algorithm"] == "hist" else "-",
                ", ".join([s["uplink"], *(_said(s, k) for k in UPLINK if k in s)]),
                "{:.3g} ({:.3g} to {:.3g})".format(*one.seconds),
                "not reached" if hit is None else f"{hit['sim_seconds']:.3g}",
                f"{one.joules[0]:.3g}",
                "not reached" if hit is None else f"{hit['joules']:.3g}",
                str(one.trainings),
            ]
        )
    return markdown(head, rows)


UPLINK = ("order", "allocation", "energy_weight")
"""Settings of uplinks that a design chooses."""


def _said(settings: Mapping[str, Any], name: str) -> str:
    value = settings[name]
    return value if isinstance(value, str) else f"W = {value:g}"
