"""``wirelessfl bench``: run the benchmarks and print their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wirelessfl.errors import ConfigError


def bench(what: str, repeats: int, data_dir: Path | None, as_json: bool) -> int:
    """Run ``engine``, ``solvers`` or ``all`` and print rows or JSON.

    Args:
        what: which benchmarks.
        repeats: runs of each way; medians are shown.
        data_dir: folder of the data sets.
        as_json: print JSON instead of tables.
    """
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}: time each way at least once.")
    tables: dict[str, list[dict[str, Any]]] = {}
    if what in ("all", "engine"):
        from wirelessfl.bench.engine import engine_bench

        tables["engine: a round of local training"] = engine_bench(repeats, data_dir)
    if what in ("all", "solvers"):
        from wirelessfl.bench.mask_sizes import mask_size_bench

        tables["mask sizes"] = mask_size_bench(repeats)
    if as_json:
        print(json.dumps(tables, indent=2))
        return 0
    for title, rows in tables.items():
        table = Table(title=title)
        for key in rows[0]:
            table.add_column(
                key.replace("_", " "), justify="left" if isinstance(rows[0][key], str) else "right"
            )
        for row in rows:
            table.add_row(*(_text(value) for value in row.values()))
        Console().print(table)
    return 0


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
