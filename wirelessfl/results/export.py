"""Writes parameters and rows of stored runs to files of other formats."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import check_writable, replacing
from wirelessfl.base.packages import parquet
from wirelessfl.base.wording import suggestion
from wirelessfl.results.overview import about_of
from wirelessfl.results.runs import Runs
from wirelessfl.runs.observers.best_model import BEST, best_params
from wirelessfl.runs.result import RunResult

PARAMETERS = (".safetensors", ".pt")
ROWS = (".csv", ".parquet", ".jsonl")


def export(runs: Runs, path: Path, *, best: bool = False) -> Path:
    """Write the parameters of a run, or the rows of runs, in the format of the file's suffix.

    Args:
        runs: one run for parameters, any number for rows.
        path: ``.safetensors`` or ``.pt`` for parameters by name; ``.csv``, ``.parquet`` or
            ``.jsonl`` for rows. Rows of several runs have the folder, the seed and the settings
            that differ as further fields.
        best: the best parameters instead of those of the last checkpoint.

    Returns:
        The path.
    """
    suffix = path.suffix
    if suffix not in (*PARAMETERS, *ROWS):
        near = suggestion(suffix, (*PARAMETERS, *ROWS))
        raise ConfigError(
            f"output is {path}.{near} Choose {', '.join(PARAMETERS)} for parameters, or "
            f"{', '.join(ROWS)} for rows."
        )
    check_writable(path.parent, "output")
    if path.is_dir():
        raise ConfigError(
            f"output is {path}, which is a folder. Name a file; --card writes a folder."
        )
    check_outside(runs, path)
    if suffix in ROWS:
        if best:
            raise ConfigError(f"best conflicts with {path}, a file of rows: name a .safetensors.")
        fields = runs[0].rows if len(runs) == 1 else runs.to_rows()
        if not fields:
            raise ConfigError("the runs have no rows yet.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as draft:
            _write_rows(draft, suffix, fields)
        return path
    if len(runs) != 1:
        raise ConfigError(
            f"{len(runs)} runs are given, but {path} holds the parameters of one: name one run, or "
            "a .csv for rows."
        )
    write_params(runs, path, best=best)
    return path


def check_outside(runs: Runs, path: Path) -> None:
    """Refuse a file in the folder of a run.

    Raises:
        ConfigError: it is one.
    """
    if {run.directory.resolve() for run in runs} & set(path.resolve().parents):
        raise ConfigError(f"output is {path}, in the folder of a run. Choose another folder.")


def write_params(runs: Runs, path: Path, *, best: bool) -> dict[str, str]:
    """Write the parameters of a run; return what the file says about them."""
    params, note = _best(runs[0]) if best else (runs[0].params, _last(runs[0]))
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = description(runs[0]) | note
    if path.suffix == ".pt":
        file = io.BytesIO()
        torch.save(dict(params), file)
        content = file.getvalue()
    else:
        from safetensors.torch import save  # loads PyTorch

        # A tied parameter has several names, which a .safetensors file stores separately.
        content = save({k: v.clone().contiguous() for k, v in params.items()}, metadata)
    with replacing(path) as draft:
        draft.write_bytes(content)
    return metadata


def description(run: RunResult) -> dict[str, str]:
    """What a file of parameters says about its run: all values are strings."""
    facts = {k: run.settings.get(k) for k in ("algorithm", "dataset", "model", "seed")}
    metadata = {key: str(value) for key, value in facts.items() if value is not None}
    version = about_of(run).get("wirelessfl")
    return metadata | ({} if version is None else {"wirelessfl": str(version)})


def _last(run: RunResult) -> dict[str, str]:
    """The row of the last checkpoint, for a finished run."""
    if not run.finished or not run.rows:
        return {"finished": "false"}
    return {"finished": "true", "row": json.dumps(run.rows[-1])}


def _best(run: RunResult) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The best parameters of a run, and what their file says about them."""
    file = run.directory / BEST
    if not os.path.lexists(file):
        raise ConfigError(f"{run.directory} has no {BEST}: only runs with --keep-best have it.")
    return best_params(file)


def _write_rows(file: Path, suffix: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows; a row that lacks a field of others has no value there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if suffix == ".parquet":
        columns = {name: [row.get(name) for row in rows] for name in names}
        columns = {name: _alike(values) for name, values in columns.items()}
        writer = parquet()
        writer.write_table(_arrow_table(columns), file)
        return
    with file.open("w", encoding="utf-8", newline="") as text:
        if suffix == ".jsonl":
            text.writelines(json.dumps(dict(row)) + "\n" for row in rows)
            return
        table = csv.DictWriter(text, names)
        table.writeheader()
        table.writerows(rows)


def _arrow_table(columns: Mapping[str, list[Any]]) -> Any:
    import pyarrow

    return pyarrow.table(dict(columns))


def _alike(values: list[Any]) -> list[Any]:
    """Values of one type: those of settings of different types as text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2 or kinds == {int, float}:
        return [float(v) if kinds == {int, float} and v is not None else v for v in values]
    return [None if value is None else str(value) for value in values]
