"""Keeps the parameters of the best row of a run in a file of its folder."""

from __future__ import annotations

import json
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.files import copy_stored, reading, replacing, writing
from wirelessfl.base.stored_tensors import checksum, open_tensors
from wirelessfl.runs.observers.observer import Observer, Row, Running

BEST = "best.safetensors"
"""The file; if tasks have tables, each has one with its number in front, as ``task0-best...``."""


def best_file(folder: Path, task: int | None = None) -> Path:
    """The file of the best parameters in a run's folder; of a task, by its number."""
    return folder / (BEST if task is None else f"task{task}-{BEST}")


def best_row(file: Path) -> Row | None:
    """The row whose parameters a file of ``BestModel`` contains; None without a whole file."""
    try:
        row = json.loads(best_params(file)[1]["row"])
    except ConfigError:
        return None
    return row if isinstance(row, dict) else None


def best_params(file: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """The parameters in a file of ``BestModel``, and ``row`` as JSON.

    Raises:
        ConfigError: the file is missing or damaged.
    """
    with reading(file, "Restore it, or use the parameters of the last row."):
        with open_tensors(file) as stored:
            params = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
            metadata = stored.metadata() or {}
        row = metadata["row"]
        json.loads(row)
        if metadata.get("checksum") != _checksum(params, row):
            raise ValueError("it differs from its checksum")
    return params, {"row": row}


def _checksum(params: dict[str, torch.Tensor], row: str) -> str:
    return str(zlib.crc32(row.encode(), checksum(sorted(params.items()))))


@dataclass
class _Best:
    """The best row of a task: its score and its place among all rows."""

    score: float = -math.inf
    place: int = -1


@dataclass(eq=False)
class BestModel(Observer):
    """Writes the parameters of the best row to ``best.safetensors`` in the run's folder.

    Rows are compared by the run's monitored field; of equal rows, the first one counts. The file's
    metadata have the whole ``row``. A resumed run removes rows after its last checkpoint; the best
    parameters up to there remain in a second file until a checkpoint covers better ones.

    >>> import wirelessfl
    >>> from wirelessfl.observers import BestModel
    >>> settings = wirelessfl.Config.from_flags("fedavg", clients=4, rounds=2, out="run-with-best")
    >>> result = wirelessfl.run(settings, observers=[BestModel(monitor="loss")])
    >>> (result.directory / "best.safetensors").exists()
    True

    Args:
        monitor: field of the rows to compare, e.g. "loss"; None for the run's monitored field.
    """

    monitor: str | None = None
    _best: dict[Any, _Best] = field(default_factory=dict, init=False, repr=False)

    def begin(self, run: Running) -> None:
        """Find the best row before an interruption, and its parameters."""
        self._best = {}
        for place, row in enumerate(run.rows):
            self._improves(run, place, row)
        for task, best in self._best.items():
            self._keep(run, task, best)

    def row(self, run: Running, row: Row) -> None:
        """Write the parameters if the row is the best of its task."""
        task, place = row.get("task"), len(run.rows) - 1
        before = self._best.get(task, _Best()).place
        if not self._improves(run, place, row):
            return
        from safetensors.torch import save_file  # loads PyTorch

        file, params, text = self._file(run, task), _params(run, task), json.dumps(row)
        with writing(file, run.directory):
            if 0 <= before < run.covered() and file.exists():  # a resumed run may need it
                with replacing(_before(file)) as draft:
                    draft.unlink()
                    copy_stored(file, draft)
            with replacing(file) as draft:
                save_file(params, draft, {"row": text, "checksum": _checksum(params, text)})

    def end(self, run: Running) -> None:
        """Remove the second files if a resumed run does not need them."""
        for task, best in self._best.items():
            if best.place < run.covered():
                _before(self._file(run, task)).unlink(missing_ok=True)

    def _improves(self, run: Running, place: int, row: Row) -> bool:
        """Whether a row is the best of its task so far; notes it."""
        score = run.monitor(row, self.monitor).score(row)
        best = self._best.setdefault(row.get("task"), _Best())
        if score <= best.score:
            return False
        best.score, best.place = score, place
        return True

    def _keep(self, run: Running, task: str | None, best: _Best) -> None:
        """Keep the file of the best row, from before the interruption."""
        file = self._file(run, task)
        for candidate in (file, _before(file)):
            if best.place >= 0 and best_row(candidate) == run.rows[best.place]:
                candidate.replace(file)
                break
        else:
            file.unlink(missing_ok=True)
            if best.place >= 0:
                number = run.rows[best.place]["round"]
                run.note(
                    f"the parameters of the best row so far (round {number}) were not kept: "
                    f"{file.name} will be written at the next better row."
                )
        _before(file).unlink(missing_ok=True)

    @staticmethod
    def _file(run: Running, task: str | None) -> Path:
        titled = task is not None and bool(run.config.task)
        return best_file(run.directory, [*run.config.tasks].index(str(task)) if titled else None)


def _before(file: Path) -> Path:
    """The best parameters up to the last checkpoint, if ``file`` is of a later row."""
    return file.with_suffix(".before")


def _params(run: Running, task: str | None) -> dict[str, torch.Tensor]:
    """The parameters of a task, without its name, or of the run's one model."""
    params = run.params()
    if task is None or not run.config.task:
        return params
    mark = f"{task}."
    return {n.removeprefix(mark): v for n, v in params.items() if n.startswith(mark)}
