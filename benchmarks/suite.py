"""``wirelessfl bench``: run the benchmarks and print their tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.timing import Rows
from wirelessfl.base.errors import ConfigError

_DIGITS = {"mean_ratio": 5, "min_ratio": 4}  # significant digits; 3 cannot resolve ratios near 1


def bench(what: str, repeats: int, data_dir: Path | None, as_json: bool, quick: bool) -> int:
    """Run ``engine``, ``command``, ``submodels``, ``simulator``, ``solvers``, ``gpu`` or ``all``.

    Args:
        what: the benchmarks to run.
        repeats: timed runs of each method; medians are reported.
        data_dir: folder of the data sets.
        as_json: whether to print JSON instead of tables.
        quick: whether to use few clients and not measure memory, only to test the benchmarks.
    """
    if repeats < 1:
        raise ConfigError(f"repeats is {repeats}: give a number >= 1.")
    console = Console(stderr=True)
    tables: dict[str, Rows] = {}
    quiet = not console.is_terminal
    if what in ("all", "engine"):
        from benchmarks.engine import engine_bench

        small: dict[str, Any] = {"clients": 4, "scaling": (2, 4), "memory": False}
        small["resnet_steps"] = 3
        with console.status("timing local training") if not quiet else console:
            tables |= engine_bench(repeats, data_dir, **(small if quick else {}))
    if what == "gpu":  # ``engine`` compares with plain loops where there is a GPU
        from benchmarks.gpu import gpu_bench

        tables |= gpu_bench(1 if quick else repeats, data_dir)
    if what in ("all", "command"):
        from benchmarks.start import shared_data_bench, start_bench, sweep_bench, together_bench
        from benchmarks.whole_command import command_bench

        brief: dict[str, Any] = {"dataset": "digits", "rounds": {"fcnn": 2}, "clients": 4}
        brief["others"] = 0
        with console.status("timing whole commands") if not quiet else console:
            tables |= command_bench(min(repeats, 3), data_dir, **(brief if quick else {}))
            tables["start of commands"] = start_bench(1 if quick else repeats, data_dir)
            tables["sweeps of tiny runs"] = sweep_bench(
                **({"repeats": 1, "runs": 2} if quick else {})
            )
            few_runs: dict[str, Any] = {"dataset": "digits", "runs": 2}
            if rows := shared_data_bench(repeats, data_dir, **(few_runs if quick else {})):
                tables["sweeps that read their data once"] = rows
            tables["runs that train together"] = together_bench(
                **({"repeats": 1, "rounds": 1, "runs": 2} if quick else {})
            )
    if what in ("all", "submodels"):
        from benchmarks.submodels import submodel_bench

        tiny = {"clients": 4, "steps": 2, "samples": 50} if quick else {}
        with console.status("timing submodels") if not quiet else console:
            tables |= submodel_bench(repeats, **tiny)
    if what in ("all", "simulator"):
        from benchmarks.planning import network_bench, planning_bench
        from benchmarks.simulator import simulator_bench

        short = {"updates": 2000, "merges": 2} if quick else {}
        with console.status("timing the simulator") if not quiet else console:
            tables |= simulator_bench(repeats, data_dir, **short)
            tables["planning"] = planning_bench(repeats, **({"rounds": 20} if quick else {}))
            tables["many networks"] = network_bench(repeats, **({"count": 20} if quick else {}))
    if what in ("all", "solvers"):
        from benchmarks.bands import band_bench, in_time_bench
        from benchmarks.beamforming import beamforming_bench
        from benchmarks.mask_sizes import mask_size_bench
        from benchmarks.training_rounds import cells_bench, rounds_bench
        from benchmarks.widths import width_bench

        with console.status("timing the solvers") if not quiet else console:
            tables["mask sizes"] = mask_size_bench(repeats)
            tables["widths"] = width_bench(repeats)
            tables["bands"] = band_bench(repeats, **({"most": 1500} if quick else {}))
            tables["bands in time"] = in_time_bench(repeats, **({"most": 20} if quick else {}))
            small_grid = {"local": 4, "edge": 2, "draws": 2}
            tables["training rounds"] = rounds_bench(repeats, **(small_grid if quick else {}))
            tables["many cells"] = cells_bench(repeats, (9,) if quick else (16, 32))
            few: dict[str, Any] = {"problems": 2, "batch": 20, "starts": 100, "limit_seconds": 0.5}
            tables |= beamforming_bench(repeats, **(few if quick else {}))
    if quick:
        tables = {f"{title} (quick run)": rows for title, rows in tables.items()}
    if as_json:
        print(json.dumps(tables, indent=2))
        return 0
    for title, rows in tables.items():
        Console().print(_table(title, rows))
    return 0


def _table(title: str, rows: Rows) -> Table:
    table = Table(title=title)
    shown = [key for key in rows[0] if any(row[key] is not None for row in rows)]
    for key in shown:
        text = isinstance(rows[0][key], str)
        table.add_column(
            key.replace("_", " "), justify="left" if text else "right", no_wrap=not text
        )
    for row in rows:
        table.add_row(*(_text(row[key], _DIGITS.get(key, 3)) for key in shown))
    return table


def _text(value: object, digits: int) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
