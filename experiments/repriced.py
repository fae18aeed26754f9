"""``python -m experiments reprice``: new joules of stored runs over the air, without training.

Runs over the air once charged the maximum transmit power of every client. What their precoders send
is less, and follows from the plan of each round. Everything else in the rows stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import wirelessfl
from experiments.runs import Store
from wirelessfl.config import Config
from wirelessfl.errors import ConfigError
from wirelessfl.pricing.same_training import KEYS, RELATIVE, row_key
from wirelessfl.results.archive import SUFFIX, Row, StoredRun

MARK = "repriced"
"""Entry of ``about`` in the file of a run with new joules: the fields, and what they are now."""
SENT = {"joules": "power that the precoders send, from the plan"}
COSTS = ("sim_seconds", "uplink_mib", "downlink_mib", "backhaul_mib")


@dataclass(frozen=True)
class OverAnotherRadio:
    """A stored run with new joules.

    Args:
        run: the run.
        difference: largest relative difference of its seconds and traffic to the price.
        factor: new joules of the last row over the stored ones.
    """

    run: StoredRun
    difference: float
    factor: float


def over_air(run: StoredRun) -> bool:
    """Whether updates of the run, or of one of its tasks, are summed over the air."""
    tables = [run.settings, *run.settings.get("tasks", {}).values()]
    return any(table.get("uplink", {}).get("name") == "aircomp" for table in tables)


def repriced(run: StoredRun) -> OverAnotherRadio:
    """The run with joules as its plan prices them.

    Raises:
        ConfigError: the run has no price without training, or its seconds and traffic differ from
            the price by more than a relative 1e-9.
    """
    prices = wirelessfl.price(Config.of(run.settings), max(row["round"] for row in run.rows))
    priced: dict[Any, Row] = {}
    for row in prices.rows:
        priced.setdefault(row_key(row), row)
    rows, difference = [], 0.0
    for row in run.rows:
        now = priced.get(row_key(row))
        if now is None:
            raise ConfigError(f"row {dict(zip(KEYS, row_key(row), strict=True))} has no price")
        for name in COSTS:
            apart = abs(row[name] - now[name]) / max(abs(row[name]), 1e-300)
            difference = max(difference, apart)
            if not math.isclose(row[name], now[name], rel_tol=RELATIVE):
                raise ConfigError(
                    f"{name} after round {row['round']} is {row[name]!r}, and {now[name]!r} now"
                )
        rows.append(row | {"joules": now["joules"]})
    about = run.about | {MARK: SENT}
    factor = rows[-1]["joules"] / run.rows[-1]["joules"]
    return OverAnotherRadio(replace(run, rows=rows, about=about), difference, factor)


def unpriced(folder: Path) -> Iterator[tuple[Path, StoredRun]]:
    """The stored runs over the air in all papers of ``folder`` that have no new joules yet.

    Each comes with the file for its new joules; a sealed run has none before.
    """
    for rows in sorted(folder.glob("*/rows")):
        store = Store(rows, rows)
        for name in store.names():
            run = store.run(name)
            if run is not None and over_air(run) and MARK not in run.about:
                yield store.file(name), run


def reprice(folder: Path) -> list[str]:
    """Give new joules to all stored runs over the air, and print a line for each.

    Args:
        folder: folder whose subfolders ``PAPER/rows`` hold the files.

    Returns:
        The runs that stay as they are, with the reason.
    """
    left, largest, count = [], 0.0, 0
    for file, run in unpriced(folder):
        name = f"{file.parts[-3]}/{file.name.removesuffix(SUFFIX)}"
        try:
            found = repriced(run)
        except ConfigError as error:
            left.append(f"{name}: {error}")
            print(f"unchanged: {left[-1]}", flush=True)
            continue
        found.run.save(file)
        largest, count = max(largest, found.difference), count + 1
        print(f"{name}: joules times {found.factor:.4g}", flush=True)
    print(f"{count} runs have new joules; seconds and traffic differ by at most {largest:.1g}")
    return left
