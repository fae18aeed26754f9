"""CPU time and memory of warm starts (Tables 15 and 16): each run in a process of its own."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from experiments import records
from experiments.dynamic_clients.methods import SHOWN, per_session
from experiments.paper import show
from experiments.studies import Case, Study
from wirelessfl.base.errors import TrainingError
from wirelessfl.results.costs import markdown
from wirelessfl.results.selection import DATA, NAMES
from wirelessfl.runs.folder.about import about

FILE = Path(__file__).with_name("costs.json")
"""The measurements of scale ``small``, in the repository."""
MEASURED = (
    "Without overlap, Dir(0.3). Other data and labels, and MOON with 100 clients, are not measured."
)
PUBLISHED = (
    "The paper's times (Tables 15 and 16) are for other machines, and its command trains several "
    "warm starts in one process (Appendix D.1): 26 min and 1.1 GB with 20 clients, 56 to 58 min "
    "and 1.1 to 1.2 GB with 100."
)


class MeasuredCost(NamedTuple):
    """The cost of a run.

    Args:
        dataset: name of the data set.
        model: name of the model.
        clients: clients per session.
        algorithm: name of the algorithm.
        warm_start: name of the warm start.
        seed: seed of the run.
        cpu_seconds: user and system time of the process, minus that of a run with one round per
            session.
        peak_mib: largest resident memory of the process.
        machine: name of the processor.
    """

    dataset: str
    model: str
    clients: int
    algorithm: str
    warm_start: str
    seed: int
    cpu_seconds: float
    peak_mib: float
    machine: str


def measure(case: Case, seed: int) -> MeasuredCost:
    """Run a case alone, with one thread, and another one with one round per session."""
    short = replace(case, settings=case.settings | {"rounds": 1})
    start, whole = (_usage(one, seed) for one in (short, case))
    return MeasuredCost(
        case["dataset"],
        case["model"],
        per_session(case.settings),
        case["algorithm"],
        case["warm_start"],
        seed,
        whole.ru_utime + whole.ru_stime - start.ru_utime - start.ru_stime,
        whole.ru_maxrss / 1024,
        about("cpu")["device_name"],
    )


def _usage(case: Case, seed: int) -> resource.struct_rusage:
    """What the process of a run used."""
    with tempfile.TemporaryDirectory() as name:
        config = case.config(seed).with_run({"threads": 1, "workers": 1})
        file = Path(name, "run.toml")
        file.write_text(config.to_toml(), encoding="utf-8")
        words = [sys.executable, "-m", "wirelessfl", "run", "--config", str(file)]
        with Path(name, "output.txt").open("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                [*words, "--out", str(Path(name, "run"))], stdout=output, stderr=output
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            if process.returncode:
                last = (output.read().splitlines() or ["no output"])[-1]
                raise TrainingError(f"{case.label}: {last}")
    return usage


def load(file: Path = FILE) -> list[MeasuredCost]:
    """The measurements of a file; none if there is no file."""
    return records.load(MeasuredCost, file)


def make(study: Study, file: Path) -> None:
    """Measure the cases of a study that are not in the file yet, and add them, one by one."""
    costs = load(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    for case in study.cases:
        for seed in case.seeds:
            key = (case["dataset"], case["model"], per_session(case.settings), case["algorithm"])
            if any(one[:6] == (*key, case["warm_start"], seed) for one in costs):
                continue
            costs.append(measure(case, seed))
            progress = f"{case.label}, seed {seed}: {costs[-1].cpu_seconds:.1f} s"
            print(progress, file=sys.stderr, flush=True)
            draft = file.with_name(f".{file.name}")
            records.save((one._asdict() for one in costs), draft)
            draft.replace(file)


def table(costs: Sequence[MeasuredCost]) -> str:
    """CPU seconds and MiB by algorithm and warm start: medians of the repetitions."""
    if not costs:
        return "*No run is measured.*\n"
    starts = [start for start in SHOWN if any(one.warm_start == start for one in costs)]
    head = ["data, model, clients", "algorithm", "runs"]
    head += [SHOWN[start] for start in starts]
    rows = []
    for dataset, model, clients, algorithm in dict.fromkeys(one[:4] for one in costs):
        of_row = [one for one in costs if one[:4] == (dataset, model, clients, algorithm)]
        cells = []
        for start in starts:
            mine = [one for one in of_row if one.warm_start == start]
            seconds, mib = (
                statistics.median(getattr(one, name) for one in mine) if mine else None
                for name in ("cpu_seconds", "peak_mib")
            )
            cells.append("-" if seconds is None else f"{seconds:.1f}, {mib:.0f}")
        runs = str(len({one.seed for one in of_row}))
        rows.append([f"{DATA[dataset]}, {model}, {clients}", NAMES[algorithm], runs, *cells])
    machines = ", ".join(dict.fromkeys(one.machine for one in costs))
    about = f"Median CPU seconds and MiB for one thread of {machines}, without the start."
    return f"{about} {MEASURED}\n\n{PUBLISHED}\n\n{markdown(head, rows)}"


def costs(arguments: argparse.Namespace, study: Study) -> None:
    """Print and store the table; with ``--make``, measure first."""
    scale = arguments.scale
    file = FILE if scale == "small" else arguments.out / f"costs-{scale}.json"
    if arguments.make:
        make(study, file)
    show("costs", table(load(file)), arguments.out)
