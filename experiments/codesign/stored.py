"""The file of the study of predictions: lists of numbers, one line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from experiments.codesign.curves import Curve
from experiments.codesign.searches import PairSearch
from experiments.codesign.sweep import GridRuns, Sweep
from experiments.codesign.tuned import Tuned
from experiments.records import listed, record

FILE = Path(__file__).with_name("predictions.json")
"""The numbers of scale ``small``, in the repository."""
KINDS = {
    "trained": GridRuns,
    "sweeps": Sweep,
    "curves": Curve,
    "searches": PairSearch,
    "tuned": Tuned,
}


class Found(NamedTuple):
    """What the study computes from stored runs.

    Args:
        trained: rounds to the target, by data set, algorithm and seed.
        sweeps: costs, by network and uplink too.
        curves: rounds that curves of pilots predict.
        searches: what other searches choose.
        tuned: runs with FedTune.
    """

    trained: list[GridRuns]
    sweeps: list[Sweep]
    curves: list[Curve]
    searches: list[PairSearch]
    tuned: list[Tuned]


def load(file: Path = FILE) -> Found:
    """The numbers of a file; none if there is no file."""
    text = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return Found(
        *([record(kind, line) for line in text.get(name, [])] for name, kind in KINDS.items())
    )


def save(numbers: Found, file: Path = FILE) -> None:
    """Write a file."""
    parts = [f'"{name}": {listed(lines)}' for name, lines in zip(KINDS, numbers, strict=True)]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
