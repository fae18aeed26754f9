"""Checks of a combination of choices: its run, or its refusal."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import wirelessfl
from channels.streams import Stream
from tests.product.combinations import FIELDS, Combination
from wirelessfl.data import Dataset

REMEDIES = re.compile(r"\b(choose|leave|give|lower|raise|take|start|have|use)\b", re.IGNORECASE)
SESSIONS = re.compile(r"\bsessions=|\bno sessions\b")


@cache
def data() -> Dataset:
    """Two hundred samples of four Gaussian classes with random centres."""
    random = Stream(0, ("product",)).generator()
    centres = random.standard_normal((4, 10))
    labels = torch.arange(200) % 4
    points = centres[labels.numpy()] + 0.5 * random.standard_normal((200, 10))
    inputs = torch.from_numpy(points).float()
    return Dataset("toy", inputs[:160], labels[:160], inputs[160:], labels[160:], 4)


def wrong(combination: Combination) -> str | None:
    """The fault of a combination; None if it completes two merges or is refused correctly.

    The costs of its rows must be its price. A correct refusal is one line that names two of the
    choices and a remedy.
    """
    refusal = combination.refusal()
    return _wrong_run(combination) if refusal is None else _wrong_refusal(combination, refusal)


def _wrong_refusal(combination: Combination, text: str) -> str | None:
    names = [getattr(combination, field) for field in (*FIELDS, "votes")]
    named = sum(f'"{name}"' in text or f"={name!r}" in text for name in names)
    named += combination.sessions and SESSIONS.search(text) is not None
    if "\n" in text:
        return f"refused in several lines: {text!r}"
    if named < 2:
        return f"refused without naming two of the choices: {text}"
    if not REMEDIES.search(text):
        return f"refused without a remedy: {text}"
    return None


def _wrong_run(combination: Combination) -> str | None:
    with TemporaryDirectory(prefix="wirelessfl-product-") as scratch:
        result = wirelessfl.run(combination.config(Path(scratch, "run")), data=data())
    for row in result.rows:
        for key, value in row.items():
            # Over the air, the error of a payload that no client sends is unknown.
            if value is None or (isinstance(value, float) and not math.isfinite(value)):
                return f"row of round {row['round']} has {key} {value}"
    merges = result.rows[-1]["round"] - result.rows[0]["round"]
    if merges < 2:
        return f"{merges} merges in {len(result.rows)} rows"
    first, last = result.rows[0], result.rows[-1]
    if first["loss"] == last["loss"] or not last["sim_seconds"] > first["sim_seconds"]:
        return "no training, or no simulated time"
    return None if combination.config().regime.of_tasks else _wrong_price(combination, result.rows)


def _wrong_price(combination: Combination, rows: Sequence[Mapping[str, Any]]) -> str | None:
    prices = wirelessfl.price(combination.config(), data=data()).rows
    if len(prices) != len(rows):
        return f"{len(rows)} rows, but prices of {len(prices)}"
    for row, costs in zip(rows, prices, strict=True):
        for key, value in costs.items():
            if row[key] != value:
                return f"row of round {row['round']} has {key} {row[key]}, but its price {value}"
    return None


def all_wrong(some: Iterable[Combination]) -> list[str]:
    """The faults of some combinations, one line each."""
    return [
        f"{combination}: {found}"
        for combination in some
        if (found := wrong(combination)) is not None
    ]
