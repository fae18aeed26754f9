"""What the command line and ``wirelessfl.design`` answer, as rows."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

import wirelessfl
from tests.gate import given
from wirelessfl import Config
from wirelessfl.cli import main

Rows = list[dict[str, Any]]


def answers(config: Config, commands: tuple[str, ...], folder: Path) -> tuple[Rows, dict[str, Any]]:
    """Run commands one after another.

    In a command, ``CONFIG`` is the file of the configuration, and ``OUT`` the folder for all that
    is written.

    Returns:
        A row for each command with all that it printed, the rows of exported tables, and the
        exported parameters.

    Raises:
        RuntimeError: a command failed; the message is its first line on stderr.
    """
    file, out = folder / "config.toml", folder / "out"
    file.write_text(config.to_toml(), encoding="utf-8")
    out.mkdir()
    rows = []
    for command in commands:
        words = shlex.split(command.replace("CONFIG", str(file)).replace("OUT", str(out)))
        with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as errors:
            status = main(words)
        if status != 0:
            raise RuntimeError((errors.getvalue().splitlines() or [f"status {status}"])[0])
        rows.append(_row(printed.getvalue(), out))
    for table in out.glob("*.csv"):
        lines = table.read_text(encoding="utf-8").splitlines()
        rows += [_entries(line) for line in csv.DictReader(lines)]
    params: dict[str, Tensor] = {}
    for exported in out.glob("*.safetensors"):
        params |= load_file(exported)
    return rows, params


def designed(config: Config, goal: Mapping[str, Any]) -> Rows:
    """The design for a goal, with the learning curves of ``given``: its facts, table and bound."""
    names = goal.get("among", [config.named("algorithm")])
    curves = {name: given.curve(slower) for slower, name in enumerate(names)}
    solution = wirelessfl.design(config, curve=curves, on_note=lambda note: None, **goal)
    assert solution.value is not None
    proof = {name: getattr(solution, name) for name in ("objective", "bound", "backend", "message")}
    proof["status"] = solution.status.value
    return [_entries(answer) for answer in (solution.value.facts(), solution.value.table(), proof)]


def _row(text: str, out: Path) -> dict[str, Any]:
    """All entries of JSON, or the lines of another text; paths are relative to ``out``."""
    text = text.replace(str(out), "OUT")
    try:
        return _entries(json.loads(text))
    except ValueError:
        return _entries(text)


def _entries(value: Any, path: str = "") -> dict[str, Any]:
    """Numbers, words and lines by their paths, such as ``priced.seconds``.

    Neither empty values nor wall-clock times are among them.
    """
    if isinstance(value, str) and "\n" in value:
        value = value.splitlines()
    if isinstance(value, list | tuple):
        value = dict(enumerate(value))
    if not isinstance(value, dict):
        return {} if value is None or path.endswith("wall_seconds") else {path: value}
    found: dict[str, Any] = {}
    for key, entry in value.items():
        found |= _entries(entry, f"{path}.{key}" if path else str(key))
    return found
