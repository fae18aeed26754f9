"""``python -m experiments check``: make a sample of the stored runs again, and compare the rows."""

from __future__ import annotations

import math
import platform
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch

from experiments.papers import papers
from experiments.queue import Entry, entries, stored
from experiments.runs import Store, make_runs
from experiments.studies import Scale
from wirelessfl.base.errors import ConfigError
from wirelessfl.results.archive import Row, StoredRun
from wirelessfl.runs.folder.about import about

SAMPLE = 2
"""Runs per paper: those that took the fewest seconds."""
ACCURACY = 0.005
"""Tolerance of accuracies on another processor."""
AMPLIFIED = 0.02
"""The same for the mean over the rows of runs whose decisions depend on accuracies, which amplify
rounding errors."""
RELATIVE = 1e-9
"""Relative tolerance of seconds and joules on another processor."""
EXACT = ("uplink_mib", "downlink_mib", "backhaul_mib", "extra_mib")
"""Fields with bytes; they are equal on every processor."""
TIMED = ("sim_seconds", "joules", "extra_seconds")


def sample(scale: Scale, folder: Path, count: int = SAMPLE) -> list[tuple[Entry, StoredRun]]:
    """The ``count`` fastest stored runs of each paper."""
    pairs = [(entry, run) for entry in entries(scale, None, folder) if (run := stored(entry))]
    pairs = [(entry, run) for entry, run in pairs if run.current]
    chosen = []
    for paper in papers():
        of_paper = sorted((p for p in pairs if p[0].paper == paper), key=lambda p: p[1].seconds)
        chosen += of_paper[:count]
    return chosen


def same_machine(run: StoredRun) -> bool:
    """Whether this processor and these versions are those of a stored run."""
    here = about("cpu")
    return all(here[key] == run.about[key] for key in ("device", "device_name", "torch", "numpy"))


def differences(old: StoredRun, new: StoredRun, *, bits: bool) -> Iterator[str]:
    """What differs between two runs with equal settings, in one line each.

    Args:
        old: the stored run.
        new: the run made again.
        bits: whether all values must be equal; otherwise bytes are equal, seconds and joules to a
            relative 1e-9, and accuracies to 0.5 points. If decisions of the run depend on
            accuracies (warm starts, tasks that end at their targets), then only the accuracies
            of the rows that both have are compared: they differ by at most 2 points in the mean.
    """
    if not bits and {"warm_start", "tasks"} & old.settings.keys():
        yield from _amplified(old, new)
        return
    if len(old.rows) != len(new.rows):
        yield f"{len(old.rows)} rows, and {len(new.rows)} rows now"
        return
    for place, (before, now) in enumerate(zip(old.rows, new.rows, strict=True)):
        if lost := before.keys() - now.keys():  # stored rows may have fewer fields
            yield f"row {place}: without {', '.join(sorted(lost))} now"
            return
        for name, value in before.items():
            if name.endswith("accuracy") and not bits:
                equal = abs(value - now[name]) <= ACCURACY
            elif bits or name in EXACT:
                equal = value == now[name]
            elif name in TIMED:
                equal = math.isclose(value, now[name], rel_tol=RELATIVE)
            else:
                continue
            if not equal:
                yield f"row {place}: {name} is {value!r}, and {now[name]!r} now"
                return


def _amplified(old: StoredRun, new: StoredRun) -> Iterator[str]:
    """What differs in the mean over the rows."""
    pairs = list(_pairs(old, new))
    if len(pairs) < len(old.rows) / 2:
        yield f"{len(old.rows)} rows, of which {len(pairs)} have a partner now"
        return
    mean = statistics.mean(abs(before["accuracy"] - now["accuracy"]) for before, now in pairs)
    if mean > AMPLIFIED:
        yield f"accuracies differ by {100 * mean:.1f} points in the mean over {len(pairs)} rows"


def _pairs(old: StoredRun, new: StoredRun) -> Iterator[tuple[Row, Row]]:
    """Rows and their partners: those of a task in order."""
    later: dict[object, list[Row]] = {}
    for row in new.rows:
        later.setdefault(row.get("task"), []).append(row)
    waiting = {task: iter(rows) for task, rows in later.items()}
    for row in old.rows:
        partner = next(waiting.get(row.get("task"), iter(())), None)
        if partner is not None:
            yield row, partner


def check(scale: Scale = "small", count: int = SAMPLE, jobs: int = 1) -> int:
    """Make the sample again and print each comparison; returns the number of different runs."""
    if count < 1:
        raise ConfigError(f"sample is {count}: give a number of runs >= 1.")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        chosen = sample(scale, folder, count)
        if not chosen:
            raise ConfigError(
                f"no run of scale {scale} is stored: choose another scale, or make runs with "
                "`python -m experiments queue`."
            )
        rows = [folder / entry.paper for entry, _ in chosen]
        make_runs([entry.run for entry, _ in chosen], rows, folder / "runs", jobs=jobs)
        for (entry, old), place in zip(chosen, rows, strict=True):
            new = stored(entry._replace(store=Store(place, folder), earlier=None))
            assert new is not None
            bits = same_machine(old)
            changes = list(differences(old, new, bits=bits))
            wrong += bool(changes)
            how = "to the bit" if bits else "within tolerances, as the processor is another one"
            print(f"{entry.paper}, {entry.run.label}: {changes[0] if changes else f'equal {how}'}")
    machine = f"{about('cpu')['device_name']}, Python {platform.python_version()}, "
    print(f"{len(chosen) - wrong} of {len(chosen)} runs are equal ({machine}{torch.__version__})")
    return wrong
