"""The file of the study of predictions: lists of numbers, one line each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from experiments.codesign.curves import Curve
from experiments.codesign.searches import PairSearch
from experiments.codesign.sweep import GridRuns, Sweep
from experiments.codesign.tuned import Tuned

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
        *([kind(*map(_tuple, line)) for line in text.get(name, [])] for name, kind in KINDS.items())
    )


def _tuple(value: Any) -> Any:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def save(record: Found, file: Path = FILE) -> None:
    """Write a file."""
    parts = [f'"{name}": [\n{_lines(lines)}\n]' for name, lines in zip(KINDS, record, strict=True)]
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _lines(lines: Iterable[Any]) -> str:
    return ",\n".join(json.dumps(line) for line in lines)
