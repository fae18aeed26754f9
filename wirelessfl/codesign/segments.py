"""What a run has shown so far: its parts with equal settings, with their accuracies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from channels.arrays import FloatArray
from wirelessfl.codesign.curves.pilot import SCORE
from wirelessfl.divergence import counted
from wirelessfl.rounds.redesign import Decision, Row, SoFar


class Segment(NamedTuple):
    """Consecutive rounds of a run with the same settings.

    Args:
        settings: H, E, K, m and sigma^2, [5].
        rounds: global round of each row, [rows]; the first is that of the row before the segment.
        scores: validation accuracies, [rows].
        reached: best validation accuracy before the segment.
    """

    settings: FloatArray
    rounds: FloatArray
    scores: FloatArray
    reached: float


def segments_of(run: SoFar, point: Callable[[Decision, float], FloatArray]) -> Iterator[Segment]:
    """The parts of a run with equal H, E, K and m, of which rows are known.

    Args:
        run: the run.
        point: returns H, E, K, m and sigma^2, [5], of a decision and a number of participants.
    """
    settings = [point(each, _participants(run.rows, each)) for each in run.decisions]
    starts = [each.round for each in run.decisions]
    kept = [i for i in range(len(starts)) if i == 0 or (settings[i] != settings[i - 1]).any()]
    ends = [*(starts[i] for i in kept[1:]), run.rounds]
    for place, end in zip(kept, ends, strict=True):
        start = starts[place]
        rows = [row for row in run.rows if start <= row["round"] <= end]
        if len(rows) < 2:
            continue
        yield Segment(
            settings[place],
            np.array([float(row["round"]) for row in rows]),
            np.array([counted(row, SCORE) for row in rows]),
            max(counted(row, SCORE) for row in run.rows if row["round"] <= start),
        )


def _participants(rows: Sequence[Row], decision: Decision) -> float:
    """Participants of the rounds after a decision."""
    found = [row["clients_per_round"] for row in rows if row["round"] > decision.round]
    return float(found[0] if found else rows[-1]["clients_per_round"])
