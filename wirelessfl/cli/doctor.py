"""``wirelessfl doctor``: versions, devices, data, optional packages, and a short speed check."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from wirelessfl.base.terminal import say
from wirelessfl.cli.parser import Parser

HELP = "print versions, devices, data sets, licences, and a five-second speed check"
NEEDED = ("numpy", "scipy", "torch", "pydantic", "scikit-learn", "matplotlib")
OPTIONAL: Mapping[str, str] = {
    "cvxpy": "solvers",
    "gurobipy": "solvers",
    "ray": "ray",
    "h5py": "matlab",
    "pyarrow": "parquet",
    "transformers": "language",
    "peft": "language",
    "bokeh": "report",
    "numba": "fast",
}
"""Optional packages, and the extra that installs each."""
GEMM, SECONDS = 1024, 1.5
"""Size of the multiplied matrices, and seconds of each measurement."""


def add(parser: Parser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print what an installation has: versions, devices, data sets and where they are, optional "
        "packages, licences, and a speed check of a few seconds."
    )
    parser.add_json()
    parser.add_argument("--no-speed", action="store_true", help="omit the speed check")


def act(arguments: argparse.Namespace) -> int:
    """Print the report; parts that fail contain the error."""
    parts: dict[str, Callable[[], Mapping[str, Any]]] = {
        "versions": _versions,
        "machine": _machine,
        "data sets": _data,
        "optional packages": _optional,
        "licences": _licences,
    }
    if not arguments.no_speed:
        parts["speed"] = _speed
    report = {}
    for title, part in parts.items():
        report[title] = _tried(part)
        if not arguments.json:
            say(f"{title}:", flush=True)
            for name, value in report[title].items():
                say(f"  {name:<15} {value}", flush=True)
    if arguments.json:
        say(json.dumps(report, indent=2))
    return 0


def _tried(part: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """A part of the report, or the error that it has raised."""
    try:
        return part()
    except Exception as error:  # an installation may be broken in any way
        return {"error": _one_line(error)}


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _versions() -> dict[str, str]:
    import wirelessfl

    packages = {package: _version(package) or "not installed" for package in NEEDED}
    return {"wirelessfl": wirelessfl.__version__, "python": platform.python_version(), **packages}


def _machine() -> dict[str, Any]:
    import torch

    from wirelessfl.training.precision import reduced
    from wirelessfl.training.workers.processes import cores

    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    devices = [torch.cuda.get_device_name(place) for place in range(torch.cuda.device_count())]
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
        "torch threads": torch.get_num_threads(),
        "memory": "unknown" if memory is None else f"{memory:.1f} GiB",
        "GPUs": ", ".join(devices) or "none",
        "precisions": ", ".join(
            f"{precision} on {device} ({part})"
            for device in ("cpu", *(f"cuda:{place}" for place in range(len(devices))))
            for precision, part in reduced(torch.device(device)).items()
        )
        or "float32 only",
    }


def _data() -> dict[str, str]:
    from wirelessfl.data import BUILT_IN, DOWNLOADED
    from wirelessfl.data.files import cache_folder, environment_folder

    folders = {"WIRELESSFL_DATA": environment_folder(), "cache": cache_folder()}
    lines = {}
    for name, data in sorted(BUILT_IN.items()):
        places = [
            f"{folder / name} ({by})"
            for by, folder in folders.items()
            if folder is not None and _filled(folder / name)
        ]
        if places:
            lines[name] = places[0]
        elif data.source == DOWNLOADED:
            lines[name] = "not here; downloaded when it is used"
        else:
            lines[name] = "available" if name == "digits" else "not here"
    return lines


def _filled(folder: Path) -> bool:
    """Whether a folder exists and is not empty."""
    return folder.is_dir() and any(folder.iterdir())


def _optional() -> dict[str, str]:
    return {
        package: _version(package) or f"not installed: pip install 'wirelessfl[{extra}]'"
        for package, extra in OPTIONAL.items()
    }


def _licences() -> dict[str, str]:
    from solvers.mask_sizes.gurobi import Gurobi

    try:
        Gurobi.check()
    except Exception as error:  # no package, no licence, no server
        return {"gurobi": _one_line(error)}
    return {"gurobi": "valid (the licence of its package is limited to small problems)"}


def _speed() -> dict[str, str]:
    return {
        "GEMM": f"{gemm_gflops():.0f} GFLOP/s",
        "local steps": f"{local_steps():.0f} per second",
    }


def gemm_gflops() -> float:
    """GFLOP/s of float32 matrix products on the CPU with torch's threads."""
    import torch

    left, right = torch.rand(GEMM, GEMM), torch.rand(GEMM, GEMM)
    torch.mm(left, right)
    products, start = 0, time.perf_counter()
    while time.perf_counter() < start + SECONDS:
        torch.mm(left, right)
        products += 1
    return 2e-9 * GEMM**3 * products / (time.perf_counter() - start)


def local_steps() -> float:
    """Local steps of clients per second in a run on digits: FedAvg, batches of 50."""
    import tempfile

    from wirelessfl import Config, run

    clients, steps, rounds = 10, 20, 5000
    with tempfile.TemporaryDirectory(prefix="wirelessfl-doctor-") as folder:
        times: list[float] = []
        config = Config.from_flags(
            "fedavg",
            clients=clients,
            local_steps=steps,
            rounds=rounds,
            device="cpu",
            checkpoint_seconds=60,
            eval_every=5,
            out=Path(folder, "run"),
        )

        def on_row(row: Mapping[str, Any]) -> None:
            times.append(time.perf_counter())
            if len(times) > 2 and times[-1] - times[0] > SECONDS:
                raise Enough

        with suppress(Enough):
            run(config, on_row=on_row)
    return clients * steps * 5 * (len(times) - 1) / (times[-1] - times[0])


class Enough(Exception):  # it is no error
    """Ends the run of the speed check."""
