"""What a page on stored runs says of clients: their time and energy, their rounds, their SNR."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wirelessfl.base.errors import ConfigError, DataError
from wirelessfl.engine.rounds.client_log import PARTS, ClientLog
from wirelessfl.results.priced_runs import PricedRun
from wirelessfl.results.selection import Case
from wirelessfl.runs.folder.client_log import read_client_log
from wirelessfl.runs.folder.given_files import stored_network
from wirelessfl.runs.pricing.radio import own_network
from wirelessfl.runs.result import RunResult

UNLOGGED = "no client log: train with --client-log (runs of tasks or requests cannot have one)"
SPENT = {"seconds": PARTS, "joules": ("compute", "send")}
"""Parts of a client's time and energy in a round."""
MANY = 200
"""Most clients of a run that are drawn."""


def log_of(run: RunResult) -> ClientLog | str:
    """The client log of a run, or why there is none."""
    try:
        log = read_client_log(run.directory)
    except ConfigError as error:
        return UNLOGGED if "has no" in str(error) else str(error)
    return log if len(log) else "its client log is empty"


def spending(cases: Sequence[Case], logs: Mapping[int, ClientLog | str]) -> dict[str, Any]:
    """Mean seconds and joules of a client in a round, by case and part; and who has no log.

    Args:
        cases: the cases.
        logs: client log of each run by its ``id``, or why it has none.
    """
    units: dict[str, list[dict[str, Any]]] = {unit: [] for unit in SPENT}
    missing: dict[str, list[str]] = {}
    for case in cases:
        of_case = [logs[id(run)] for run in case.runs]
        logged = [log for log in of_case if isinstance(log, ClientLog)]
        if not logged:
            missing.setdefault(str(of_case[0]), []).append(case.title)
            continue
        for unit, parts in SPENT.items():
            means = {p: statistics.mean(log[f"{p}_{unit}"].mean() for log in logged) for p in parts}
            spent = {part: float(mean) for part, mean in means.items() if mean > 0}
            total = sum(spent.values())
            bars = [{"part": p, "value": v, "share": 100 * v / total} for p, v in spent.items()]
            units[unit].append({"title": case.title, "total": total, "bars": bars})
    return {
        "units": units if units["seconds"] else {},
        "most": {
            unit: max((line["total"] for line in of), default=0) for unit, of in units.items()
        },
        "parts": {
            unit: [p for p in PARTS if any(bar["part"] == p for line in of for bar in line["bars"])]
            for unit, of in units.items()
        },
        "missing": missing,
    }


def clients_of(case: Case, run: RunResult, log: ClientLog | str) -> dict[str, Any]:
    """Who took part in a run, who was the straggler, and the SNR and place of each client."""
    missing = [log] if isinstance(log, str) else []
    network, reason = network_of(run)
    numbers = np.arange(network.clients) if network is not None else np.empty(0, int)
    columns: dict[str, Any] = {}
    lines: list[str] = []
    if isinstance(log, ClientLog):
        numbers = np.union1d(numbers, log["client"])
        at = np.searchsorted(numbers, log["client"])
        columns["rounds"] = np.bincount(at, minlength=len(numbers))
        for name in ("straggler", "arrived"):
            columns[name] = np.bincount(at, log[name], len(numbers)).astype(int)
        columns["cell"] = np.zeros(len(numbers), int)
        columns["cell"][at] = log["cell"]
        snr = np.bincount(at, log["snr_db"], len(numbers)) / np.maximum(columns["rounds"], 1)
        columns["snr"] = np.where(columns["rounds"] > 0, snr, np.nan)
        lines = log.lines()
    stations: list[list[float]] = []
    if network is not None:
        columns |= {"cell": network.cell_of, "snr": network.mean_snr_db}
        if network.placement is not None:
            columns["x"], columns["y"] = network.placement.clients_m[:, :2].T
            stations = network.placement.base_stations_m[:, :2].round(1).tolist()
    else:
        missing.append(reason)
    if "snr" in columns and np.isnan(columns["snr"]).all():
        del columns["snr"]
    total = len(numbers)
    if total > MANY:
        often = [-columns[name] for name in ("rounds", "straggler") if name in columns]
        rank = np.lexsort((numbers, *often))
        kept = np.sort(rank[:MANY])
        numbers, columns = numbers[kept], {name: v[kept] for name, v in columns.items()}
    title = case.title.removesuffix(f", {case.task}")
    title += "" if "seed" in case.names else f", seed {run.settings['seed']}"
    return {
        "title": f"{title} ({run.directory})",
        "columns": {"client": numbers.tolist(), **{n: _plain(v) for n, v in columns.items()}},
        "stations": stations,
        "logged": isinstance(log, ClientLog),
        "lines": lines,
        "missing": missing,
        "left_out": total - len(numbers),
        "source": "network" if network is not None else "log",
    }


def network_of(run: RunResult) -> tuple[Any, str]:
    """The network of a run, or None and why there is none."""
    try:
        network = run.network if isinstance(run, PricedRun) else stored_network(run.directory)
        if network is None and run.config.given.network is not None:
            network = stored_network(run.directory)
            return network, "the network that was given to the run is not in its folder"
        if network is None and {"network", "bandwidth_hz"} & run.settings.keys():
            network = own_network(run.config)
        return network, "no radio network: its times do not depend on channels"
    except (ConfigError, DataError, OSError) as error:
        return None, f"no network: {error}"


def _plain(values: Any) -> list[float | int | None]:
    """Numbers for JSON with four digits, None for those that are not finite."""
    return [
        None if not math.isfinite(v) else v if isinstance(v, int) else float(f"{v:.4g}")
        for v in values.tolist()
    ]
