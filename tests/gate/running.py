"""Run a configuration of the gate through the public interface."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

import wirelessfl
from tests.gate.configurations import Configuration
from tests.gate.printed import answers, designed
from wirelessfl import Config, RunResult

TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
TORCHRUN += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "-m", "--"]


@dataclass(frozen=True)
class Outcome:
    """Results of a run: its rows in order, and its parameters by name."""

    rows: list[dict[str, Any]]
    params: dict[str, Tensor]


class Stopped(Exception):
    """Raised by the gate to stop a run halfway."""


def run(configuration: Configuration) -> list[Outcome]:
    """Run a configuration; ``resumed`` gives two outcomes, uninterrupted and resumed.

    Raises:
        Exception: the run failed.
    """
    with TemporaryDirectory(prefix="wirelessfl-gate-") as scratch:
        folder = Path(scratch)
        flags = configuration.flags_in(folder)

        def config(out: str) -> Config:
            return Config.from_flags(configuration.algorithm, **flags, out=folder / out)

        if configuration.how == "torchrun":
            return [_outcome(_by_two_processes(config("two"), folder))]
        if configuration.how == "commands":
            return [Outcome(*answers(config("run"), configuration.commands, folder))]
        if configuration.how == "design":
            return [Outcome(designed(config("run"), configuration.goal), {})]
        objects = {name: make() for name, make in configuration.objects.items()}
        whole = wirelessfl.run(config("whole"), on_note=lambda note: None, **objects)
        outcomes = [_outcome(whole)]
        if configuration.how == "resumed":
            half = len(outcomes[0].rows) // 2
            outcomes.append(_outcome(_resumed(config("stopped"), objects, half)))
        return outcomes


def _outcome(result: RunResult) -> Outcome:
    return Outcome(result.rows, {name: value.clone() for name, value in result.params.items()})


def _resumed(config: Config, objects: Mapping[str, Any], rows: int) -> RunResult:
    """Stop a run after ``rows`` rows, then resume it."""
    seen: list[Any] = []

    def on_row(row: dict[str, Any]) -> None:
        seen.append(row)
        if len(seen) == rows:
            raise Stopped

    assert config.run.out is not None
    try:
        wirelessfl.run(config, **objects, on_row=on_row)
    except Stopped:
        return wirelessfl.resume(config.run.out, **objects, trust=True)
    raise AssertionError(f"the run ended before it had {rows} rows")


def _by_two_processes(config: Config, folder: Path) -> RunResult:
    """Run the command line under torchrun, and read the result from the run's folder.

    Raises:
        RuntimeError: the run failed; the message is the first error that it printed.
    """
    assert config.run.out is not None
    file = folder / "config.toml"
    file.write_text(config.to_toml(), encoding="utf-8")
    command = [sys.executable, *TORCHRUN, "wirelessfl", "run", "--config", str(file), "--trust"]
    here = Path(str(wirelessfl.__file__)).parents[1]  # python -m finds this wirelessfl there
    done = subprocess.run(command, cwd=here, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "Error: " in line]
        raise RuntimeError((errors or done.stderr.splitlines() or ["torchrun failed"])[0])
    return wirelessfl.resume(config.run.out, trust=True)
